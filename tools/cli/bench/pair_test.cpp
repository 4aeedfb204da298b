#include "bench/pair.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/cpus.hpp"
#include "bench/faulty_channel.hpp"
#include "bench/loops.hpp"
#include "bench/session.hpp"

namespace via::bench::pair_test {
namespace {

Question latency_of(std::uint64_t size) {
    Question question;
    question.size = size;
    return question;
}

class PairTest : public testing::Test {
protected:
    void SetUp() override {
        const auto cpus = choose_cpus({});
        if (!cpus) GTEST_SKIP() << cpus.error().what;
        setup_.cpus = *cpus;
        setup_.max_size = 1 << 20;
        setup_.arena_bytes = 64u << 20;
    }
    // Nothing this test forked is left, not even as a zombie.
    void TearDown() override {
        EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
        EXPECT_EQ(errno, ECHILD);
    }

    PairSetup setup_;
};

class EveryChannel : public PairTest, public testing::WithParamInterface<std::string_view> {};

TEST_P(EveryChannel, DeliversWhatItWasGiven) {
    auto pair = Pair::start(make_comparison(GetParam()), setup_);
    ASSERT_TRUE(pair.has_value()) << pair.error().what;
    for (const Wait wait : {Wait::poll, Wait::block}) {
        for (const Bench bench : {Bench::latency, Bench::bandwidth}) {
            for (const std::uint64_t size : {0u, 1u, 7u, 8u, 13u, 64u, 4097u, 1u << 18}) {
                Question question = latency_of(size);
                question.bench = bench;
                question.wait = wait;
                question.depth = 4;
                question = (*pair)->channel().adapt(question);
                if (!(*pair)->channel().refuses(question).empty()) continue;
                if (GetParam() == "ring" && size > 8) continue;  // tunes itself for each
                const auto sample = (*pair)->ask(question, {2, 20, 5}, 60'000);
                ASSERT_TRUE(sample.has_value()) << sample.error().what;
                EXPECT_GT(sample->probe_before_ns, 0);
                if (sample->readings[0].retry) continue;
                EXPECT_EQ(sample->readings[0].messages, 20u);
                EXPECT_GT(sample->readings[0].first_ns, 0);
            }
        }
    }
}

// Programs of others need not be installed; they have a test of their own.
std::vector<std::string_view> channel_names(bool of_others = false) {
    std::vector<std::string_view> names;
    for (const ChannelInfo& info : known_channels()) {
        if ((info.sort == Sort::peer) == of_others) names.push_back(info.name);
    }
    return names;
}

// GoogleTest wants letters and digits.
std::string test_name(const testing::TestParamInfo<std::string_view>& param) {
    std::string name(param.param);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Known, EveryChannel, testing::ValuesIn(channel_names()), test_name);

TEST_F(PairTest, RingTunesItselfOnceThenMeasuresLargeMessages) {
    auto pair = Pair::start(make_ring(), setup_);
    ASSERT_TRUE(pair.has_value()) << pair.error().what;
    Question question = latency_of((1 << 18) + 5);  // the last chunk is a short one
    question.bench = Bench::bandwidth;
    question.depth = 4;
    bool measured = false;
    for (int turn = 0; turn < 4 && !measured; ++turn) {  // a change of mode tunes again
        const auto sample = (*pair)->ask(question, {2, 20, 0}, 60'000);
        ASSERT_TRUE(sample.has_value()) << sample.error().what;
        measured = !sample->readings[0].retry;
        if (measured) {
            EXPECT_GT(sample->readings[1].last_ns, sample->readings[0].first_ns);
        }
    }
    EXPECT_TRUE(measured);
}

class PeerTest : public PairTest, public testing::WithParamInterface<std::string_view> {};

TEST_P(PeerTest, IsRunOrWhatToInstallIsSaid) {
    auto pair = Pair::start(make_comparison(GetParam()), setup_);
    if (!pair) {
        EXPECT_NE(pair.error().what.find("./dev setup --peers"), std::string::npos)
            << pair.error().what;
        GTEST_SKIP() << pair.error().what;
    }
    EXPECT_FALSE((*pair)->channel().version().empty());
    for (const Bench bench : {Bench::latency, Bench::bandwidth}) {
        Question question = latency_of(4096);
        question.bench = bench;
        question.depth = bench == Bench::latency ? 1 : 16;
        question = (*pair)->channel().adapt(question);
        if (!(*pair)->channel().refuses(question).empty()) continue;
        const auto sample = (*pair)->ask(question, {2, 10, 0}, 60'000);
        ASSERT_TRUE(sample.has_value()) << sample.error().what;
        EXPECT_GT(to_sample(question, *sample).value, 0.05);
    }
}

INSTANTIATE_TEST_SUITE_P(Known, PeerTest, testing::ValuesIn(channel_names(true)), test_name);

TEST_F(PairTest, AKilledProcessIsNamedAndNothingIsLeft) {
    for (const Side side : {Side::first, Side::second}) {
        auto pair = Pair::start(make_pipe(), setup_);
        ASSERT_TRUE(pair.has_value()) << pair.error().what;
        const pid_t victim = (*pair)->process(side);
        ASSERT_EQ(::kill(victim, SIGKILL), 0);
        const auto sample = (*pair)->ask(latency_of(8), {2, 20, 5}, 60'000);
        ASSERT_FALSE(sample.has_value());
        EXPECT_NE(sample.error().what.find("ended by signal 9"), std::string::npos)
            << sample.error().what;
        EXPECT_NE(sample.error().what.find(std::to_string(victim)), std::string::npos);
        EXPECT_FALSE((*pair)->ask(latency_of(8), {2, 20, 5}, 60'000).has_value());
    }
}

TEST_F(PairTest, AHangingProcessEndsByTheWatchdog) {
    auto pair = Pair::start(std::make_unique<FaultyChannel>(Fault::hang), setup_);
    ASSERT_TRUE(pair.has_value()) << pair.error().what;
    const auto sample = (*pair)->ask(latency_of(8), {2, 20, 5}, 1'000);
    ASSERT_FALSE(sample.has_value());
    EXPECT_NE(sample.error().what.find("no answer within 1 s"), std::string::npos)
        << sample.error().what;
}

TEST_F(PairTest, AStoppedProcessIsNamed) {
    auto pair = Pair::start(make_unix_socket(), setup_);
    ASSERT_TRUE(pair.has_value()) << pair.error().what;
    const pid_t victim = (*pair)->process(Side::second);
    ASSERT_EQ(::kill(victim, SIGSTOP), 0);
    const auto sample = (*pair)->ask(latency_of(8), {2, 20, 5}, 1'000);
    ASSERT_FALSE(sample.has_value());
    EXPECT_NE(sample.error().what.find("it is stopped"), std::string::npos);
    EXPECT_NE(sample.error().what.find(std::to_string(victim)), std::string::npos);
}

TEST_F(PairTest, AFailureInAChildIsTold) {
    auto closed = Pair::start(std::make_unique<FaultyChannel>(Fault::open), setup_);
    ASSERT_FALSE(closed.has_value());
    EXPECT_EQ(closed.error().what, "faulty: no door");
    auto pair = Pair::start(std::make_unique<FaultyChannel>(Fault::measure), setup_);
    ASSERT_TRUE(pair.has_value()) << pair.error().what;
    const auto sample = (*pair)->ask(latency_of(8), {2, 20, 5}, 60'000);
    ASSERT_FALSE(sample.has_value());
    EXPECT_EQ(sample.error().what, "faulty: no ruler");
}

}  // namespace
}  // namespace via::bench::pair_test
