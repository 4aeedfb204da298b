#include "device/datagram/polls.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::polls_test {
namespace {

constexpr Time start{1'000'000'000};

struct Poller : testing::Test {
    Polls polls;
    Time now = start;

    Poller() { polls.found_nothing(now); }
    /// A look that finds something, so long after the last one. Returns for how long that may have
    /// waited.
    Duration find(Duration after, Time told = Time::never()) {
        now = now + after;
        polls.found(now, told);
        return now - polls.came();
    }
};

using PollsTest = Poller;

TEST_F(PollsTest, many_empty_ones_make_most_not_worth_making) {
    for (std::uint32_t n = 1; n < empty_polls_max; ++n) {
        EXPECT_TRUE(polls.is_worthwhile(false)) << n;
        polls.found_nothing(now);
    }
    int made = 0;
    for (std::uint32_t n = 0; n < 10 * polls_left_out_max; ++n) made += polls.is_worthwhile(false);
    EXPECT_EQ(made, 10);
    EXPECT_TRUE(polls.is_worthwhile(true)) << "looks count for who owes an acknowledgement";
    polls.expect_news();
    EXPECT_TRUE(polls.is_worthwhile(false));
}

TEST_F(PollsTest, what_a_steady_poller_finds_just_came) {
    EXPECT_EQ(find(microseconds(10)), Duration{});
    EXPECT_EQ(find(Duration{absence_least.ns - 1}), Duration{});
}

TEST_F(PollsTest, behind_an_absence_it_may_have_waited_since_the_last_look) {
    EXPECT_EQ(find(milliseconds(3)), milliseconds(3));
    EXPECT_EQ(find(microseconds(10)), milliseconds(3) + microseconds(10));
    polls.found_nothing(now);
    EXPECT_EQ(find(microseconds(10)), Duration{}) << "all that waited was read";
}

TEST_F(PollsTest, who_reads_for_longer_than_it_was_away_just_cannot_keep_up) {
    const Duration away = absence_least;
    EXPECT_EQ(find(away), away);
    EXPECT_EQ(find(Duration{away.ns - 1}), away + Duration{away.ns - 1});
    EXPECT_EQ(find(nanoseconds(2)), Duration{});
}

TEST_F(PollsTest, who_sleeps_is_woken_at_once) {
    polls.set_asleep(true);
    EXPECT_EQ(find(milliseconds(3)), Duration{});
    polls.set_asleep(false);
    polls.passed(now + milliseconds(3));
    EXPECT_EQ(find(milliseconds(3)), Duration{}) << "was not away";
}

TEST_F(PollsTest, a_port_that_knows_is_believed) {
    EXPECT_EQ(find(milliseconds(3), start + milliseconds(2)), milliseconds(1));
}

TEST_F(PollsTest, each_look_has_a_number) {
    const std::uint64_t before = polls.number();
    polls.passed(now);
    EXPECT_EQ(polls.number(), before);
    polls.found_nothing(now);
    find({});
    EXPECT_EQ(polls.number(), before + 2);
}

}  // namespace
}  // namespace via::device::datagram::polls_test
