#include "agent/rest_watch.hpp"

#include <gtest/gtest.h>

namespace via::agent::rest_watch_test {
namespace {

/// A program, and the agent's look at it in each millisecond.
struct Program {
    RestWatch watch;
    RestWatch::Seen seen;
    Time now{};

    bool look(std::uint64_t polls, std::uint64_t frames, std::uint64_t rests = 0,
              std::uint64_t switches = 0) {
        now = now + milliseconds(1);
        seen.polls += polls;
        seen.frames += frames;
        seen.rests += rests;
        seen.switches += switches;
        return watch.look(seen, now);
    }
};

TEST(RestWatch, who_finds_something_now_and_then_never_rests) {
    Program program;
    for (int n = 0; n < 5000; ++n) EXPECT_FALSE(program.look(20000, 5000));
    EXPECT_FALSE(program.look(100, 0)) << "too few to say that they were in vain";
}

TEST(RestWatch, rests_while_others_want_the_processor) {
    Program program;
    ASSERT_TRUE(program.look(20000, 1));
    for (int n = 0; n < 100; ++n) EXPECT_TRUE(program.look(700, 300, 400, 390));
    EXPECT_TRUE(program.look(5000, 5000)) << "nothing in vain: nothing to tell by";
    EXPECT_TRUE(program.look(63, 0, 63, 0)) << "too few";
    EXPECT_FALSE(program.look(1000, 0, 1000, 2));
}

TEST(RestWatch, asks_seldom_where_nobody_wants_it) {
    Program program;
    int asked = 0;
    for (int n = 0; n < 10000; ++n) {
        // Each time it rested for a millisecond before the look.
        if (!program.look(20000, 0)) continue;
        ++asked;
        EXPECT_FALSE(program.look(2000, 0, 2000, 1));
    }
    // At first, after 16 ms, 32, ... 512, then once a second.
    EXPECT_EQ(asked, 15);
    ASSERT_EQ(RestWatch::pause_longest, milliseconds(1000));
}

TEST(RestWatch, forgets_the_pauses_when_somebody_came) {
    Program program;
    for (int n = 0; n < 2000; ++n)
        if (program.look(20000, 0)) program.look(2000, 0, 2000, 1);
    while (!program.look(20000, 0)) {
    }
    EXPECT_TRUE(program.look(500, 200, 400, 400));
    EXPECT_FALSE(program.look(500, 0, 400, 0));
    int until = 0;
    while (!program.look(20000, 0)) ++until;
    EXPECT_LE(until, 17);
}

}  // namespace
}  // namespace via::agent::rest_watch_test
