#include "bench/session.hpp"

#include <gtest/gtest.h>

#include "bench/cpus.hpp"
#include "bench/faulty_channel.hpp"

namespace via::bench::session_test {
namespace {

RawSample raw(std::uint64_t messages, std::int64_t took_ns, std::uint32_t legs) {
    RawSample sample;
    sample.readings[0].first_ns = 1'000;
    sample.readings[0].last_ns = 1'000 + took_ns;
    sample.readings[0].messages = messages;
    sample.readings[0].legs = legs;
    sample.readings[0].cpu_ns = took_ns;
    sample.readings[1].cpu_ns = 2 * took_ns;
    for (Disturbance& side : sample.disturbances) side.runnable = side.processors = 2;
    sample.probe_before_ns = 50;
    sample.probe_after_ns = 54;
    return sample;
}

TEST(ToSample, LatencyIsHalfARoundTrip) {
    const Sample sample = to_sample(Question{}, raw(1000, 4'000'000, 2));
    EXPECT_DOUBLE_EQ(sample.value, 2.0);
    EXPECT_DOUBLE_EQ(sample.cpu_us[0], 2.0);
    EXPECT_DOUBLE_EQ(sample.cpu_us[1], 4.0);
    EXPECT_DOUBLE_EQ(sample.probe_ns, 52);
    EXPECT_EQ(sample.verdict.mode, Mode::near);
}

TEST(ToSample, BetweenMachinesNoProbeIsMissed) {
    RawSample sample = raw(1000, 4'000'000, 2);
    sample.probe_before_ns = sample.probe_after_ns = 0;
    EXPECT_EQ(to_sample(Question{}, sample).verdict.drop, Drop::no_probe);
    sample.remote = true;
    EXPECT_EQ(to_sample(Question{}, sample).verdict.mode, Mode::remote);
    sample.disturbances[1].steal_ticks = 1;
    EXPECT_EQ(to_sample(Question{}, sample).verdict.drop, Drop::steal);
}

TEST(ToSample, AReadIsThereAndBack) {
    EXPECT_DOUBLE_EQ(to_sample(Question{}, raw(1000, 4'000'000, 1)).value, 4.0);
}

TEST(ToSample, StreamsRunFromFirstPostToLastReceive) {
    Question question;
    question.bench = Bench::bandwidth;
    question.size = 4096;
    RawSample sample = raw(1000, 1, 1);
    sample.readings[0].last_ns = 0;
    sample.readings[1].last_ns = 1'000 + 1'000'000;  // the receiver's clock counts
    EXPECT_DOUBLE_EQ(to_sample(question, sample).value, 4096.0);
    question.bench = Bench::rate;
    EXPECT_DOUBLE_EQ(to_sample(question, sample).value, 1.0);
}

TEST(ToSample, BothWaysAreSummedAndTold) {
    Question question;
    question.bench = Bench::rate;
    question.both_ways = true;
    RawSample sample = raw(1000, 1'000'000, 1);
    sample.readings[1].first_ns = 501'000;
    sample.readings[1].last_ns = 2'001'000;
    const Sample told = to_sample(question, sample);
    EXPECT_DOUBLE_EQ(told.value, 1.0) << "2000 messages from the first post of all to the last one";
    EXPECT_DOUBLE_EQ(told.each[0], 0.5);
    EXPECT_DOUBLE_EQ(told.each[1], 2.0);
    EXPECT_DOUBLE_EQ(told.cpu_us[1], 1.0) << "of a message, of which there are twice as many";
}

Series with(std::size_t near, std::size_t far) {
    Series series;
    for (std::size_t i = 0; i < near; ++i) series.samples.push_back({{Drop::none, Mode::near}});
    for (std::size_t i = 0; i < far; ++i) series.samples.push_back({{Drop::none, Mode::far}});
    series.samples.push_back({{Drop::steal, {}}});
    return series;
}

TEST(Complete, EveryChannelNeedsItsRoundsInOneMode) {
    const Series a = with(5, 1);
    const Series b = with(5, 7);
    const Series c = with(4, 7);
    EXPECT_TRUE(is_complete({&a, &b}, 5, Wanted::any));
    EXPECT_TRUE(is_complete({&a, &b}, 5, Wanted::near));
    EXPECT_FALSE(is_complete({&a, &b}, 5, Wanted::far));
    EXPECT_FALSE(is_complete({&a, &b, &c}, 5, Wanted::any));
    EXPECT_FALSE(is_complete({&b, &c}, 5, Wanted::both));
    EXPECT_TRUE(is_complete({&b, &c}, 4, Wanted::both));
}

/// Messages of 4 us each; the first hundred take ten times as long.
TEST(Tuned, TheFirstMessagesDoNotDecide) {
    std::uint64_t passed = 0;
    const auto took = [&](std::uint64_t messages) -> Result<double> {
        double all_ns = 0;
        for (std::uint64_t n = 0; n < messages; ++n) all_ns += passed++ < 100 ? 40'000 : 4'000;
        return all_ns;
    };
    const auto message_ns = tuned_message_ns(5'000'000, 4, took);
    ASSERT_TRUE(message_ns.has_value());
    EXPECT_DOUBLE_EQ(*message_ns, 4'000);
    EXPECT_LT(passed, 10'000u);
}

TEST(Tuned, AskedForOneThatTakesLongItAsksForFew) {
    std::uint64_t passed = 0;
    const auto took = [&](std::uint64_t messages) -> Result<double> {
        passed += messages;
        return static_cast<double>(messages) * 20e6;
    };
    EXPECT_DOUBLE_EQ(*tuned_message_ns(5'000'000, 64, took), 20e6);
    EXPECT_LE(passed, 64u + 6u + 1u);
}

class SessionRun : public testing::Test {
protected:
    void SetUp() override {
        const auto cpus = choose_cpus({});
        if (!cpus) GTEST_SKIP() << cpus.error().what;
        plan_.cpus = *cpus;
        plan_.rounds = 1;
        plan_.sample_ns = 200'000;
        plan_.max_seconds = 20;
    }

    void ask(Bench bench, std::initializer_list<std::uint64_t> sizes) {
        for (const std::uint64_t size : sizes) {
            Question question;
            question.bench = bench;
            question.size = size;
            question.depth = 4;
            plan_.questions.push_back(question);
        }
    }

    Plan plan_;
};

// Noise may drop every sample, so only what holds on any machine is expected.
TEST_F(SessionRun, AsksEveryChannelAndLeavesOutWhoCannotAnswer) {
    ask(Bench::bandwidth, {8, 4096});
    plan_.channels.push_back(make_pipe());
    plan_.channels.push_back(make_spsc());
    plan_.channels.push_back(make_line());
    const auto outcome = run_session(std::move(plan_));
    ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
    EXPECT_EQ(outcome->series.size(), 3u) << "pipe twice, spsc for 8 bytes";
    EXPECT_EQ(outcome->notes.size(), 3u) << "spsc for 4096 bytes, line twice";
    for (const Series& series : outcome->series) {
        ASSERT_FALSE(series.samples.empty());
        EXPECT_LE(series.samples.size(), tries_per_round);
        for (const Sample& sample : series.samples) EXPECT_GT(sample.value, 0);
    }
}

TEST_F(SessionRun, AComparisonThatFailsIsLeftOutAndTheOthersAnswer) {
    ask(Bench::rate, {8, 64});
    plan_.channels.push_back(make_pipe());
    plan_.channels.push_back(std::make_unique<FaultyChannel>(Fault::measure));
    plan_.channels.push_back(make_unix_socket());
    const auto outcome = run_session(std::move(plan_));
    ASSERT_TRUE(outcome.has_value()) << outcome.error().what;
    ASSERT_EQ(outcome->series.size(), 4u) << "pipe and Unix socket, of two sizes";
    for (const Series& series : outcome->series) {
        EXPECT_NE(series.channel, 1u);
        EXPECT_FALSE(series.samples.empty());
    }
    ASSERT_EQ(outcome->left_out.size(), 1u) << "for both sizes at once";
    EXPECT_EQ(outcome->left_out[0].channel, "faulty");
    EXPECT_EQ(outcome->left_out[0].why, "faulty: no ruler");
}

TEST_F(SessionRun, FailsWhenOursFails) {
    ask(Bench::rate, {8});
    plan_.channels.push_back(std::make_unique<FaultyChannel>(Fault::measure));
    plan_.channels.push_back(make_pipe());
    const auto outcome = run_session(std::move(plan_));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().what, "faulty: no ruler");
}

TEST_F(SessionRun, FailsWhenOursCannotAnswer) {
    ask(Bench::rate, {8});
    plan_.channels.push_back(make_line());
    const auto outcome = run_session(std::move(plan_));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_NE(outcome.error().what.find("line"), std::string::npos);
}

}  // namespace
}  // namespace via::bench::session_test
