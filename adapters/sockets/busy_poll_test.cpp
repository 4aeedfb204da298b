#include "busy_poll.hpp"

#include <gtest/gtest.h>

namespace via::sockets {
namespace busy_poll_test {
namespace {

constexpr std::uint64_t one_look = 1;  // time is up behind it

TEST(BusyPoll, IsOffAtFirst) {
    BusyPoll poll;
    bool asked = false;
    EXPECT_FALSE(poll.finds(one_look, [&] { return asked = true; }));
    EXPECT_FALSE(asked);
}

TEST(BusyPoll, AsksUntilThereIsAnAnswer) {
    BusyPoll poll;
    poll.begin(true);
    int asked = 0;
    EXPECT_TRUE(poll.finds(~0ull >> 1, [&] { return ++asked == 1000; }));
    EXPECT_EQ(asked, 1000);
}

TEST(BusyPoll, WithoutTimeItAsksNobody) {
    BusyPoll poll;
    poll.begin(true);
    EXPECT_FALSE(poll.finds(0, [] { return true; }));
}

TEST(BusyPoll, WhoeverHasWaitedLongerEveryTimeAsksSeldom) {
    BusyPoll poll;
    poll.begin(true);
    unsigned waits_that_asked = 0;
    const auto waits = [&](unsigned count) {
        waits_that_asked = 0;
        for (unsigned wait = 0; wait < count; ++wait) {
            bool asked = false;
            EXPECT_FALSE(poll.finds(one_look, [&] {
                asked = true;
                return false;
            }));
            if (asked) ++waits_that_asked;
        }
        return waits_that_asked;
    };
    EXPECT_EQ(waits(BusyPoll::patience), BusyPoll::patience);
    EXPECT_EQ(waits(10 * BusyPoll::seldom), 10U);
    // An answer that came soon makes it worth a try again.
    for (unsigned wait = 0; !poll.finds(one_look, [] { return true; }); ++wait)
        ASSERT_LT(wait, BusyPoll::seldom);
    EXPECT_EQ(waits(BusyPoll::patience), BusyPoll::patience);
}

}  // namespace
}  // namespace busy_poll_test
}  // namespace via::sockets
