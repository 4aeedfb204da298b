#include "base/time.hpp"

#include <gtest/gtest.h>

namespace via::time_test {
namespace {

TEST(Time, UnitsAreNanoseconds) {
    EXPECT_EQ(nanoseconds(7).ns, 7);
    EXPECT_EQ(microseconds(7).ns, 7'000);
    EXPECT_EQ(milliseconds(7).ns, 7'000'000);
    EXPECT_EQ(seconds(7).ns, 7'000'000'000);
    EXPECT_EQ((milliseconds(2) + microseconds(5)).ns, 2'005'000);
    EXPECT_EQ((milliseconds(2) * 3).ns, 6'000'000);
    EXPECT_LT(microseconds(-1), nanoseconds(0));
}

TEST(Time, MomentsAndSpans) {
    const Time t{1000};
    EXPECT_EQ((t + nanoseconds(234)).ns, 1234);
    EXPECT_EQ((t + nanoseconds(-234)).ns, 766);
    EXPECT_EQ(((t + seconds(3)) - t), seconds(3));
    EXPECT_EQ(t - (t + seconds(3)), seconds(-3));
    EXPECT_EQ(earlier(t, {999}).ns, 999);
    EXPECT_EQ(earlier({999}, t).ns, 999);
}

TEST(Time, NeverStaysNever) {
    EXPECT_TRUE(Time::never().is_never());
    EXPECT_FALSE(Time{}.is_never());
    EXPECT_TRUE((Time::never() + seconds(1)).is_never());
    EXPECT_TRUE((Time::never() + seconds(-1)).is_never()) << "no deadline, no earlier one either";
    EXPECT_EQ(earlier(Time::never(), {5}).ns, 5);
    EXPECT_LT(Time{5}, Time::never());
}

TEST(Time, AddingSaturatesInsteadOfWrapping) {
    const std::int64_t end = Time::never().ns;
    EXPECT_TRUE((Time{1000} + Duration{end}).is_never());
    EXPECT_TRUE((Time{end - 1} + nanoseconds(2)).is_never());
    EXPECT_TRUE((Time{end - 1} + nanoseconds(1)).is_never());
    EXPECT_EQ((Time{end - 2} + nanoseconds(1)).ns, end - 1);
    EXPECT_EQ((Time{} + Duration{end - 1}).ns, end - 1);
}

}  // namespace
}  // namespace via::time_test
