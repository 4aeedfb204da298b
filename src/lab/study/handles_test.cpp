// Dynamic look-up of handles: the cache, the protocol that sends again, and the host's thread.
#include "lab/study/handles.hpp"

#include <gtest/gtest.h>

#include "lab/design/handle_cache.hpp"
#include "lab/file/machine_file.hpp"
#include "lab/study/bench.hpp"

namespace via::lab::study::handles_test {

using design::HandleCache;

TEST(HandleCache, ALineIsFetchedWhole) {
    HandleCache cache(32, 8, 2);
    EXPECT_FALSE(cache.use({1, 12}).hit);
    cache.fill({1, 12});
    EXPECT_TRUE(cache.use({1, 8}).hit);
    EXPECT_TRUE(cache.use({1, 15}).hit);
    EXPECT_FALSE(cache.use({1, 16}).hit);
}

TEST(HandleCache, ProcessesShareSetsAndNotLines) {
    HandleCache cache(2, 1, 2);
    cache.fill({1, 7});
    EXPECT_FALSE(cache.use({2, 7}).hit);
    cache.fill({2, 7});
    cache.fill({3, 7});
    EXPECT_FALSE(cache.holds({1, 7}));
    EXPECT_TRUE(cache.known({1, 7}));
    EXPECT_FALSE(cache.known({4, 7}));
}

TEST(HandleCache, TheLineUsedLongestAgoGoes) {
    HandleCache cache(4, 1, 2);  // two sets
    cache.fill({0, 0});
    cache.fill({0, 2});
    EXPECT_EQ(cache.use({0, 0}).tags, 2);
    cache.fill({0, 4});
    EXPECT_TRUE(cache.holds({0, 0}));
    EXPECT_FALSE(cache.holds({0, 2}));
    EXPECT_FALSE(cache.use({0, 1}).hit) << "the other set has nothing";
}

struct LabHandles : testing::Test {
    Machine machine = file::load("mini").value();
    Bench bench{machine};
    MissAnswer ask(std::string_view words, std::int64_t size, std::int64_t percent,
                   std::uint32_t rounds = 20) {
        MissQuestion question;
        question.size = size;
        question.percent = percent;
        question.rounds = rounds;
        question.stream = true;
        const auto found = misses(bench.trial(words), question);
        EXPECT_TRUE(found.has_value()) << found.error();
        return found.value_or(MissAnswer{});
    }
};

TEST_F(LabHandles, WhatHitsIsNeverDropped) {
    const MissAnswer none = ask("", 4096, 0);
    EXPECT_EQ(none.counts.retransmissions, 0U);
    const MissAnswer all = ask("", 4096, 100);
    // 20 messages, and what the first uses of places missed.
    EXPECT_GE(all.counts.dropped, 20U);
    EXPECT_GE(all.counts.misses, 20U);
    EXPECT_GT(all.latency_us, none.latency_us + 100);
}

TEST_F(LabHandles, WhatIsHeldIsNeverSentAgain) {
    const MissAnswer held = ask("miss=hold", 4096, 100);
    EXPECT_EQ(held.counts.dropped + held.counts.discarded + held.counts.retransmissions, 0U);
    EXPECT_LT(held.latency_us, ask("", 4096, 100).latency_us);
}

TEST_F(LabHandles, ACacheOfOneEntryStillMakesProgress) {
    const MissAnswer found = ask("cache=1,line=1,ways=1", 8192, 0, 4);
    EXPECT_GT(found.rate_mb, 0);
    EXPECT_GT(found.counts.misses, 2U * 4);
}

TEST_F(LabHandles, PagesAreLetGoAboveTheMarkAlone) {
    EXPECT_EQ(ask("cache=2,line=1,ways=1,high_water=100000", 8192, 50, 4).counts.unpinned, 0U);
    machine.costs.miss_sweep = 1000;
    const MissAnswer found = ask("cache=2,line=1,ways=1,high_water=2", 8192, 50, 4);
    EXPECT_GT(found.counts.unpinned, 0U);
    EXPECT_LE(found.counts.pinned - found.counts.unpinned, 2U + 1);
}

TEST_F(LabHandles, ThatWithoutMissesIsAsFastAsTables) {
    Trial trial = bench.trial();
    trial.without.misses = true;
    EXPECT_NEAR(bench.one_way_us(trial, 4096),
                bench.one_way_us(bench.trial("at=2,cbh=static,pch=static"), 4096), 0.5);
}

TEST_F(LabHandles, ShapesThatCannotBeSaySo) {
    const auto refused = [&](std::string_view words) {
        const Trial trial = bench.trial(words);
        const auto made = design::make(trial.machine, trial.design, trial.load);
        return made ? std::string() : made.error();
    };
    EXPECT_NE(refused("cache=100").find("cache=100 is no multiple of ways="), std::string::npos);
    EXPECT_NE(refused("buffer_cache=17").find("multiple of 16"), std::string::npos);
    EXPECT_NE(refused("miss=wait").find("want one of drop, hold"), std::string::npos);
}

}  // namespace via::lab::study::handles_test
