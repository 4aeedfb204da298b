#include "agent/rest_watch.hpp"

#include <gtest/gtest.h>

namespace via::agent::rest_watch_test {
namespace {

/// A program, and the agent's look at it in each millisecond.
struct Program {
    RestWatch watch;
    std::uint64_t polls = 0;
    std::uint64_t frames = 0;
    Time now{seconds(1000).ns};

    bool look(std::uint64_t polls_more, std::uint64_t frames_more) {
        now = now + milliseconds(1);
        polls += polls_more;
        frames += frames_more;
        return watch.look(polls, frames, now);
    }
    /// Looks until it rests, or does not; how many.
    int looks_until(bool rests, std::uint64_t polls_more, std::uint64_t frames_more) {
        int looks = 1;
        while (look(polls_more, frames_more) != rests && looks < 10'000) ++looks;
        return looks;
    }
};

constexpr int slot_ms = RestWatch::slot.ns / 1'000'000;
constexpr int window_ms = RestWatch::window.ns / 1'000'000;
constexpr int trial_ms = RestWatch::trial.ns / 1'000'000;

TEST(RestWatch, who_finds_something_now_and_then_never_rests) {
    Program program;
    for (int n = 0; n < 5000; ++n) EXPECT_FALSE(program.look(20000, 5000));
    for (int n = 0; n < 5000; ++n)
        EXPECT_FALSE(program.look(100, n % 2 == 0 ? 1 : 0)) << "too few to tell";
}

TEST(RestWatch, rests_while_more_comes_by_it) {
    Program program;
    ASSERT_LE(program.looks_until(true, 20000, 0), slot_ms + window_ms);
    // Now and then it is seen what would come without.
    int without = 0;
    for (int n = 0; n < 20'000; ++n)
        if (!program.look(700, 300)) {
            ++without;
            EXPECT_LE(program.looks_until(true, 20000, 0), slot_ms + window_ms);
        }
    EXPECT_EQ(without, 5) << "each rest is four seconds long";
}

TEST(RestWatch, both_of_a_pair_try_at_once) {
    Program early, late;
    for (int n = 0; n < 30'000; ++n) early.look(20000, 0);  // it tries seldom by now
    late.now = early.now + milliseconds(7);
    late.look(20000, 0);
    int apart = 0;
    // While both rest much comes, else a frame for each time slice.
    for (bool both = false; !both && apart < 10'000; ++apart) {
        const bool one = early.look(20000, apart % 3 == 0 ? 1 : 0);
        const bool other = late.look(20000, apart % 3 == 0 ? 1 : 0);
        both = one && other;
    }
    EXPECT_LE(apart, 2 * slot_ms);
}

TEST(RestWatch, ends_where_nothing_comes_any_more) {
    Program program;
    program.looks_until(true, 20000, 0);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
    EXPECT_LE(program.looks_until(false, 3000, 0), 2 * window_ms);
}

TEST(RestWatch, ends_where_somebody_takes_the_processor_who_sends_nothing) {
    Program program;
    program.looks_until(true, 20000, 0);
    // A frame for each of the other's time slices.
    EXPECT_LE(program.looks_until(false, 2, 1), trial_ms + window_ms);
}

TEST(RestWatch, ends_where_as_much_comes_without) {
    Program program;
    program.looks_until(true, 20000, 50);
    EXPECT_LE(program.looks_until(false, 2000, 60), trial_ms + window_ms);
}

TEST(RestWatch, asks_seldom_where_it_does_not_help) {
    Program program;
    int asked = 0;
    int rested = 0;
    bool before = false;
    for (int n = 0; n < 60'000; ++n) {
        const bool rests = program.look(before ? 3000 : 20000, 1);
        rested += rests ? 1 : 0;
        asked += rests && !before ? 1 : 0;
        before = rests;
    }
    EXPECT_NEAR(asked, 60'000 / (16 * slot_ms) + 4, 2);
    EXPECT_LE(rested, asked * (trial_ms + window_ms));
}

TEST(RestWatch, a_program_that_stood_still_says_nothing) {
    Program program;
    program.looks_until(true, 20000, 0);
    program.now = program.now + seconds(10);
    EXPECT_FALSE(program.look(1'000'000, 0));
    EXPECT_GE(program.looks_until(true, 20000, 0), window_ms);
}

}  // namespace
}  // namespace via::agent::rest_watch_test
