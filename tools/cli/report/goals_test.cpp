#include "report/goals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "bench/channel.hpp"
#include "bench/suite.hpp"

namespace via::report::goals_test {
namespace {

Figure figure(std::string device, double median, bool ours, std::string mode = "near",
              std::uint64_t size = 8) {
    Figure made;
    made.bench = "latency";
    made.device = std::move(device);
    made.mode = std::move(mode);
    made.unit = "us";
    made.ours = ours;
    made.size = size;
    made.median = median;
    return made;
}

const GoalRow& row(const std::vector<GoalRow>& rows, std::string_view what, std::string_view mode) {
    const auto at = std::find_if(rows.begin(), rows.end(), [&](const GoalRow& one) {
        return one.what.starts_with(what) && one.mode == mode;
    });
    static const GoalRow none;
    EXPECT_NE(at, rows.end()) << what << ' ' << mode;
    return at == rows.end() ? none : *at;
}

TEST(Goals, EachIsOfAQuestionOfTheSuiteAndOfAChannelThatIsKnown) {
    constexpr std::array senses{"at most", "at least", "times faster"};
    const auto questions = bench::suite_questions(false);
    for (const auto& goal : nlohmann::json::parse(goals_text, nullptr, true, true)) {
        const auto what = goal["what"].get<std::string>();
        const auto at = std::ranges::find(questions, goal["run"].get<std::string>(),
                                          &bench::SuiteQuestion::name);
        ASSERT_NE(at, questions.end()) << what;
        EXPECT_TRUE(at->name.starts_with(at->words.front())) << what << ": not the kind of bench";
        const auto against = goal["against"].get<std::string>();
        EXPECT_TRUE(against == "peers" || against == "plain" || bench::is_known_channel(against))
            << what;
        EXPECT_NE(std::ranges::find(senses, goal["sense"].get<std::string>()), senses.end())
            << what;
        EXPECT_GT(goal["near"].get<double>(), 0) << what;
        EXPECT_GT(goal["far"].get<double>(), 0) << what;
    }
}

TEST(Goals, NothingMeasuredIsInconclusive) {
    const auto rows = goals_of({});
    ASSERT_FALSE(rows.empty());
    for (const GoalRow& one : rows) EXPECT_EQ(one.reached, "inconclusive") << one.what;
}

TEST(Goals, RatiosAreOfOneRunAndMode) {
    via::report::Run run{"latency", {figure("shm", 0.080, true), figure("line", 0.050, false)}, {}};
    run.figures.push_back(figure("shm", 0.450, true, "far"));
    via::report::Run elsewhere{"rate", {figure("line", 0.200, false, "far")}, {}};
    const auto rows = goals_of({run, elsewhere});
    const GoalRow& near = row(rows, "8 B send/receive, to the line", "near");
    EXPECT_DOUBLE_EQ(near.measured.value_or(0), 1.6);
    EXPECT_EQ(near.reached, "yes");
    const GoalRow& far = row(rows, "8 B send/receive, to the line", "far");
    EXPECT_FALSE(far.measured);
    EXPECT_EQ(far.reached, "inconclusive");
    EXPECT_EQ(far.ours, "0.45 us");
}

TEST(Goals, TheBestPeerCountsAndAPutIsNone) {
    const via::report::Run run{
        "latency",
        {figure("shm", 0.300, true), figure("pipe", 0.900, false), figure("mpich", 0.250, false),
         figure("ucx-put", 0.06, false), figure("line", 0.05, false)},
        {}};
    const auto rows = goals_of({run});
    const GoalRow& told = row(rows, "8 B send/receive, ahead", "near");
    EXPECT_EQ(told.other, "mpich 0.25 us");
    EXPECT_DOUBLE_EQ(told.measured.value_or(0), 1.2);
    EXPECT_EQ(told.reached, "no");
}

TEST(Goals, WhoWaitsIsNotHeldAgainstWhoPolls) {
    via::report::Run run{
        "latency-blocking",
        {figure("shm", 6, true), figure("pipe", 12, false), figure("mpich", 0.250, false)},
        {}};
    for (std::size_t n = 0; n < 3; ++n)
        run.figures[n].question.emplace_back("wait", n == 2 ? "poll" : "block");
    EXPECT_EQ(row(goals_of({run}), "8 B by waiting calls, ahead", "near").other, "pipe 12 us");
}

TEST(Goals, LargeMessagesInOneBufferAreNotHeldAgainstThoseInTurn) {
    via::report::Run run{
        "latency",
        {figure("shm", 2, true, "near", 65536), figure("mpich", 6, false, "near", 65536),
         figure("ucx-tag", 1, false, "near", 65536), figure("shm", 2, true),
         figure("ucx-tag", 1, false)},
        {}};
    for (std::size_t n = 0; n < run.figures.size(); ++n)
        run.figures[n].question.emplace_back("reuse", n % 2 == 0 && n != 0 ? "100" : "null");
    EXPECT_EQ(row(goals_of({run}), "64 KB one way, times", "near").other, "mpich 6 us");
    run.figures[0].question.back().second = "100";
    run.name = "latency-reused";
    EXPECT_EQ(row(goals_of({run}), "64 KB one way in one buffer", "near").other, "ucx-tag 1 us");
    run.name = "latency";
    EXPECT_EQ(row(goals_of({run}), "8 B send/receive, ahead", "near").other, "ucx-tag 1 us");
}

TEST(Goals, TimesFasterReadsTheOtherWayRound) {
    const via::report::Run run{
        "latency",
        {figure("shm", 4, true, "far", 65536), figure("openmpi", 12, false, "far", 65536)},
        {}};
    const GoalRow told = row(goals_of({run}), "64 KB one way, times", "far");
    EXPECT_DOUBLE_EQ(told.measured.value_or(0), 3);
    EXPECT_EQ(told.reached, "yes");
}

TEST(Goals, BetweenIsShownWhereThereIsNothingElse) {
    const via::report::Run run{
        "latency",
        {figure("shm", 0.2, true, "between"), figure("line", 0.1, false, "between")},
        {}};
    const GoalRow told = row(goals_of({run}), "8 B send/receive, to the line", "between");
    EXPECT_DOUBLE_EQ(told.measured.value_or(0), 2);
    EXPECT_EQ(told.reached, "(no goal)");
    EXPECT_NE(text_of({told}).find("2.00"), std::string::npos);
}

}  // namespace
}  // namespace via::report::goals_test
