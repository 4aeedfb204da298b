#include "engine/check.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/random.hpp"

namespace via::engine::check_test {
namespace {

using queue::ControlSegment;
using queue::Segment;

struct World {
    memory::MemoryTable table{16, 16};
    memory::ProtectionTag tag = table.create_tag().value();
    memory::MemoryHandle own = table.add(1 << 20, 4096, {tag, true, true}).value();
    memory::MemoryHandle other = table.add(1 << 21, 4096, {tag, true, true}).value();
    memory::MemoryHandle strange =
        table.add(1 << 22, 4096, {table.create_tag().value(), false, false}).value();
    memory::MemoryHandle untagged = table.add(1 << 23, 4096, {}).value();
    memory::Region region = table.look(own);
    CheckContext context{table, region, tag, 2000, true};
};

/// What is asked most often, with something else now and then.
template <class T>
T mostly(Random& random, T usual, std::initializer_list<T> others) {
    if (random.below(4) != 0) return usual;
    return others.begin()[random.below(others.size())];
}

Segment any_segment(Random& random, const World& world) {
    Segment segment;
    segment.handle =
        mostly<std::uint32_t>(random, world.own, {world.other, world.strange, 0U, world.own + 1});
    segment.address =
        mostly<std::uint64_t>(random, (1 << 20) + random.below(100),
                              {(1ULL << 21) + 5, 1ULL << 22, (1ULL << 20) + 4090, 0ULL, ~0ULL});
    segment.length = mostly<std::uint32_t>(random, 64, {0U, 1500U, 4096U, ~0U});
    return segment;
}

/// The inline test for the plain descriptor never changes the answer.
TEST(Check, ThePlainWayAnswersAsTheWholeOne) {
    World world;
    Random random(11);
    int plain = 0;
    int writes = 0;
    for (int n = 0; n < 200'000; ++n) {
        ControlSegment control{};
        control.segment_count =
            mostly<std::uint16_t>(random, 1, {std::uint16_t{0}, std::uint16_t{2}});
        control.control = mostly<std::uint16_t>(
            random, 0,
            {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{3}, std::uint16_t{4},
             std::uint16_t{8}, std::uint16_t{12}, std::uint16_t{16}});
        control.reserved = mostly<std::uint32_t>(random, 0, {1U});
        const std::array<Segment, 2> segments{any_segment(random, world),
                                              any_segment(random, world)};
        const bool remote = (control.control & queue::control::operation_mask) != 0;
        std::uint32_t sum = 0;
        for (std::uint32_t at = remote ? 1 : 0; at < control.segment_count; ++at)
            sum += segments[at].length;
        control.length = mostly<std::uint32_t>(random, sum, {0U, 2001U, sum + 1});

        const std::uint32_t fault = check_send(world.context, control, segments.data());
        ASSERT_EQ(fault, check_any_send(world.context, control, segments.data())) << n;
        std::uint32_t capacity = 1;
        std::uint32_t capacity_of_any = 2;
        ASSERT_EQ(check_receive(world.context, control, segments.data(), capacity),
                  check_any_receive(world.context, control, segments.data(), capacity_of_any))
            << n;
        ASSERT_EQ(capacity, capacity_of_any) << n;
        plain += fault == 0 ? 1 : 0;
        writes += fault == 0 && control.control == queue::control::rdma_write ? 1 : 0;
    }
    EXPECT_GT(plain, 10'000) << "the usual is drawn often";
    EXPECT_GT(writes, 100);
}

TEST(Check, SegmentsMayLieInOtherRegions) {
    World world;
    const std::array<Segment, 2> segments{Segment{1 << 21, world.other, 64},
                                          Segment{(1 << 20) + 1, world.own, 64}};
    ControlSegment control{};
    control.segment_count = 2;
    control.length = 128;
    EXPECT_EQ(check_send(world.context, control, segments.data()), 0U);
    const std::array<Segment, 2> with_stranger{segments[0], Segment{1 << 22, world.strange, 64}};
    EXPECT_EQ(check_send(world.context, control, with_stranger.data()),
              queue::status::protection_error);
    const std::array<Segment, 2> with_untagged{segments[0], Segment{1 << 23, world.untagged, 64}};
    EXPECT_EQ(check_send(world.context, control, with_untagged.data()), 0U);
}

}  // namespace
}  // namespace via::engine::check_test
