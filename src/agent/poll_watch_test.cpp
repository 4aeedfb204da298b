#include "agent/poll_watch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace via::agent::poll_watch_test {
namespace {

/// A program that polls so often in each millisecond, and the agent's looks at it.
struct Program {
    PollWatch watch{milliseconds(1)};
    std::uint64_t polls = 0;
    std::uint64_t of_waits = 0;
    Time now{};

    bool look_after(Duration time, std::uint64_t polls_per_ms) {
        now = now + time;
        polls += polls_per_ms * static_cast<std::uint64_t>(time.ns) / 1'000'000;
        return watch.look(polls, of_waits, now);
    }
    /// At the end of the period.
    bool look(std::uint64_t polls_per_ms) { return look_after(watch.period(), polls_per_ms); }
    void poll_for_long() {
        for (int n = 0; n < 5; ++n) EXPECT_TRUE(look(1000));
        EXPECT_EQ(watch.period(), milliseconds(4));
    }
};

TEST(PollWatch, who_stands_still_is_looked_after_in_the_least_period) {
    Program program;
    for (int n = 0; n < 5; ++n) {
        EXPECT_FALSE(program.look(0));
        EXPECT_EQ(program.watch.period(), milliseconds(1));
    }
}

/// What comes between two of its polls would wait for the next one.
TEST(PollWatch, who_polls_seldom_stands_still) {
    Program program;
    for (int n = 0; n < 5; ++n) {
        EXPECT_FALSE(program.look(seldom_polls - 1));
        EXPECT_EQ(program.watch.period(), milliseconds(1));
    }
    program.poll_for_long();
    EXPECT_FALSE(program.look(seldom_polls - 1));
    EXPECT_TRUE(program.look(seldom_polls));
}

TEST(PollWatch, a_few_polls_in_a_short_time_are_not_seldom) {
    Program program;
    EXPECT_TRUE(program.look_after(milliseconds(1), 1000));
    program.polls += 1;
    EXPECT_TRUE(program.look_after(microseconds(10), 0));
}

TEST(PollsAgain, polls_that_are_seldom_do_not_add_up) {
    PollsAgain again{milliseconds(1)};
    for (std::int64_t n = 1; n < 100; ++n) EXPECT_FALSE(again.poll(Time{n * 200'000}));
}

TEST(PollsAgain, who_polls_on_polls_again) {
    PollsAgain again{milliseconds(1)};
    std::uint64_t polls = 1;
    while (!again.poll(Time{1'000'000'000 + static_cast<std::int64_t>(polls) * 1000})) ++polls;
    EXPECT_EQ(polls, seldom_polls);
}

TEST(PollWatch, the_longer_a_program_polls_the_less_often_it_is_looked_at) {
    Program program;
    std::vector<std::int64_t> periods;
    for (int n = 0; n < 5; ++n) {
        periods.push_back(program.watch.period().ns / 1'000'000);
        EXPECT_TRUE(program.look(1000));
    }
    EXPECT_EQ(periods, (std::vector<std::int64_t>{1, 1, 2, 4, 4}));
}

TEST(PollWatch, the_period_of_who_stood_still_begins_anew) {
    Program program;
    program.poll_for_long();
    EXPECT_FALSE(program.look(0));
    EXPECT_EQ(program.watch.period(), milliseconds(1));
    program.look_after(seconds(1), 0);
    program.polls += seldom_polls;  // woken up by its first polls
    program.watch.begin_again(program.polls, 0, program.now);
    EXPECT_EQ(program.watch.period(), milliseconds(1));
    EXPECT_TRUE(program.look(100));  // what was seen before that pause counts no more
    EXPECT_EQ(program.watch.period(), milliseconds(2));
}

TEST(PollWatch, who_polls_half_as_often_as_before_is_looked_at_as_at_first) {
    Program program;
    program.poll_for_long();
    EXPECT_TRUE(program.look(501));
    EXPECT_EQ(program.watch.period(), milliseconds(4));
    EXPECT_TRUE(program.look(250));
    EXPECT_EQ(program.watch.period(), milliseconds(1));
    EXPECT_TRUE(program.look(250));
    EXPECT_EQ(program.watch.period(), milliseconds(2));
}

TEST(PollWatch, who_waits_in_calls_is_looked_at_as_at_first) {
    Program program;
    for (int n = 0; n < 5; ++n) {
        ++program.of_waits;
        EXPECT_TRUE(program.look(1000));
        EXPECT_EQ(program.watch.period(), milliseconds(1));
    }
    program.poll_for_long();
    ++program.of_waits;
    EXPECT_TRUE(program.look(1000));
    EXPECT_EQ(program.watch.period(), milliseconds(1));
}

/// As one that stopped right after a look.
TEST(PollWatch, who_stops_early_in_a_long_period_is_found_at_its_end) {
    Program program;
    program.poll_for_long();
    EXPECT_FALSE(program.look(1));
    EXPECT_EQ(program.watch.period(), milliseconds(1));
}

TEST(PollWatch, a_look_before_the_period_is_over_says_nothing_about_it) {
    Program program;
    for (int n = 0; n < 2; ++n) EXPECT_TRUE(program.look(1000));
    EXPECT_EQ(program.watch.period(), milliseconds(2));
    EXPECT_TRUE(program.look_after(microseconds(100), 1000));
    EXPECT_EQ(program.watch.period(), milliseconds(2));
    EXPECT_FALSE(program.look_after(microseconds(100), 0));  // it may stand still, though
    EXPECT_EQ(program.watch.period(), milliseconds(1));
}

}  // namespace
}  // namespace via::agent::poll_watch_test
