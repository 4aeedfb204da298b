#include "bench/report.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace via::bench::report_test {
namespace {

Sample kept(double value, Mode mode) {
    Sample sample;
    sample.verdict = {Drop::none, mode};
    sample.value = value;
    sample.p99_us = value * 2;
    sample.p999_us = value * 3;
    sample.cpu_us = {value, value * 4};
    sample.probe_ns = mode == Mode::near ? 52 : 240;
    return sample;
}

Sample dropped(double value, Drop drop) {
    Sample sample;
    sample.verdict = {drop, {}};
    sample.value = value;
    sample.probe_ns = 120;
    return sample;
}

Outcome two_channels() {
    Question question;
    question.size = 8;
    Outcome outcome;
    outcome.questions = {question};
    outcome.channels = {"shm", "pipe"};
    outcome.series = {{0, 0, question, {}}, {0, 1, question, {}}};
    return outcome;
}

void add(Series& series, std::initializer_list<double> values, Mode mode) {
    for (const double value : values) series.samples.push_back(kept(value, mode));
}

TEST(Rows, ModesAreNeverMixedAndRatiosStayInOne) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {0.1, 0.2, 0.3}, Mode::near);
    add(outcome.series[0], {0.5, 0.6, 0.7}, Mode::far);
    add(outcome.series[1], {2, 2, 2}, Mode::near);
    add(outcome.series[1], {3, 3, 3}, Mode::far);
    const auto rows = make_rows(outcome, 3);
    ASSERT_EQ(rows.size(), 4u);
    EXPECT_EQ(rows[0].mode, Mode::near);
    EXPECT_TRUE(rows[0].ours);
    EXPECT_DOUBLE_EQ(rows[0].summary.median, 0.2);
    EXPECT_FALSE(rows[0].ratio.has_value());
    EXPECT_DOUBLE_EQ(*rows[1].ratio, 0.1);
    EXPECT_EQ(rows[2].mode, Mode::far);
    EXPECT_DOUBLE_EQ(*rows[3].ratio, 0.2);
    EXPECT_DOUBLE_EQ(rows[3].probe_ns, 240);
}

TEST(Rows, DroppedSamplesCountButDoNotWeigh) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    outcome.series[0].samples.push_back(dropped(1000, Drop::steal));
    outcome.series[0].samples.push_back(dropped(1000, Drop::mode_changed));
    const auto rows = make_rows(outcome, 3);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].summary.max, 1);
    EXPECT_EQ(rows[0].rounds, 3u);
    EXPECT_EQ(rows[0].dropped, 2u);
}

TEST(Rows, LatencyTakesItsP99FromWithinTheRounds) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 2, 3}, Mode::near);
    EXPECT_DOUBLE_EQ(make_rows(outcome, 3)[0].summary.p99, 4);
    outcome.series[0].asked.bench = Bench::rate;
    EXPECT_DOUBLE_EQ(make_rows(outcome, 3)[0].summary.p99, 1);
}

TEST(Rows, TooFewRoundsMakeNoRow) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1}, Mode::near);
    EXPECT_TRUE(make_rows(outcome, 10).empty());
    EXPECT_EQ(make_rows(outcome, 2).size(), 1u) << "unless fewer were asked for";
}

TEST(Rows, NoRatioWithoutOursInTheSameMode) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    add(outcome.series[1], {3, 3, 3}, Mode::far);
    const auto rows = make_rows(outcome, 3);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_FALSE(rows[1].ratio.has_value());
}

TEST(Inconclusive, AnyModeThatAllChannelsHaveIsEnough) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1, 1}, Mode::far);
    add(outcome.series[1], {1, 1, 1}, Mode::far);
    EXPECT_TRUE(inconclusive(outcome, 10, Wanted::any).empty());
    EXPECT_TRUE(inconclusive(outcome, 10, Wanted::far).empty());
    EXPECT_EQ(inconclusive(outcome, 10, Wanted::near).size(), 1u);
    EXPECT_EQ(inconclusive(outcome, 10, Wanted::both).size(), 1u);
}

TEST(Inconclusive, ChannelsInDifferentModesCannotBeCompared) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    add(outcome.series[1], {1, 1, 1}, Mode::far);
    EXPECT_EQ(inconclusive(outcome, 10, Wanted::any).size(), 1u);
}

TEST(Inconclusive, OnlyDroppedSamplesAreNoAnswer) {
    Outcome outcome = two_channels();
    for (int i = 0; i < 20; ++i) {
        outcome.series[0].samples.push_back(dropped(1, Drop::mode_changed));
        outcome.series[1].samples.push_back(dropped(1, Drop::involuntary));
    }
    EXPECT_EQ(inconclusive(outcome, 10, Wanted::any).size(), 1u);
    EXPECT_EQ(drop_text(outcome),
              "40 of 40 samples dropped: 20 involuntary switches, 20 mode changed meanwhile");
}

TEST(Inconclusive, AQuestionOnlyOthersAnsweredIsNone) {
    Outcome outcome = two_channels();
    outcome.series.erase(outcome.series.begin());
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    EXPECT_EQ(inconclusive(outcome, 3, Wanted::any).size(), 1u);
}

TEST(Json, ExactlyTheseFieldsInThisOrder) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {0.1, 0.1, 0.1}, Mode::near);
    add(outcome.series[1], {2, 2, 2}, Mode::near);
    std::istringstream lines(json_lines(make_rows(outcome, 3)));
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line,
              R"({"schema":"via-bench-1","bench":"latency","device":"shm","ours":true,)"
              R"("op":"send","size":8,"wait":"poll","cq":false,"depth":1,"vis":0,)"
              R"("active_vis":1,"reliability":"delivery","segments":1,"immediate":false,)"
              R"("post_many":1,)"
              R"("reuse":null,"both_ways":false,"senders":1,"spinners":0,"unit":"us","median":0.1,)"
              R"("min":0.1,)"
              R"("max":0.1,"p99":0.2,"p999":0.3,"cpu_us":0.5,"cpu_us_each":[0.1,0.4],)"
              R"("values":[0.1,0.1,0.1],)"
              R"("rounds":3,"dropped":0,"probe_ns":52,"mode":"near","ratio":0.05,)"
              R"("against":"pipe"})");
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_NE(line.find(R"("device":"pipe")"), std::string::npos);
    EXPECT_NE(line.find(R"("ratio":0.05,"against":"shm"})"), std::string::npos);
    EXPECT_FALSE(std::getline(lines, line));
}

TEST(Json, BothWaysAndManySendersTellMore) {
    Outcome outcome = two_channels();
    Question& asked = outcome.series[0].asked;
    asked.bench = Bench::rate;
    asked.both_ways = true;
    asked.senders = 3;
    asked.reuse = 25;
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    for (Sample& sample : outcome.series[0].samples) {
        sample.each = {0.25, 0.75};
        sample.fairness = 0.9;
    }
    const auto rows = make_rows(outcome, 3);
    const std::string text = json_lines(rows);
    EXPECT_NE(text.find(R"("reuse":25,"both_ways":true,"senders":3)"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("median_each":[0.25,0.75],"fairness":0.9)"), std::string::npos) << text;
    const std::string printed = table(rows);
    EXPECT_NE(printed.find("there"), std::string::npos) << printed;
    EXPECT_NE(printed.find("fairness"), std::string::npos) << printed;
}

TEST(Json, AProgramOfOthersTellsItsVersion) {
    Outcome outcome = two_channels();
    outcome.versions = {"", "Pipes 2.0"};
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    add(outcome.series[1], {1, 1, 1}, Mode::near);
    const std::string text = json_lines(make_rows(outcome, 3));
    const std::size_t at = text.find(R"("version":"Pipes 2.0","unit")");
    EXPECT_GT(at, text.find('\n')) << text;
    EXPECT_NE(at, std::string::npos) << text;
}

TEST(Json, WhoFailedIsNamed) {
    Outcome outcome = two_channels();
    EXPECT_EQ(left_out_json(outcome) + left_out_text(outcome), "");
    outcome.left_out = {{"pipe", "it \"burst\""}};
    EXPECT_EQ(left_out_json(outcome),
              R"({"schema":"via-bench-left-out-1","device":"pipe","why":"it \"burst\""})"
              "\n");
    EXPECT_EQ(left_out_text(outcome), "\npipe is left out, as it failed: it \"burst\"\n");
}

TEST(Json, AloneThereIsNothingToCompareWith) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {0.1, 0.1, 0.1}, Mode::near);
    const std::string text = json_lines(make_rows(outcome, 3));
    EXPECT_TRUE(text.ends_with("\"ratio\":null,\"against\":null}\n")) << text;
}

TEST(Json, BetweenMachinesThereIsNoProbe) {
    Outcome outcome = two_channels();
    outcome.remote = true;
    add(outcome.series[0], {1, 1, 1}, Mode::remote);
    const std::string text = json_lines(make_rows(outcome, 3));
    EXPECT_NE(text.find(R"("probe_ns":null,"mode":"remote")"), std::string::npos) << text;
    EXPECT_NE(table(make_rows(outcome, 3)).find("two machines"), std::string::npos);
}

TEST(Json, WhoTellsNoSingleMessagesHasNoP99) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {1, 1, 1}, Mode::near);
    for (Sample& sample : outcome.series[0].samples) sample.p99_us = 0;
    const std::string text = json_lines(make_rows(outcome, 3));
    EXPECT_NE(text.find(R"("p99":null)"), std::string::npos) << text;
}

TEST(Inconclusive, BetweenMachinesRoundsAreCountedWithoutModes) {
    Outcome outcome = two_channels();
    outcome.remote = true;
    add(outcome.series[0], {1, 1}, Mode::remote);
    const auto lines = inconclusive(outcome, 10, Wanted::any);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("not 3 good rounds (shm 2 of 2"), std::string::npos) << lines[0];
    add(outcome.series[0], {1}, Mode::remote);
    add(outcome.series[1], {1, 1, 1}, Mode::remote);
    EXPECT_TRUE(inconclusive(outcome, 10, Wanted::any).empty());
}

TEST(Json, ADeviceNameIsEscaped) {
    Outcome outcome = two_channels();
    outcome.channels[0] = "shm:\"\\\n";
    add(outcome.series[0], {0.1, 0.1, 0.1}, Mode::near);
    const std::string text = json_lines(make_rows(outcome, 3));
    EXPECT_NE(text.find(R"("device":"shm:\"\\\n")"), std::string::npos) << text;
}

TEST(Table, OneHeadingAndALineEach) {
    Outcome outcome = two_channels();
    add(outcome.series[0], {0.1, 0.1, 0.1}, Mode::near);
    add(outcome.series[1], {2, 2, 2}, Mode::near);
    const std::string text = table(make_rows(outcome, 3));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
    EXPECT_NE(text.find("latency, us one way; shm by send, wait poll, depth 1"), std::string::npos);
}

}  // namespace
}  // namespace via::bench::report_test
