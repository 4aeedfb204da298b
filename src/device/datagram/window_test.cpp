#include "device/datagram/window.hpp"

#include <gtest/gtest.h>

#include "device/datagram/constants.hpp"
#include "device/datagram/pacer.hpp"

namespace via::device::datagram::window_test {
namespace {

constexpr std::uint32_t length = 1472;

struct Sender {
    Window window;
    std::uint64_t number = 0;
    Sender() { window.begin(length, milliseconds(10)); }
    /// A round trip in which the whole window was sent and acknowledged; the window draws its
    /// conclusion with the first acknowledgement of the next one.
    void round(Duration round_trip, Duration least, bool limited = true,
               std::uint64_t in_flight = 0) {
        const std::uint64_t packets = window.bytes() / length;
        for (std::uint64_t n = 0; n < packets; ++n) {
            Window::Acknowledged ack;
            ack.bytes = length;
            ack.packets = 1;
            ack.largest = number + n;
            ack.next = number + packets + n;
            ack.held_back = limited;
            ack.in_flight = limited ? window.bytes() : in_flight;
            ack.sampled = true;
            ack.round_trip = round_trip;
            ack.least = least;
            window.on_ack(ack);
        }
        number += packets;
    }
};

TEST(Window, begins_with_ten_packets) {
    Sender sender;
    EXPECT_EQ(sender.window.bytes(), 10 * length);
    Window jumbo;
    jumbo.begin(60000, milliseconds(10));
    EXPECT_EQ(jumbo.bytes(), 120000U) << "RFC 9002: at least two";
}

TEST(Window, begins_with_a_burst_where_meeting_was_quick) {
    Window window;
    window.begin(length, Duration{near_least.ns - 1});
    EXPECT_EQ(window.bytes(), window_bytes_first_near);
    window.begin(length, near_least);
    EXPECT_EQ(window.bytes(), 10 * length);
    window.begin(60000, microseconds(10));
    EXPECT_EQ(window.bytes(), 120000U) << "at least two";
}

TEST(Window, doubles_until_there_is_a_queue) {
    Sender sender;
    std::uint64_t before = sender.window.bytes();
    for (int n = 0; n < 4; ++n) {
        sender.round(milliseconds(1), milliseconds(1));
        EXPECT_NEAR(double(sender.window.bytes()), double(2 * before), 2.0 * length);
        before = sender.window.bytes();
    }
    sender.round(microseconds(1300), milliseconds(1));
    EXPECT_LE(sender.window.bytes(), before + length);
    sender.round(milliseconds(1), milliseconds(1));
    EXPECT_FALSE(sender.window.growing_fast());
    EXPECT_LT(sender.window.bytes(), before);
    before = sender.window.bytes();
    for (int n = 0; n < 3; ++n) sender.round(milliseconds(1), milliseconds(1));
    EXPECT_EQ(sender.window.bytes(), before + 2 * length) << "one packet each round trip";
}

TEST(Window, shrinks_until_the_queue_runs_dry) {
    Sender sender;
    for (int n = 0; n < 5; ++n) sender.round(milliseconds(1), milliseconds(1));
    const std::uint64_t before = sender.window.bytes();
    sender.round(microseconds(1500), milliseconds(1));
    sender.round(milliseconds(100), milliseconds(1));  // sent before the window shrank: not counted
    const double dry = double(before) / 1.5 * 7 / 8;
    EXPECT_NEAR(double(sender.window.bytes()), dry, 0.01 * dry);
    sender.round(milliseconds(100), milliseconds(1));
    const std::uint64_t then = sender.window.bytes();
    sender.round(milliseconds(1), milliseconds(1));
    EXPECT_EQ(sender.window.bytes(), then / 2) << "by half at most";
}

TEST(Window, delay_alone_leaves_four_packets) {
    Sender sender;
    for (int n = 0; n < 6; ++n) sender.round(microseconds(20), microseconds(20));
    EXPECT_GT(sender.window.bytes(), 100 * length);
    for (int n = 0; n < 30; ++n) sender.round(milliseconds(4), microseconds(20));
    EXPECT_EQ(sender.window.bytes(), 4 * length);
    for (int n = 0; n < 5; ++n) {
        sender.window.on_lost(300);
        sender.round(microseconds(20), microseconds(20), false);
        sender.round(microseconds(20), microseconds(20), false);
    }
    EXPECT_LT(sender.window.bytes(), 4 * length) << "loss is of the way";
}

TEST(Window, grows_faster_the_longer_there_is_no_queue) {
    Sender sender;
    for (int n = 0; n < 30; ++n) sender.round(milliseconds(4), microseconds(20));
    sender.round(microseconds(20), microseconds(20));
    const std::uint64_t least = sender.window.bytes();
    ASSERT_EQ(least, 4 * length);
    for (std::uint32_t n = 0; n < growth_rounds; ++n)
        sender.round(microseconds(20), microseconds(20));
    EXPECT_EQ(sender.window.bytes(), least + growth_rounds * length) << "one packet each round";
    for (std::uint32_t n = 0; n < 7 * growth_rounds; ++n)
        sender.round(microseconds(20), microseconds(20));
    EXPECT_GT(sender.window.bytes(), 1'000'000U);
    sender.round(milliseconds(4), microseconds(20));
    sender.round(microseconds(20), microseconds(20));
    const std::uint64_t then = sender.window.bytes();
    sender.round(microseconds(20), microseconds(20));
    EXPECT_EQ(sender.window.bytes(), then) << "what came was sent before it shrank";
    sender.round(microseconds(20), microseconds(20));
    EXPECT_EQ(sender.window.bytes(), then + length) << "from the beginning";
}

TEST(Window, who_is_not_held_back_keeps_twice_what_he_uses_and_grows_fast_again) {
    Sender sender;
    for (int n = 0; n < 5; ++n) sender.round(microseconds(20), microseconds(20));
    ASSERT_GT(sender.window.bytes(), 200 * length);
    sender.round(milliseconds(4), microseconds(20), false, 20 * length);
    sender.round(microseconds(20), microseconds(20), false, length);
    EXPECT_EQ(sender.window.bytes(), 40 * length);
    for (int n = 0; n < 5; ++n) sender.round(milliseconds(4), microseconds(20), false, length);
    EXPECT_EQ(sender.window.bytes(), 10 * length) << "no less than at the beginning";
    EXPECT_TRUE(sender.window.growing_fast());
}

TEST(Window, does_not_grow_unused) {
    Sender sender;
    sender.round(milliseconds(1), milliseconds(1), false);
    EXPECT_EQ(sender.window.bytes(), 10 * length);
}

TEST(Window, a_little_loss_is_no_congestion) {
    Sender sender;
    const std::uint64_t before = sender.window.bytes();
    for (int n = 0; n < 5; ++n) sender.window.on_lost(1);  // 5 of 256
    EXPECT_EQ(sender.window.bytes(), before);
    sender.window.on_lost(1);
    EXPECT_EQ(sender.window.bytes(), before * 7 / 10);
    sender.window.on_lost(50);
    EXPECT_EQ(sender.window.bytes(), before * 7 / 10) << "once in a round trip";
}

TEST(Window, collapses_to_two_packets) {
    Sender sender;
    sender.window.collapse();
    EXPECT_EQ(sender.window.bytes(), 2 * length);
    for (int n = 0; n < 30; ++n) sender.window.on_lost(100);
    EXPECT_EQ(sender.window.bytes(), 2 * length) << "the least";
}

TEST(Pacer, spreads_five_quarters_of_a_window) {
    Pacer pacer;
    const std::uint64_t window = 1'000'000;
    pacer.set_pace(window, milliseconds(10), length);
    Time now{1};
    std::uint64_t sent = 0;
    for (; now < Time{100'000'001}; now = now + microseconds(7))
        while (pacer.may_send(0, now)) {
            pacer.sent(length, now);
            sent += length;
        }
    EXPECT_NEAR(double(sent), 1.25 * 10 * double(window), 0.01 * 1.25e7);
}

TEST(Pacer, bursts_are_bounded) {
    Pacer pacer;
    pacer.set_pace(1'000'000, milliseconds(10), length);
    Time now{seconds(1).ns};
    std::uint64_t burst = 0;
    while (pacer.may_send(burst, now)) burst += length;
    EXPECT_LE(burst, burst_bytes_max + length);
    pacer.sent(static_cast<std::uint32_t>(burst), now);
    EXPECT_FALSE(pacer.may_send(0, now));
    const Time next = pacer.next_burst();
    EXPECT_GT(next, now);
    EXPECT_TRUE(pacer.may_send(burst_bytes_max / 2 - length, next));
}

TEST(Pacer, without_a_round_trip_nothing_waits) {
    Pacer pacer;
    EXPECT_TRUE(pacer.may_send(1U << 30, Time{}));
}

}  // namespace
}  // namespace via::device::datagram::window_test
