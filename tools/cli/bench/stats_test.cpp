#include "bench/stats.hpp"

#include <gtest/gtest.h>

#include "bench/cpus.hpp"
#include "bench/noise.hpp"

namespace via::bench::stats_test {
namespace {

std::array<Disturbance, 2> quiet() {
    std::array<Disturbance, 2> sides;
    for (Disturbance& side : sides) {
        side.runnable = 2;
        side.processors = 2;
    }
    return sides;
}

TEST(Stats, MedianOfOddEvenAndNothing) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({3, 1, 2}), 2);
    EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Stats, PercentileIsNearestRank) {
    std::vector<double> values;
    for (int i = 100; i >= 1; --i) values.push_back(i);
    EXPECT_EQ(percentile(values, 50), 50);
    EXPECT_EQ(percentile(values, 99), 99);
    EXPECT_EQ(percentile(values, 99.9), 100);
    EXPECT_EQ(percentile(values, 100), 100);
    EXPECT_EQ(percentile(values, 0.1), 1);
    EXPECT_EQ(percentile({7}, 99), 7);
    EXPECT_EQ(percentile({}, 99), 0);
}

TEST(Stats, SummaryOfRounds) {
    const Summary summary = summarise({10, 30, 20});
    EXPECT_EQ(summary.median, 20);
    EXPECT_EQ(summary.min, 10);
    EXPECT_EQ(summary.max, 30);
    EXPECT_EQ(summary.p99, 10) << "of a bandwidth: what 99 % of the rounds reach";
}

TEST(Stats, NearBelow100FarAbove150) {
    EXPECT_EQ(classify(50), Mode::near);
    EXPECT_EQ(classify(99.9), Mode::near);
    EXPECT_EQ(classify(100), Mode::between);
    EXPECT_EQ(classify(150), Mode::between);
    EXPECT_EQ(classify(150.1), Mode::far);
    EXPECT_EQ(classify(0), std::nullopt) << "a probe that was not taken is no mode";
    EXPECT_EQ(classify(130, {100, 120}), Mode::far);
}

TEST(Judge, QuietSampleIsKeptInItsMode) {
    const Verdict near = judge(quiet(), 52, 55, Wait::poll);
    EXPECT_EQ(near.drop, Drop::none);
    EXPECT_EQ(near.mode, Mode::near);
    EXPECT_EQ(judge(quiet(), 200, 240, Wait::poll).mode, Mode::far);
}

TEST(Judge, WhatLiesBetweenIsAModeOfItsOwn) {
    EXPECT_EQ(judge(quiet(), 130, 140, Wait::poll).mode, Mode::between);
    EXPECT_EQ(judge(quiet(), 52, 120, Wait::poll).drop, Drop::mode_changed);
    EXPECT_EQ(judge(quiet(), 120, 240, Wait::poll).drop, Drop::mode_changed);
}

TEST(Judge, ReadingsOfOneDistanceMayFallOnEitherSideOfALimit) {
    EXPECT_EQ(judge(quiet(), 98, 103, Wait::poll).mode, Mode::between);
    EXPECT_EQ(judge(quiet(), 98, 101, Wait::poll).mode, Mode::near);
    EXPECT_EQ(judge(quiet(), 160, 135, Wait::poll).mode, Mode::between);
}

TEST(Judge, WithoutProbeNothingCounts) {
    EXPECT_EQ(judge(quiet(), 0, 52, Wait::poll).drop, Drop::no_probe);
    EXPECT_EQ(judge(quiet(), 52, 0, Wait::poll).mode, std::nullopt);
}

TEST(Judge, ModeThatChangedDrops) {
    EXPECT_EQ(judge(quiet(), 52, 230, Wait::poll).drop, Drop::mode_changed);
    EXPECT_EQ(judge(quiet(), 230, 52, Wait::poll).drop, Drop::mode_changed);
}

TEST(Judge, InvoluntarySwitchOfEitherSideDrops) {
    for (std::size_t side = 0; side < 2; ++side) {
        auto sides = quiet();
        sides[side].involuntary = 1;
        EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::involuntary);
        EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::involuntary);
    }
}

TEST(Judge, HowLongItWasOutSaysMoreThanHowOften) {
    auto sides = quiet();
    sides[0].involuntary = 1;
    sides[0].delays_are_told = true;
    sides[0].run_delay_ns = 15'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::none);
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::involuntary);
    sides[0].run_delay_ns = 25'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::foreign);
}

TEST(Judge, AProgramMayLoseAHundredthOfWhatItTimed) {
    auto sides = quiet();
    sides[0].program_ns = 100'000'000;
    sides[1].involuntary = 9;  // of the process that waited for its program
    sides[1].run_delay_ns = 5'000'000;
    sides[1].program_lost_ns = 1'000'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::none);
    sides[1].program_lost_ns += 1;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::foreign);
    sides[0].steal_ticks = 1;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::steal);
}

TEST(Judge, ProcessorTimeThatNoToolHadDropsASleepersSample) {
    auto sides = quiet();
    for (Disturbance& side : sides) side.wall_ns = 200'000'000;
    sides[1].strange_ns = 180'000'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::none) << "our own loops tell more";
    sides[0].program_ns = 100'000'000;
    sides[0].program_lost_ns = 100'000'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::foreign);
    sides[0].strange_ns = -170'000'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::none) << "one ran on both processors";
}

TEST(Judge, WhatIsDisturbedCountsWhereAThirdProcessBelongsToIt) {
    auto sides = quiet();
    sides[0].involuntary = 7;
    const ModeLimits limits{.near_below_ns = 100, .far_above_ns = 150, .keep_disturbed = true};
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll, limits).mode, Mode::near);
    EXPECT_EQ(judge(sides, 52, 230, Wait::poll, limits).drop, Drop::mode_changed);
}

TEST(Judge, ThreadsOfTheMeasuredLibraryDoNotExcuseASample) {
    auto sides = quiet();
    sides[1].involuntary = 2;
    sides[1].own_switches = 2;
    sides[1].run_delay_ns = 500'000;
    sides[1].own_others_ns = 490'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::none);
    sides[1].involuntary = 3;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::involuntary);
}

TEST(Judge, StealDrops) {
    auto sides = quiet();
    sides[0].steal_ticks = 1;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::steal);
}

TEST(Judge, MoreRunnableTasksThanProcessorsDrop) {
    auto sides = quiet();
    sides[0].runnable = 3;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::foreign);
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::foreign);
    sides[0].processors = 8;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::none);
}

TEST(Judge, WaitingForAProcessorDropsWhilePollingOnly) {
    auto sides = quiet();
    sides[0].run_delay_ns = 20'000;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::none);
    sides[0].run_delay_ns = 20'001;
    EXPECT_EQ(judge(sides, 52, 52, Wait::poll).drop, Drop::foreign);
    EXPECT_EQ(judge(sides, 52, 52, Wait::block).drop, Drop::none);
}

TEST(Noise, DifferencesOfTwoLooks) {
    Look before{1'000, 5, 10, 100, 1'000, 1'500, 7, 2};
    Look after{4'000, 6, 13, 350, 2'000, 3'100, 9, 4};
    const Disturbance told = between_looks(before, after, 2);
    EXPECT_EQ(told.wall_ns, 3'000);
    EXPECT_EQ(told.involuntary, 1u);
    EXPECT_EQ(told.own_switches, 3u);
    EXPECT_EQ(told.run_delay_ns, 250u);
    EXPECT_EQ(told.own_others_ns, 600u);
    EXPECT_EQ(told.steal_ticks, 2u);
    EXPECT_EQ(told.runnable, 4u) << "the worse of the two looks";
}

TEST(Noise, OtherThreadsNeverTakeNegativeTime) {
    Look before{0, 0, 0, 0, 1'000, 1'000, 0, 2};
    Look after{0, 0, 0, 0, 2'000, 1'999, 0, 2};
    EXPECT_EQ(between_looks(before, after, 2).own_others_ns, 0u);
}

TEST(Noise, ALookReadsThisMachine) {
    const std::vector<int> cpus = allowed_cpus();
    ASSERT_FALSE(cpus.empty());
    const Look look = look_around(cpus.front());
    EXPECT_GT(look.wall_ns, 0);
    EXPECT_GT(look.process_cpu_ns, 0u);
    EXPECT_GE(look.runnable, 1u) << "this process runs";
}

TEST(Cpus, ListsAsTheKernelWritesThem) {
    EXPECT_EQ(parse_cpu_list("0-2,5"), (std::vector<int>{0, 1, 2, 5}));
    EXPECT_EQ(parse_cpu_list("3"), (std::vector<int>{3}));
    EXPECT_EQ(parse_cpu_list(""), (std::vector<int>{}));
    for (const char* none : {"1,x", "0,1;3", "0,1x", "0,1 2", "0,", "-1", "0-"})
        EXPECT_EQ(parse_cpu_list(none), (std::vector<int>{})) << none;
}

TEST(Cpus, RefusesWhatCannotBePinned) {
    EXPECT_FALSE(choose_cpus("0,0").has_value());
    EXPECT_FALSE(choose_cpus("0").has_value());
    EXPECT_FALSE(choose_cpus("0,1023").has_value());
    EXPECT_FALSE(choose_cpus("0,1x").has_value());
    EXPECT_FALSE(choose_cpu("0,x").has_value());
}

TEST(Jain, OneIsFairAndAnNthIsNot) {
    EXPECT_DOUBLE_EQ(jain_index({5, 5, 5, 5}), 1);
    EXPECT_DOUBLE_EQ(jain_index({8, 0, 0, 0}), 0.25);
    EXPECT_DOUBLE_EQ(jain_index({2, 1}), 0.9);
    EXPECT_DOUBLE_EQ(jain_index({0, 0}), 0);
    EXPECT_DOUBLE_EQ(jain_index({}), 0);
}

}  // namespace
}  // namespace via::bench::stats_test
