// Beside a walk through everything that is posted.
#include <deque>

#include "base/random.hpp"
#include "engine/pair_test.hpp"

namespace via::engine::test::region_use_test {
namespace {

/// A queue into which descriptors are posted that name regions by number.
struct Scene {
    Scene() { EXPECT_TRUE(work.prepare()); }
    void post(memory::MemoryHandle of_descriptor, std::vector<queue::Segment> segments,
              std::uint16_t operation = 0) {
        queue::Descriptor& descriptor = descriptors[posted++ % descriptors.size()];
        queue::ControlSegment control{};
        control.control = operation;
        control.segment_count = static_cast<std::uint16_t>(segments.size());
        segments.resize(std::max<std::size_t>(segments.size(), 2));
        ASSERT_EQ(work.post(&descriptor, of_descriptor, control, segments.data(), 0, 1U << 16),
                  Status::success);
    }
    void complete() {
        work.start_next();
        work.complete_oldest();
        ++progress;
        queue::Taken taken;
        ASSERT_TRUE(work.take(taken));
    }
    bool uses(memory::MemoryHandle handle, bool sends = true) {
        return use.uses(work, handle, sends, progress, looked_at);
    }

    std::vector<queue::Descriptor> descriptors = std::vector<queue::Descriptor>(1024);
    queue::WorkQueue work;
    RegionUse use;
    std::uint64_t progress = 0;
    std::uint64_t looked_at = 0;
    std::size_t posted = 0;
};

TEST(RegionUse, says_what_a_walk_through_all_says) {
    Scene scene;
    std::deque<std::vector<memory::MemoryHandle>> expected;
    Random random(3);
    const auto region = [&] { return static_cast<memory::MemoryHandle>(1 + random.below(600)); };
    for (int n = 0; n < 20000; ++n) {
        const std::uint64_t choice = random.below(10);
        if (choice < 4 && expected.size() < 900) {
            std::vector<memory::MemoryHandle> used{region()};
            std::vector<queue::Segment> segments(random.below(12));
            const bool rdma = !segments.empty() && random.below(3) == 0;
            for (std::size_t at = 0; at < segments.size(); ++at) {
                segments[at] = {0, region(), static_cast<std::uint32_t>(random.below(2))};
                if (segments[at].length != 0 && !(rdma && at == 0))
                    used.push_back(segments[at].handle);
            }
            scene.post(used.front(), segments, rdma ? queue::control::rdma_write : 0);
            expected.push_back(used);
        } else if (choice < 8 && !expected.empty()) {
            scene.complete();
            expected.pop_front();
        } else {
            const memory::MemoryHandle asked = region();
            const bool is_used = std::ranges::any_of(expected, [&](const auto& used) {
                return std::ranges::find(used, asked) != used.end();
            });
            ASSERT_EQ(scene.uses(asked), is_used) << n;
        }
    }
}

TEST(RegionUse, what_is_posted_is_looked_at_once_however_many_regions_go) {
    constexpr std::uint64_t count = 1000;
    Scene scene;
    for (std::uint64_t n = 0; n < count; ++n) scene.post(1, {{0, 2, 10}});
    for (memory::MemoryHandle region = 3; region < 200; ++region) EXPECT_FALSE(scene.uses(region));
    EXPECT_EQ(scene.looked_at, count);
    for (int n = 0; n < 10; ++n) scene.post(1, {{0, 2, 10}});
    EXPECT_FALSE(scene.uses(3));
    EXPECT_EQ(scene.looked_at, count + 10);
    EXPECT_TRUE(scene.uses(2));
}

/// Positions are counted modulo 2^32: an old one may look like one of now.
TEST(RegionUse, what_was_seen_very_long_ago_is_not_believed) {
    Scene scene;
    scene.post(1, {{0, 2, 10}});
    scene.post(3, {{0, 2, 10}});
    EXPECT_FALSE(scene.uses(4));
    scene.progress += 1U << 25;
    EXPECT_FALSE(scene.uses(4));
    EXPECT_EQ(scene.looked_at, 4U);
    EXPECT_TRUE(scene.uses(3));
}

}  // namespace
}  // namespace via::engine::test::region_use_test
