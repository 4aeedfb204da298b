#include "device/datagram/allowance.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::allowance_test {
namespace {

/// Of `count` that ask evenly from `begin` on for a second.
int taken(Allowance& allowance, std::uint64_t who, int count, Time begin) {
    int all = 0;
    for (int n = 0; n < count; ++n)
        if (allowance.take(who, begin + Duration{seconds(1).ns / count * n})) ++all;
    return all;
}

TEST(Allowance, many_at_once_and_then_a_rate) {
    Allowance allowance(100, 20);
    int all = 0;
    for (std::uint64_t who = 0; who < 64; ++who)
        if (allowance.take(who, Time{})) ++all;
    EXPECT_EQ(all, 20);
    all = 0;
    for (std::uint64_t n = 1; n <= 1000; ++n)
        if (allowance.take(n, Time{} + milliseconds(static_cast<std::int64_t>(n)))) ++all;
    EXPECT_EQ(all, 100);
}

TEST(Allowance, one_who_asks_without_end_leaves_something_at_any_moment) {
    Allowance allowance(100, 20);
    EXPECT_LE(taken(allowance, 1, 100'000, Time{}), 120);
    for (int n = 1; n <= 100; ++n) {
        const Time begin = Time{} + seconds(n);
        EXPECT_GT(taken(allowance, 1, 10'000, begin), 50) << n;
        EXPECT_TRUE(allowance.take(2, begin + milliseconds(995))) << n;
    }
}

TEST(Allowance, a_long_pause_gives_no_more_than_is_allowed_at_once) {
    Allowance allowance(100, 20);
    const Time late = Time{} + seconds(1'000'000);
    int all = 0;
    for (std::uint64_t who = 0; who < 64; ++who)
        if (allowance.take(who, late)) ++all;
    EXPECT_EQ(all, 20);
}

}  // namespace
}  // namespace via::device::datagram::allowance_test
