#include "report/compare.hpp"

#include <gtest/gtest.h>

namespace via::report::compare_test {
namespace {

Figure latency(std::vector<double> values, bool ours = true) {
    Figure figure;
    figure.bench = "latency";
    figure.device = ours ? "shm" : "pipe";
    figure.mode = "near";
    figure.unit = "us";
    figure.ours = ours;
    figure.size = 8;
    figure.question = {{"op", "send"}, {"wait", "poll"}};
    figure.median = values[values.size() / 2];
    figure.values = std::move(values);
    return figure;
}

std::vector<Run> one(Figure figure) { return {{"run", {std::move(figure)}, {}}}; }

Verdict verdict_of(Figure before, Figure after, double tolerance = 0.05) {
    const auto a = one(std::move(before));
    const auto b = one(std::move(after));
    const Comparison comparison = compare(a, b, tolerance);
    return comparison.changes.at(0).verdict;
}

const std::vector<double> rounds{1.00, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07};
const std::vector<double> larger{1.20, 1.21, 1.22, 1.23, 1.24, 1.25, 1.26, 1.27};

TEST(Chance, IsThatOfTheRankTest) {
    // U = 0 of 8 and 8: z = 31.5 / sqrt(64 * 17 / 12) = 3.308.
    EXPECT_NEAR(chance_of(rounds, larger), 0.00094, 0.00001);
    EXPECT_NEAR(chance_of(larger, rounds), 0.00094, 0.00001);
    EXPECT_DOUBLE_EQ(chance_of(rounds, rounds), 1);
    EXPECT_DOUBLE_EQ(chance_of({1, 1, 1}, {1, 1, 1}), 1) << "ties of all";
    EXPECT_DOUBLE_EQ(chance_of({}, rounds), 1);
}

TEST(Compare, MoreTimeIsSlowerAndLessIsFaster) {
    EXPECT_EQ(verdict_of(latency(rounds), latency(larger)), Verdict::slower);
    EXPECT_EQ(verdict_of(latency(larger), latency(rounds)), Verdict::faster);
}

TEST(Compare, TooFewRoundsAreToldAndNotCalledGood) {
    const auto before = one(latency({1, 1, 1, 1, 1}));
    const auto after = one(latency({2, 2, 2, 2, 2}));
    const Comparison comparison = compare(before, after, 0.05);
    EXPECT_EQ(comparison.count(true, Verdict::slower), 0U);
    EXPECT_EQ(comparison.count(true, Verdict::too_few), 1U);
    EXPECT_FALSE(comparison.can_tell());
    EXPECT_NE(text_of(comparison).find("6 good rounds"), std::string::npos);
}

TEST(Compare, MoreBandwidthIsFaster) {
    Figure before = latency(rounds);
    Figure after = latency(larger);
    before.unit = after.unit = "MB/s";
    EXPECT_EQ(verdict_of(before, after), Verdict::faster);
}

TEST(Compare, WhatOverlapsIsNoiseHoweverLarge) {
    std::vector<double> mixed = rounds;
    for (std::size_t i = 1; i < mixed.size(); i += 2) mixed[i] = 2;
    mixed[0] = mixed[2] = 0.5;
    EXPECT_EQ(verdict_of(latency(rounds), latency(mixed)), Verdict::noise);
}

TEST(Compare, WhatIsSmallIsNoiseHoweverCertain) {
    EXPECT_EQ(verdict_of(latency(rounds), latency(larger), 0.3), Verdict::noise);
}

TEST(Compare, FewRoundsProveNothing) {
    EXPECT_EQ(verdict_of(latency({1, 1.01, 1.02}), latency({2, 2.01, 2.02})), Verdict::too_few);
}

TEST(Compare, OnlyOursDecidesOnTheExitCode) {
    const auto before = one(latency(rounds, false));
    const auto after = one(latency(larger, false));
    const Comparison comparison = compare(before, after, 0.05);
    EXPECT_EQ(comparison.changes.at(0).verdict, Verdict::slower);
    EXPECT_EQ(comparison.count(true, Verdict::slower), 0u);
    EXPECT_NE(text_of(comparison).find("SLOWER"), std::string::npos);
}

TEST(Compare, OtherModesAndQuestionsDoNotMeet) {
    Figure far = latency(larger);
    far.mode = "far";
    const auto before = one(latency(rounds));
    for (const auto& after : {one(far), one(latency(larger, false))}) {
        const Comparison comparison = compare(before, after, 0.05);
        EXPECT_TRUE(comparison.changes.empty());
        EXPECT_EQ(comparison.only_before, 1u);
        EXPECT_EQ(comparison.only_after, 1u);
    }
}

TEST(Compare, ManyRunsMeetByName) {
    std::vector<report::Run> before{{"a", {latency(rounds)}, {}}, {"b", {latency(rounds)}, {}}};
    std::vector<report::Run> after{{"b", {latency(larger)}, {}}, {"c", {latency(larger)}, {}}};
    const Comparison comparison = compare(before, after, 0.05);
    ASSERT_EQ(comparison.changes.size(), 1u);
    EXPECT_EQ(comparison.changes[0].run, "b");
    EXPECT_EQ(comparison.count(true, Verdict::slower), 1u);
}

}  // namespace
}  // namespace via::report::compare_test
