#include "device/sim/stormy_weather.hpp"

#include <gtest/gtest.h>

#include <set>

namespace via::device::sim::stormy_weather_test {
namespace {

constexpr std::uint32_t percent = 10'000;  // parts of a million

Passage passage(std::int64_t sent_ns, std::uint32_t length = 1000, NodeId from = 0, NodeId to = 1) {
    return {from, to, Time{sent_ns}, length};
}

StormyOptions storm() {
    StormyOptions options;
    options.link.delay_max = microseconds(50);
    options.link.jitter_max = microseconds(3);
    options.link.loss = 5 * percent;
    options.link.burst_begin = 2 * percent;
    options.link.duplication = 5 * percent;
    options.link.reordering = 5 * percent;
    options.link.reordering_max = microseconds(200);
    options.link.corruption = 5 * percent;
    options.link.forged_unreachable = 2 * percent;
    return options;
}

TEST(StormyWeather, the_same_seed_decides_the_same) {
    StormyWeather one(7, storm());
    StormyWeather two(7, storm());
    StormyWeather other(8, storm());
    bool differs = false;
    for (std::int64_t n = 0; n < 1000; ++n) {
        const Fate a = one.fate(passage(n * 1000));
        const Fate b = two.fate(passage(n * 1000));
        EXPECT_EQ(a.delay, b.delay);
        EXPECT_EQ(a.lost, b.lost);
        EXPECT_EQ(a.corruption, b.corruption);
        differs |= other.fate(passage(n * 1000)).lost != a.lost;
    }
    EXPECT_TRUE(differs);
}

TEST(StormyWeather, what_a_link_carries_changes_nothing_on_another) {
    StormyWeather alone(7, storm());
    StormyWeather busy(7, storm());
    for (std::int64_t n = 0; n < 1000; ++n) {
        busy.fate(passage(n * 1000, 500, 1, 0));
        EXPECT_EQ(alone.fate(passage(n * 1000)).lost, busy.fate(passage(n * 1000)).lost);
    }
}

TEST(StormyWeather, one_kind_of_trouble_less_leaves_the_others_where_they_were) {
    StormyOptions calmer = storm();
    calmer.link.loss = calmer.link.burst_begin = 0;
    StormyWeather all(7, storm());
    StormyWeather less(7, calmer);
    for (std::int64_t n = 0; n < 1000; ++n) {
        const Fate a = all.fate(passage(n * 1000));
        const Fate b = less.fate(passage(n * 1000));
        EXPECT_EQ(a.duplicated, b.duplicated);
        EXPECT_EQ(a.corruption, b.corruption);
        EXPECT_FALSE(b.lost);
    }
}

TEST(StormyWeather, chances_are_what_they_say) {
    StormyOptions options = storm();
    options.link.burst_begin = 0;
    StormyWeather weather(1, options);
    int lost = 0;
    int duplicated = 0;
    int corrupted = 0;
    int overtaken = 0;
    Time latest{};
    constexpr int count = 100'000;
    for (std::int64_t n = 0; n < count; ++n) {
        const Fate fate = weather.fate(passage(n * 10'000));
        lost += fate.lost;
        duplicated += fate.duplicated;
        corrupted += fate.corruption != 0;
        const Time arrival = Time{n * 10'000} + fate.delay;
        overtaken += arrival < latest;
        latest = std::max(latest, arrival);
    }
    for (const int each : {lost, duplicated, corrupted}) {
        EXPECT_GT(each, count * 4 / 100);
        EXPECT_LT(each, count * 6 / 100);
    }
    EXPECT_GT(overtaken, count / 50);
}

TEST(StormyWeather, bursts_lose_several_in_a_row) {
    StormyOptions options;
    options.link.burst_begin = percent;
    options.link.burst_end = 10 * percent;
    options.link.burst_loss = 1'000'000;
    StormyWeather weather(1, options);
    int lost = 0;
    int bursts = 0;
    bool before = false;
    for (std::int64_t n = 0; n < 100'000; ++n) {
        const bool now = weather.fate(passage(n * 1000)).lost;
        lost += now;
        bursts += now && !before;
        before = now;
    }
    // One of a hundred begins one, each lasts ten: about a tenth is bad (Gilbert).
    EXPECT_GT(lost, 7'000);
    EXPECT_LT(lost, 11'000);
    EXPECT_GT(lost / bursts, 8);
    EXPECT_LT(lost / bursts, 12);
}

TEST(StormyWeather, jitter_alone_lets_nobody_overtake) {
    StormyOptions options;
    options.link.jitter_max = microseconds(500);
    StormyWeather weather(1, options);
    Time latest{};
    for (std::int64_t n = 0; n < 1000; ++n) {
        const Time arrival = Time{n * 1000} + weather.fate(passage(n * 1000)).delay;
        EXPECT_GE(arrival, latest);
        latest = arrival;
    }
}

TEST(StormyWeather, a_wire_has_a_rate_and_a_queue_with_an_end) {
    StormyOptions options;
    options.link.ns_per_kilobyte = 1024;  // a nanosecond for each byte
    options.link.queue_bytes = 3000;
    StormyWeather weather(1, options);
    // One is on the wire, then as many as the queue holds: all at one moment.
    for (std::int64_t n = 1; n <= 3; ++n) {
        const Fate fate = weather.fate(passage(0));
        EXPECT_FALSE(fate.lost);
        EXPECT_EQ(fate.delay, microseconds(10) + nanoseconds(n * 1000));
    }
    EXPECT_TRUE(weather.fate(passage(0)).lost);
    EXPECT_FALSE(weather.fate(passage(1000)).lost);  // one has left
    EXPECT_TRUE(weather.fate(passage(1000)).lost);
}

TEST(StormyWeather, a_cut_has_a_direction_and_an_end) {
    StormyOptions options;
    options.cuts.push_back({0, 1, Time{1000}, Time{2000}});
    StormyWeather weather(1, options);
    EXPECT_FALSE(weather.fate(passage(999)).lost);
    EXPECT_TRUE(weather.fate(passage(1000)).lost);
    EXPECT_FALSE(weather.fate(passage(1000, 100, 1, 0)).lost);
    EXPECT_TRUE(weather.fate(passage(1999)).lost);
    EXPECT_FALSE(weather.fate(passage(2000)).lost);
}

TEST(StormyWeather, it_heals) {
    StormyOptions options = storm();
    options.link.loss = 1'000'000;
    options.cuts.push_back({any_node, any_node, Time{0}, Time{9'000'000}});
    options.heals_at = Time{5'000'000};
    StormyWeather weather(1, options);
    EXPECT_TRUE(weather.fate(passage(4'999'999)).lost);
    for (std::int64_t n = 0; n < 1000; ++n) {
        const Fate fate = weather.fate(passage(5'000'000 + n * 1000));
        EXPECT_FALSE(fate.lost || fate.duplicated || fate.corruption != 0 || fate.told_unreachable);
        EXPECT_LE(fate.delay, microseconds(53));
    }
}

TEST(StormyWeather, what_does_not_fit_is_lost_and_told) {
    StormyOptions options;
    options.link.fits_min = options.link.fits_max = 900;
    StormyWeather weather(1, options);
    const Passage longer = passage(0, 901);
    EXPECT_TRUE(weather.fate(longer).lost);
    EXPECT_EQ(weather.fate(longer).fits, 900U);
    EXPECT_FALSE(weather.fate(passage(0, 900)).lost);
    options.link.tells_length = false;
    StormyWeather silent(1, options);
    EXPECT_TRUE(silent.fate(longer).lost);
    EXPECT_EQ(silent.fate(longer).fits, 0U);
}

TEST(StormyWeather, what_fits_changes_until_it_heals) {
    StormyOptions options;
    options.link.fits_min = 548;
    options.link.fits_max = 1500;
    options.link.fits_period = microseconds(1);
    options.heals_at = Time{10'000};
    StormyWeather weather(1, options);
    std::set<std::uint32_t> before;
    std::set<std::uint32_t> after;
    for (std::int64_t n = 0; n < 20; ++n)
        (n < 10 ? before : after).insert(weather.fate(passage(n * 1000, 2000)).fits);
    EXPECT_GT(before.size(), 5U);
    EXPECT_EQ(after.size(), 1U);
}

TEST(StormyWeather, links_differ_if_they_shall) {
    StormyOptions options = storm();
    options.links_differ = true;
    StormyWeather weather(1, options);
    int without_loss = 0;
    for (NodeId to = 1; to <= 20; ++to) {
        int lost = 0;
        for (std::int64_t n = 0; n < 500; ++n)
            lost += weather.fate(passage(n * 1000, 100, 0, to)).lost;
        without_loss += lost == 0;
    }
    EXPECT_GT(without_loss, 1);
    EXPECT_LT(without_loss, 15);
}

}  // namespace
}  // namespace via::device::sim::stormy_weather_test
