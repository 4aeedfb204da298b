#include "agent/yield_watch.hpp"

#include <gtest/gtest.h>

#include <array>

namespace via::agent::yield_watch_test {
namespace {

/// A program, and the agent's look at it in each millisecond.
struct Program {
    YieldWatch watch;
    std::uint64_t polls = 0;
    std::uint64_t frames = 0;
    Time now{seconds(1000).ns};

    bool look(std::uint64_t polls_more, std::uint64_t frames_more) {
        now = now + milliseconds(1);
        polls += polls_more;
        frames += frames_more;
        return watch.look(polls, frames, now);
    }
    /// Looks until it yields, or does not; how many.
    int looks_until(bool yields, std::uint64_t polls_more, std::uint64_t frames_more) {
        int looks = 1;
        while (look(polls_more, frames_more) != yields && looks < 10'000) ++looks;
        return looks;
    }
};

constexpr int slot_ms = YieldWatch::slot.ns / 1'000'000;
constexpr int window_ms = YieldWatch::window.ns / 1'000'000;
constexpr int trial_ms = YieldWatch::trial.ns / 1'000'000;

TEST(YieldWatch, who_finds_something_now_and_then_never_yields) {
    Program program;
    for (int n = 0; n < 5000; ++n) EXPECT_FALSE(program.look(20000, 5000));
    for (int n = 0; n < 5000; ++n)
        EXPECT_FALSE(program.look(20000, 12)) << "more than one in 100 us";
    for (int n = 0; n < 5000; ++n) EXPECT_FALSE(program.look(20, 2)) << "few polls are empty";
}

TEST(YieldWatch, yields_while_more_comes_by_it) {
    Program program;
    ASSERT_LE(program.looks_until(true, 20000, 0), slot_ms + window_ms);
    // Now and then it is seen what would come without.
    int without = 0;
    for (int n = 0; n < 20'000; ++n)
        if (!program.look(700, 300)) {
            ++without;
            EXPECT_LE(program.looks_until(true, 20000, 0), slot_ms + window_ms);
        }
    EXPECT_EQ(without, 5) << "each yield is four seconds long";
}

TEST(YieldWatch, both_of_a_pair_try_at_once) {
    Program early, late;
    for (int n = 0; n < 30'000; ++n) early.look(20000, 0);  // it tries seldom by now
    late.now = early.now + milliseconds(7);
    late.look(20000, 0);
    int apart = 0;
    // While both yield much comes, else a frame for each time slice.
    for (bool both = false; !both && apart < 10'000; ++apart) {
        const bool one = early.look(20000, apart % 3 == 0 ? 1 : 0);
        const bool other = late.look(20000, apart % 3 == 0 ? 1 : 0);
        both = one && other;
    }
    EXPECT_LE(apart, 2 * slot_ms);
}

TEST(YieldWatch, ends_where_nothing_comes_any_more) {
    Program program;
    program.looks_until(true, 20000, 0);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
    EXPECT_LE(program.looks_until(false, 3000, 0), trial_ms + 2 * window_ms);
}

TEST(YieldWatch, ends_where_somebody_takes_the_processor_who_sends_nothing) {
    Program program;
    program.looks_until(true, 20000, 0);
    // A frame for each of the other's time slices.
    int looks = 1;
    while (program.look(1, looks % 3 == 0 ? 1 : 0)) ++looks;
    EXPECT_LE(looks, trial_ms + window_ms);
}

TEST(YieldWatch, ends_where_as_much_comes_without) {
    Program program;
    program.looks_until(true, 20000, 5);
    EXPECT_LE(program.looks_until(false, 2000, 6), trial_ms + window_ms);
}

TEST(YieldWatch, goes_on_where_somebody_else_wants_the_processor_for_once) {
    Program program;
    program.looks_until(true, 20000, 0);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
    for (int n = 0; n < trial_ms - window_ms; ++n) EXPECT_TRUE(program.look(0, 0));
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
}

TEST(YieldWatch, asks_seldom_where_it_does_not_help) {
    Program program;
    int asked = 0;
    int yielded = 0;
    bool before = false;
    for (int n = 0; n < 60'000; ++n) {
        const bool yields = program.look(before ? 3000 : 20000, 1);
        yielded += yields ? 1 : 0;
        asked += yields && !before ? 1 : 0;
        before = yields;
    }
    EXPECT_NEAR(asked, 60'000 / (16 * slot_ms) + 4, 2);
    EXPECT_LE(yielded, asked * (trial_ms + window_ms));
}

TEST(YieldWatch, a_program_that_stood_still_says_nothing) {
    Program program;
    program.looks_until(true, 20000, 0);
    program.watch.stood_still();
    program.now = program.now + seconds(10);
    EXPECT_FALSE(program.look(1'000'000, 0));
    EXPECT_GE(program.looks_until(true, 20000, 0), window_ms);
}

TEST(YieldWatch, who_looks_late_says_no_less) {
    Program program;
    program.looks_until(true, 20000, 0);
    program.now = program.now + milliseconds(100);
    EXPECT_TRUE(program.look(30'000, 3'000));
}

TEST(YieldWatch, a_machine_that_stood_still_says_nothing) {
    Program program;
    program.looks_until(true, 20000, 0);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
    program.now = program.now + milliseconds(500);
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300));
}

/// Two programs on one processor, each of which polls for what the other sends, and the agents'
/// looks. One runs until its time slice is over, or until it yields.
struct OneProcessor {
    Duration slice, poll, message, look_each;
    std::array<Program, 2> programs{};
    std::array<bool, 2> yields{}, has_message{true, false};
    std::array<Time, 2> look_at{};
    Time now{seconds(1000).ns + milliseconds(37).ns};
    std::uint64_t messages = 0;

    void run_for(Duration time) {
        for (const Time end = now + time; now < end;)
            for (std::size_t n = 0; n < 2; ++n) run_one(n);
    }

private:
    void run_one(std::size_t n) {
        for (const Time end = now + slice; now < end;) {
            look();
            now = now + poll;
            ++programs[n].polls;
            if (has_message[n]) {
                has_message[n] = false;
                has_message[1 - n] = true;
                ++programs[n].frames;
                ++messages;
                now = now + message;
            } else if (yields[n]) {
                return;
            }
        }
    }
    void look() {
        for (std::size_t n = 0; n < 2; ++n) {
            if (now < look_at[n]) continue;
            look_at[n] = now + look_each + milliseconds(n == 0 ? 0 : 1);
            yields[n] = programs[n].watch.look(programs[n].polls, programs[n].frames, now);
        }
    }
};

/// A poll takes less than a microsecond over shared memory, some where it is a call of the kernel,
/// and many times as much in a build that checks, on a slow machine.
TEST(YieldWatch, two_on_one_processor_do_not_wait_for_time_slices_on_any_machine) {
    for (const Duration slice : {milliseconds(1), milliseconds(4), milliseconds(10)})
        for (const Duration poll : {nanoseconds(500), microseconds(3), microseconds(40)})
            for (const Duration look : {milliseconds(1), milliseconds(4)}) {
                const Duration message = poll * 5;
                OneProcessor both{slice, poll, message, look};
                both.run_for(milliseconds(200));  // until both yield
                both.messages = 0;
                both.run_for(milliseconds(400));
                // With time slices alone it would be one for each.
                EXPECT_GE(both.messages, static_cast<std::uint64_t>(milliseconds(300).ns /
                                                                    (message + poll * 3).ns))
                    << slice.ns << " ns a slice, " << poll.ns << " a poll, a look each " << look.ns;
            }
}

}  // namespace
}  // namespace via::agent::yield_watch_test
