#include "device/datagram/round_trip.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::round_trip_test {
namespace {

TEST(RoundTrip, rfc_6298) {
    RoundTrip trip;
    trip.add(microseconds(80), {}, {}, Time{1000});
    EXPECT_EQ(trip.smoothed(), microseconds(80));
    EXPECT_EQ(trip.deviation(), microseconds(40));
    trip.add(microseconds(160), {}, {}, Time{2000});
    EXPECT_EQ(trip.deviation(), microseconds(50)) << "3/4 of 40 and 1/4 of 80";
    EXPECT_EQ(trip.smoothed(), microseconds(90)) << "7/8 of 80 and 1/8 of 160";
}

TEST(RoundTrip, the_peers_delay_is_not_the_ways) {
    RoundTrip trip;
    trip.add(microseconds(100), microseconds(500), {}, Time{1000});
    EXPECT_EQ(trip.smoothed(), microseconds(100)) << "never below the least sample";
    trip.add(microseconds(700), microseconds(600), {}, Time{2000});
    EXPECT_EQ(trip.latest(), microseconds(100));
}

TEST(RoundTrip, who_was_away_says_nothing_of_the_way_and_is_waited_for) {
    RoundTrip trip;
    trip.add(microseconds(100), {}, {}, Time{1000});
    trip.add(microseconds(4100), microseconds(3950), {}, Time{2000});
    EXPECT_EQ(trip.latest(), microseconds(150));
    EXPECT_EQ(trip.smoothed(), microseconds(475)) << "7/8 of 100 and 1/8 of 3100";
    trip.add(microseconds(4100), microseconds(1000), microseconds(2900), Time{3000});
    EXPECT_EQ(trip.latest(), microseconds(200)) << "heard of late";
    trip.add(microseconds(4100), microseconds(4090), {}, Time{4000});
    EXPECT_EQ(trip.latest(), microseconds(100)) << "never below the least";
}

TEST(RoundTrip, the_least_is_forgotten) {
    RoundTrip trip;
    Time now{1'000'000'000};
    trip.add(microseconds(10), {}, {}, now);
    trip.add(microseconds(30), {}, {}, now + seconds(4));
    EXPECT_EQ(trip.least(), microseconds(10));
    trip.add(microseconds(30), {}, {}, now + seconds(6));
    EXPECT_EQ(trip.least(), microseconds(10));
    trip.add(microseconds(30), {}, {}, now + seconds(11));
    EXPECT_EQ(trip.least(), microseconds(30));
    trip.add(microseconds(50), {}, {}, now + seconds(100));
    EXPECT_EQ(trip.least(), microseconds(50)) << "nothing was heard for long";
}

TEST(RoundTrip, a_guess_gives_way_to_the_first_sample) {
    RoundTrip trip;
    trip.suppose(milliseconds(20));
    EXPECT_EQ(trip.smoothed(), milliseconds(20));
    EXPECT_FALSE(trip.known());
    trip.add(microseconds(50), {}, {}, Time{5});
    EXPECT_EQ(trip.smoothed(), microseconds(50));
    EXPECT_EQ(trip.least(), microseconds(50));
}

}  // namespace
}  // namespace via::device::datagram::round_trip_test
