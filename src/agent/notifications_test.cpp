#include "agent/notifications.hpp"

#include <gtest/gtest.h>

namespace via::agent::notifications_test {
namespace {

struct Ready final : Notification {
    explicit Ready(std::uint64_t object) : Notification(object) {}
    bool ready() const override { return true; }
    bool run() override { return false; }
};

/// Whoever finds none left stops looking for them, and one that somebody was quicker than goes
/// back.
TEST(Notifications, one_that_runs_is_still_there) {
    Notifications all;
    EXPECT_TRUE(all.empty());
    ASSERT_TRUE(all.add(std::make_unique<Ready>(1)));
    for (int n = 0; n < 2; ++n) {
        auto one = all.take_ready();
        ASSERT_NE(one, nullptr);
        EXPECT_FALSE(all.empty());
        EXPECT_FALSE(all.cancel(2)) << "of something else";
        EXPECT_FALSE(all.empty());
        all.finish(std::move(one), false);
        EXPECT_FALSE(all.empty());
    }
    auto one = all.take_ready();
    EXPECT_TRUE(all.cancel(1));
    EXPECT_TRUE(all.empty()) << "it does not come back";
    all.finish(std::move(one), false);
    EXPECT_TRUE(all.empty());
}

}  // namespace
}  // namespace via::agent::notifications_test
