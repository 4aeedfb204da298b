#include "agent/stranger_watch.hpp"

#include <gtest/gtest.h>

namespace via::agent::stranger_watch_test {
namespace {

struct StrangerWatchTest : testing::Test {
    void sleep_often(int times, Duration apart) {
        for (int n = 0; n < times; ++n) watch.look(frames, now = now + apart);
    }

    StrangerWatch watch;
    std::uint64_t frames = 7;
    Time now{};
};

TEST_F(StrangerWatchTest, WakeUpsInARowWithoutAFrameAreStrangers) {
    sleep_often(1 + StrangerWatch::wake_ups_max, microseconds(10));
    EXPECT_FALSE(watch.hears_strangers());
    sleep_often(1, microseconds(10));
    EXPECT_TRUE(watch.hears_strangers());
}

TEST_F(StrangerWatchTest, AFrameBeginsTheCountAnew) {
    sleep_often(20, microseconds(10));
    ++frames;
    sleep_often(1, microseconds(10));
    EXPECT_FALSE(watch.hears_strangers());
}

TEST_F(StrangerWatchTest, SleepsFarApartAreNoFlood) {
    sleep_often(100, StrangerWatch::in_a_row);
    EXPECT_FALSE(watch.hears_strangers());
    sleep_often(20, microseconds(10));
    sleep_often(1, StrangerWatch::in_a_row);
    EXPECT_FALSE(watch.hears_strangers());
}

}  // namespace
}  // namespace via::agent::stranger_watch_test
