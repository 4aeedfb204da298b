#include "device/datagram/ack_policy.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::ack_policy_test {
namespace {

constexpr std::uint32_t room = 100'000;
constexpr Time start{1'000'000'000};

AckPolicy::Arrival arrival(std::uint64_t look, bool more = false) {
    return {start, look, 1000, true, more, false};
}
/// The first look behind `look` that makes it due, where looks take no time.
std::uint64_t due_after(AckPolicy acks, std::uint64_t look) {
    std::uint64_t n = look;
    while (!acks.on_look(n, start)) ++n;
    return n - look;
}

TEST(AckPolicy, who_answers_has_some_looks_to_do_so) {
    AckPolicy acks;
    acks.arrived(arrival(7));
    EXPECT_FALSE(acks.is_due());
    EXPECT_EQ(due_after(acks, 7), looks_for_an_answer);
}

TEST(AckPolicy, the_rest_of_a_message_has_more_of_them) {
    AckPolicy acks;
    acks.arrived(arrival(7, true));
    EXPECT_EQ(due_after(acks, 7), looks_for_the_rest);
}

TEST(AckPolicy, a_rest_that_came_late_is_not_waited_for_again) {
    struct Row {
        std::uint64_t after;  ///< looks
        std::uint64_t next;
    };
    for (const auto [after, next] : {Row{1, looks_for_the_rest},
                                     {looks_for_the_rest, looks_for_the_rest},
                                     {looks_for_the_rest + 1, looks_for_an_answer}}) {
        AckPolicy acks;
        acks.arrived(arrival(7, true));
        acks.arrived(arrival(7 + after, true));
        EXPECT_EQ(due_after(acks, 7 + after), next) << after;
    }
}

TEST(AckPolicy, looks_that_take_long_are_not_counted) {
    AckPolicy acks;
    acks.arrived(arrival(7, true));
    EXPECT_FALSE(acks.on_look(7, start + Duration{looks_take_max.ns - 1}));
    EXPECT_TRUE(acks.on_look(7, start + looks_take_max));
    EXPECT_TRUE(acks.is_due());
}

TEST(AckPolicy, a_gap_is_told_at_once_and_the_next_packet_changes_nothing) {
    AckPolicy acks;
    AckPolicy::Arrival in = arrival(7);
    in.gap = true;
    acks.arrived(in);
    EXPECT_TRUE(acks.is_due());
    acks.arrived(arrival(7));
    EXPECT_TRUE(acks.is_due());
    acks.acknowledged();
    EXPECT_FALSE(acks.is_due());
}

TEST(AckPolicy, a_sender_that_may_wait_for_room_is_told_at_once) {
    AckPolicy acks;
    acks.arrived(arrival(7));
    acks.more_arrived(room / ack_room_divisor - 1001);
    acks.on_room(room);
    EXPECT_FALSE(acks.is_due());
    acks.more_arrived(1);
    acks.on_room(room);
    EXPECT_TRUE(acks.is_due());
    acks.acknowledged();
    acks.on_room(room);
    EXPECT_FALSE(acks.is_due()) << "that was told";
}

TEST(AckPolicy, the_first_that_is_owed_for_says_until_when) {
    AckPolicy acks;
    acks.arrived(arrival(7));
    AckPolicy::Arrival later = arrival(8);
    later.now = start + Duration{ack_delay_max.ns - 1};
    later.first = false;
    acks.arrived(later);
    EXPECT_EQ(acks.latest(), start + ack_delay_max);
    acks.on_time(later.now);
    EXPECT_FALSE(acks.is_due());
    acks.on_time(acks.latest());
    EXPECT_TRUE(acks.is_due());
}

TEST(AckPolicy, one_that_left_alone_is_unsure_until_one_that_names_as_much_is_heard) {
    AckPolicy acks;
    EXPECT_FALSE(acks.is_unsure());
    acks.left_alone(20);
    acks.was_heard(19);
    EXPECT_TRUE(acks.is_unsure());
    acks.was_heard(20);
    EXPECT_FALSE(acks.is_unsure());
}

}  // namespace
}  // namespace via::device::datagram::ack_policy_test
