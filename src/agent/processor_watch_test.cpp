#include "agent/processor_watch.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <thread>

namespace via::agent::processor_watch_test {
namespace {

constexpr Duration period = milliseconds(1);
constexpr std::uint64_t seldom = 8;

/// A program that the agent looks at.
struct Program {
    ProcessorWatch watch{period, seldom};
    Ran ran{milliseconds(7), 3};

    bool look(Duration ran_since, std::uint64_t polls = 0, std::uint64_t sleeps = 0,
              bool steady = false) {
        ran.time = ran.time + ran_since;
        ran.sleeps += sleeps;
        return watch.look(ran, polls, steady);
    }
    void poll_for_long() {
        for (int n = 0; n < 5; ++n) EXPECT_TRUE(look(period, 1000, 0, true));
    }
};

TEST(ProcessorWatch, who_never_polled_stands_still) {
    Program program;
    EXPECT_FALSE(program.look({}));
}

TEST(ProcessorWatch, who_neither_runs_nor_sleeps_has_no_processor) {
    Program program;
    program.poll_for_long();
    for (int n = 0; n < 50; ++n) EXPECT_TRUE(program.look(microseconds(5)));  // a moment each time
}

TEST(ProcessorWatch, who_runs_and_does_not_poll_computes_until_it_polls) {
    Program program;
    program.poll_for_long();
    EXPECT_FALSE(program.look(period));
    EXPECT_FALSE(program.look({}));
    EXPECT_TRUE(program.look(period, 1000));
    EXPECT_TRUE(program.look({}));
}

/// It had 20 microseconds in a millisecond, and polled in them.
TEST(ProcessorWatch, few_polls_of_who_runs_seldom_are_as_many_as_it_can) {
    Program program;
    program.look({});
    for (int n = 0; n < 1000; ++n) EXPECT_TRUE(program.look(microseconds(20), 1));
}

TEST(ProcessorWatch, few_polls_of_who_runs_all_the_time_are_none) {
    Program program;
    program.poll_for_long();
    for (int n = 0; n < 10; ++n) EXPECT_FALSE(program.look(period, seldom - 1));
}

TEST(ProcessorWatch, few_polls_of_who_sleeps_between_them_are_none) {
    Program program;
    program.poll_for_long();
    for (int n = 0; n < 10; ++n) EXPECT_FALSE(program.look(microseconds(20), 1, 1));
}

/// The look that sees its last poll sees it asleep already.
TEST(ProcessorWatch, who_sleeps_after_its_last_poll_stands_still) {
    Program program;
    program.poll_for_long();
    EXPECT_TRUE(program.look(period, 1000, 1, true));
    EXPECT_FALSE(program.look({}));
}

/// Where the system counts nothing.
TEST(ProcessorWatch, nobody_is_without_a_processor_for_ever) {
    Program program;
    program.poll_for_long();
    unsigned looks = 0;
    while (program.look({}) && looks < 10'000) ++looks;
    EXPECT_LT(looks, 10'000U);
    EXPECT_GT(looks, 10U);
}

TEST(ProcessorWatch, what_the_caller_does_itself_does_not_count) {
    const auto time_of = [](clockid_t clock) {
        timespec time{};
        clock_gettime(clock, &time);
        return seconds(time.tv_sec) + Duration{time.tv_nsec};
    };
    // A thread of its own, so that the main thread only waits in join().
    std::thread([&] {
        const auto told = ran_beside_caller();
        const Ran before = told();
        for (int n = 0; n < 5; ++n) {
            const timespec moment{0, 100'000};
            nanosleep(&moment, nullptr);
        }
        const Duration begin = time_of(CLOCK_THREAD_CPUTIME_ID);
        while (time_of(CLOCK_THREAD_CPUTIME_ID) < begin + milliseconds(50)) {
        }
        const Ran after = told();
        EXPECT_LT(after.time.ns - before.time.ns, milliseconds(25).ns);
        EXPECT_LT(after.sleeps - before.sleeps, 5U);
    }).join();
}

TEST(ProcessorWatch, what_another_thread_does_counts) {
    const auto told = ran_beside_caller();
    const Ran before = told();
    std::thread([] {
        const timespec moment{0, 100'000};
        for (int n = 0; n < 5; ++n) nanosleep(&moment, nullptr);
        timespec time{};
        do {
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        } while (time.tv_nsec < 30'000'000);
    }).join();
    const Ran after = told();
    EXPECT_GE(after.time.ns - before.time.ns, milliseconds(15).ns);
    EXPECT_GE(after.sleeps - before.sleeps, 5U);
}

}  // namespace
}  // namespace via::agent::processor_watch_test
