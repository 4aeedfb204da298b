#include "device/datagram/sent_packets.hpp"

#include <gtest/gtest.h>

#include "device/datagram/frames_under_way.hpp"

namespace via::device::datagram::sent_packets_test {
namespace {

using Numbers = std::vector<std::uint64_t>;

struct Sender {
    SentPackets sent;
    void push(std::int64_t at_us, std::initializer_list<std::uint32_t> frames = {},
              bool wants_ack = true) {
        for (const std::uint32_t frame : frames) sent.add_frame(frame);
        sent.push(Time{at_us * 1000}, 1000, wants_ack, 0, false);
    }
    Numbers acknowledge(std::uint64_t largest, std::initializer_list<wire::AckRange> ranges) {
        wire::Ack ack;
        ack.largest = largest;
        for (const wire::AckRange& range : ranges) ack.ranges[ack.count++] = range;
        Numbers arrived;
        sent.acknowledge(ack, [&](std::uint64_t number, const SentPacket&, bool was_lost) {
            arrived.push_back(was_lost ? number + 1000 : number);
        });
        return arrived;
    }
    Numbers lose(std::int64_t now_us, std::int64_t delay_us, Time* next = nullptr) {
        Numbers lost;
        const Time at = sent.detect_lost(
            Time{now_us * 1000}, microseconds(delay_us), reordering_least,
            [&](std::uint64_t number, const SentPacket&) { lost.push_back(number); });
        if (next != nullptr) *next = at;
        return lost;
    }
};

TEST(SentPackets, news_once) {
    Sender sender;
    for (int n = 0; n < 5; ++n) sender.push(n);
    EXPECT_EQ(sender.sent.in_flight(), 5000U);
    EXPECT_EQ(sender.acknowledge(3, {{0, 1}, {1, 2}}), (Numbers{3, 1, 0}));
    EXPECT_EQ(sender.acknowledge(3, {{0, 1}, {1, 2}}), Numbers{});
    EXPECT_EQ(sender.acknowledge(4, {{0, 5}}), (Numbers{4, 2}));
    EXPECT_EQ(sender.sent.in_flight(), 0U);
    sender.sent.retire();
    EXPECT_EQ(sender.acknowledge(4, {{0, 5}}), Numbers{});
}

TEST(SentPackets, lost_by_number) {
    Sender sender;
    for (int n = 0; n < 6; ++n) sender.push(n);
    sender.acknowledge(3, {{0, 1}});
    EXPECT_EQ(sender.lose(10, 1000), Numbers{0}) << "three behind; 1 and 2 may be late only";
    sender.acknowledge(5, {{0, 1}});
    EXPECT_EQ(sender.lose(11, 1000), (Numbers{1, 2}));
    EXPECT_EQ(sender.sent.in_flight(), 1000U) << "packet 4";
}

TEST(SentPackets, lost_by_time) {
    Sender sender;
    sender.push(0);
    sender.push(5);
    sender.acknowledge(1, {{0, 1}});
    Time next;
    EXPECT_EQ(sender.lose(50, 100, &next), Numbers{});
    EXPECT_EQ(next, Time{100'000});
    EXPECT_EQ(sender.lose(100, 100, &next), Numbers{0});
    EXPECT_TRUE(next.is_never());
}

TEST(SentPackets, nothing_behind_the_largest_is_lost) {
    Sender sender;
    sender.push(0);
    EXPECT_EQ(sender.lose(1'000'000, 1), Numbers{}) << "no acknowledgement, no loss";
    sender.push(1);
    sender.acknowledge(0, {{0, 1}});
    EXPECT_EQ(sender.lose(1'000'000, 1), Numbers{});
}

TEST(SentPackets, spurious) {
    Sender sender;
    for (int n = 0; n < 4; ++n) sender.push(n);
    sender.acknowledge(3, {{0, 1}});
    EXPECT_EQ(sender.lose(10, 1000), Numbers{0});
    sender.sent.retire();
    EXPECT_EQ(sender.acknowledge(3, {{0, 4}}), (Numbers{2, 1, 1000}));
    EXPECT_EQ(sender.sent.in_flight(), 0U);
}

TEST(SentPackets, what_nobody_answers_takes_no_room) {
    Sender sender;
    for (int n = 0; n < 1000; ++n) sender.push(n, {}, false);
    EXPECT_EQ(sender.sent.remembered(), 0U);
    EXPECT_EQ(sender.sent.in_flight(), 0U);
    EXPECT_EQ(sender.sent.oldest_in_flight(), 1000U);
    sender.push(1000, {7, 8});
    EXPECT_EQ(sender.sent.oldest_in_flight(), 1000U);
    EXPECT_EQ(sender.sent.frame(sender.sent.packet(1000), 0), 7U);
    EXPECT_EQ(sender.sent.frame(sender.sent.packet(1000), 1), 8U);
}

TEST(SentPackets, what_is_behind_a_lost_one_takes_bounded_room) {
    Sender sender;
    for (int n = 0; n < 4; ++n) sender.push(n);
    sender.acknowledge(3, {{0, 3}});
    EXPECT_EQ(sender.lose(10, 1000), Numbers{0});
    sender.sent.remember(packets_remembered_max);
    for (std::uint32_t n = 0; n < 2 * packets_remembered_max; ++n) sender.push(20, {}, false);
    EXPECT_LE(sender.sent.remembered(), packets_remembered_max);
}

TEST(SentPackets, the_oldest_is_given_up_where_too_many_are_behind_it) {
    Sender sender;
    sender.push(0, {7});
    sender.push(1, {8});
    sender.sent.remember(packets_remembered_max);
    for (std::uint32_t n = 0; n <= packets_remembered_max; ++n) sender.push(2, {}, false);
    ASSERT_TRUE(sender.sent.is_crowded());
    Numbers given_up;
    const auto note = [&](std::uint64_t number, const SentPacket& packet) {
        given_up.push_back(number);
        given_up.push_back(sender.sent.frame(packet, 0));
    };
    sender.sent.give_up_oldest(note);
    sender.sent.give_up_oldest(note);
    EXPECT_EQ(given_up, (Numbers{0, 7, 1, 8}));
    EXPECT_EQ(sender.sent.in_flight(), 0U);
    EXPECT_EQ(sender.sent.remembered(), 0U);
}

TEST(FramesUnderWay, each_is_reported_once) {
    FramesUnderWay frames;
    EXPECT_EQ(frames.take(), 0U);
    EXPECT_EQ(frames.take(), 1U);
    frames.sent(0, 10);
    frames.sent(1, 11);
    EXPECT_TRUE(frames.lost(0, 10));
    EXPECT_FALSE(frames.lost(0, 10)) << "told already";
    frames.sent(0, 12);
    EXPECT_FALSE(frames.lost(0, 10)) << "sent again since";
    EXPECT_TRUE(frames.lost(0, 12));
    EXPECT_TRUE(frames.arrived(0));
    EXPECT_FALSE(frames.arrived(0));
    EXPECT_FALSE(frames.lost(0, 12));
    EXPECT_EQ(frames.count(), 1U);
}

TEST(FramesUnderWay, bound_and_wrap) {
    FramesUnderWay frames;
    while (frames.has_room()) frames.take();
    EXPECT_EQ(frames.count(), frames_under_way_least);
    frames.allow(frames_ahead_max);
    for (std::uint64_t n = 0; n < 50000; ++n) {
        while (frames.has_room()) frames.take();
        ASSERT_EQ(frames.count(), frames_ahead_max);
        ASSERT_TRUE(frames.arrived(static_cast<std::uint32_t>(n)));
    }
    EXPECT_FALSE(frames.under_way(49999));
    EXPECT_TRUE(frames.under_way(50000));
}

}  // namespace
}  // namespace via::device::datagram::sent_packets_test
