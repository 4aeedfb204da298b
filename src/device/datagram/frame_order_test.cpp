#include "device/datagram/frame_order.hpp"

#include <gtest/gtest.h>

#include "device/datagram/deadlines.hpp"
#include "device/datagram/identifier_table.hpp"

#include "base/random.hpp"

namespace via::device::datagram::frame_order_test {
namespace {

using Place = FrameOrder::Place;

void hold(FrameOrder& order, std::uint32_t number, const FrameOrder::Held& frame) {
    order.make_place(number);
    order.hold(number, frame);
}

TEST(FrameOrder, holds_what_comes_early) {
    FrameOrder order;
    const std::byte bytes[8]{};
    EXPECT_EQ(order.place(0, order.next()), Place::next);
    EXPECT_EQ(order.place(2, order.next()), Place::ahead);
    hold(order, 2, {bytes, 8, 5});
    hold(order, 1, {bytes, 7, 4});
    EXPECT_EQ(order.place(2, order.next()), Place::duplicate);
    FrameOrder::Held held;
    EXPECT_FALSE(order.take(held));
    order.advance();
    ASSERT_TRUE(order.take(held));
    EXPECT_EQ(held.length, 7U);
    ASSERT_TRUE(order.take(held));
    EXPECT_EQ(held.buffer, 5U);
    EXPECT_FALSE(order.take(held));
    EXPECT_EQ(order.next(), 3U);
    EXPECT_EQ(order.place(0, order.next()), Place::duplicate);
}

TEST(FrameOrder, reaches_further_with_each_frame_held) {
    FrameOrder order;
    EXPECT_EQ(order.place(frames_ahead_least - 1, order.next()), Place::ahead);
    EXPECT_EQ(order.place(frames_ahead_least, order.next()), Place::too_far);
    EXPECT_EQ(order.place(~0U, order.next()), Place::duplicate) << "the one before 0";
    std::uint64_t let_go = 0;
    const std::byte bytes[1]{};
    for (std::uint32_t n = 1; n < frames_ahead_max; ++n) {
        ASSERT_EQ(order.place(n, order.next()), Place::ahead);
        hold(order, n, {bytes, 1, n});
        ASSERT_TRUE(order.is_held(n));
    }
    EXPECT_EQ(order.place(frames_ahead_max, order.next()), Place::too_far) << "the end";
    order.clear([&](const FrameOrder::Held& held) { let_go += held.buffer; });
    EXPECT_EQ(let_go, std::uint64_t{frames_ahead_max} * (frames_ahead_max - 1) / 2);
    EXPECT_EQ(order.held(), 0U);
}

TEST(FrameOrder, a_long_row_comes_out_in_order_over_and_over) {
    FrameOrder order;
    const std::byte bytes[1]{};
    for (int round = 0; round < 5; ++round) {
        const std::uint32_t lost = order.next();
        for (std::uint32_t n = 1; n <= 5000; ++n) hold(order, lost + n, {bytes, n, 0});
        order.advance();
        FrameOrder::Held held;
        for (std::uint32_t n = 1; n <= 5000; ++n) {
            ASSERT_TRUE(order.take(held));
            ASSERT_EQ(held.length, n);
        }
        EXPECT_FALSE(order.take(held));
    }
}

/// All frames of a packet are judged before the first is taken; those taken bring what is held with
/// them, and with that the reach of the others.
TEST(FrameOrder, what_has_its_place_keeps_it_while_others_are_taken) {
    FrameOrder order;
    const std::byte bytes[1]{};
    for (std::uint32_t n = 1; n <= 500; ++n) hold(order, n, {bytes, n, 0});
    const std::uint32_t after = 501;  // next, when 0 was taken
    std::uint32_t furthest = after;
    while (order.place(furthest + 1, after) == Place::ahead) ++furthest;
    EXPECT_GE(furthest, frames_ahead_least);
    order.advance();
    FrameOrder::Held held;
    while (order.take(held)) {
    }
    ASSERT_EQ(order.next(), after);
    EXPECT_EQ(order.place(furthest, after), Place::ahead);
}

TEST(Deadlines, in_order) {
    Deadlines deadlines;
    Random random(3);
    std::vector<std::int64_t> moments(200);
    for (std::uint32_t id = 0; id < 200; ++id) {
        moments[id] = static_cast<std::int64_t>(random.below(1000));
        deadlines.at_latest(id, Time{5000});
        deadlines.at_latest(id, Time{moments[id]});
        deadlines.at_latest(id, Time{6000});  // later: the earlier one stays
    }
    for (std::uint32_t id = 0; id < 200; id += 3) deadlines.remove(id);
    std::int64_t before = 0;
    std::uint32_t id = 0;
    std::uint32_t count = 0;
    for (; !deadlines.next().is_never(); ++count) {
        const Time next = deadlines.next();
        EXPECT_FALSE(deadlines.take_due(Time{next.ns - 1}, id));
        ASSERT_TRUE(deadlines.take_due(next, id));
        EXPECT_NE(id % 3, 0U);
        EXPECT_EQ(next.ns, moments[id]);
        EXPECT_LE(before, next.ns);
        before = next.ns;
    }
    EXPECT_EQ(count, 133U);
    EXPECT_FALSE(deadlines.take_due(Time{1'000'000}, id));
}

TEST(IdentifierTable, agrees_with_a_map) {
    IdentifierTable table;
    Random random(9);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> there;
    for (std::uint32_t n = 0; n < 20000; ++n) {
        if (there.size() < 300 && random.chance(55)) {
            // Few low bits: places collide.
            const std::uint64_t identifier = (std::uint64_t{n + 1} << 20) | random.below(8);
            table.add(identifier, n);
            there.emplace_back(identifier, n);
        } else if (!there.empty()) {
            const std::size_t at = random.below(there.size());
            table.remove(there[at].first);
            EXPECT_EQ(table.find(there[at].first), IdentifierTable::none);
            there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
        }
        // A find goes over a hundred that collide: those of every step take a sanitizer's minute.
        if (n % 16 != 0) continue;
        for (const auto& [identifier, path] : there)
            if (table.find(identifier) != path) FAIL() << identifier << " leads elsewhere";
    }
    EXPECT_EQ(table.find(0), IdentifierTable::none);
}

}  // namespace
}  // namespace via::device::datagram::frame_order_test
