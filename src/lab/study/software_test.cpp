// Our own NIC as a machine: its costs add up, its mechanisms show, and its rows hold.
#include "lab/study/software.hpp"

#include <gtest/gtest.h>

#include "lab/file/machine_file.hpp"
#include "lab/processor_cache.hpp"
#include "lab/study/bench.hpp"
#include "lab/study/today.hpp"

namespace via::lab::study::software_test {

struct LabSoftware : testing::Test {
    Machine machine = file::load("shm").value();
    Bench bench{machine};
    double latency_ns(std::int64_t size, const Without& without = {}) {
        Bench other(machine, without);
        return other.one_way_us(other.trial(), size) * 1e3;
    }
    /// Of messages from so many buffers in turn, once all of these have been used.
    double settled_ns(std::int64_t size, std::int64_t buffers = 1) {
        Question question;
        question.size = size;
        question.buffers = buffers;
        question.warm = 16;
        return bench.one_way(bench.trial(), question).mean_ns;
    }
    void forget_caches() { machine.costs.software_far = machine.costs.link; }
};

TEST_F(LabSoftware, AMessageWithoutBytesIsAPostALineAndAReceive) {
    machine.costs.software_receive = 7;
    const Costs& costs = machine.costs;
    EXPECT_DOUBLE_EQ(latency_ns(0), static_cast<double>(costs.user_post + costs.software_line + 7));
}

TEST_F(LabSoftware, TheTwoCopiesOfAFrameFollowEachOther) {
    forget_caches();
    const double copy = static_cast<double>(time_of(4096, machine.costs.link).ns);
    EXPECT_DOUBLE_EQ(latency_ns(4096) - latency_ns(0), 2 * copy);
    Without without;
    without.copies = true;
    EXPECT_DOUBLE_EQ(latency_ns(4096, without), latency_ns(0));
}

TEST_F(LabSoftware, FramesGoWhileTheOneBeforeIsCopiedOutButShareTheWay) {
    forget_caches();
    const double copy = static_cast<double>(time_of(8192, machine.costs.link).ns);
    const double eight = latency_ns(8 * 8192) - latency_ns(0);
    EXPECT_GE(eight, 16 * copy) << "each byte crosses twice";
    EXPECT_LT(eight, 8 * (2 * copy + static_cast<double>(machine.costs.software_line)))
        << "some of the lines come while others are copied";
}

TEST_F(LabSoftware, AStreamIsNoFasterThanTheWayOfBothCopies) {
    forget_caches();
    const double half = static_cast<double>(machine.costs.link) / 2e6;
    const double stream = bench.rate_mb(bench.trial(), 65'536);
    EXPECT_LT(stream, half);
    EXPECT_GT(stream, half * 0.8);
}

TEST_F(LabSoftware, WhatTheCachesHoldIsCopiedFaster) {
    const double near = settled_ns(4096);
    machine.costs.software_cache = 0;
    const double link = static_cast<double>(machine.costs.link);
    const double far = static_cast<double>(machine.costs.software_far);
    EXPECT_NEAR(settled_ns(4096) - near, 2 * 4096e9 * (1 / far - 1 / link), 4)
        << "every line, read or written, in both copies";
}

TEST_F(LabSoftware, AMessageAloneLiesWhereTheLastOneLay) {
    machine.costs.software_cache = 64 << 10;
    const double near = settled_ns(4096);
    forget_caches();
    EXPECT_DOUBLE_EQ(settled_ns(4096), near) << "all lines are in caches";
}

TEST_F(LabSoftware, FramesOfALongMessageLieWhereNoneLayForLong) {
    const double held = settled_ns(65'536);
    forget_caches();
    const double all = settled_ns(65'536);
    EXPECT_GT(held, all * 1.05) << "their room is larger than the caches";
}

TEST_F(LabSoftware, BuffersThatTheCacheDoesNotHoldAreFar) {
    const double few = settled_ns(65'536, 2);
    EXPECT_GT(settled_ns(65'536, 16), few * 1.1) << "16 x 64 KB are 1 MB, and frames are as many";
}

TEST_F(LabSoftware, WithoutTheirEndCachesHoldEverything) {
    Without without;
    without.cache_end = true;
    const double endless = latency_ns(1 << 20, without);
    forget_caches();
    EXPECT_NEAR(latency_ns(1 << 20), endless, endless / 100) << "near and far are rounded each";
}

TEST(LabProcessorCache, LosesWhatWasUsedLongestAgo) {
    ProcessorCache cache(2 * Block::bytes);
    const Block one{0, {}, 1}, other{0, {}, 2}, shared{0, 1, 1};
    cache.use(one);
    cache.use(other);
    cache.use(one);
    EXPECT_EQ(cache.bytes(), 2 * Block::bytes);
    cache.use(shared);
    EXPECT_TRUE(cache.holds(one));
    EXPECT_FALSE(cache.holds(other));
    EXPECT_TRUE(cache.holds(shared));
    EXPECT_EQ(cache.bytes(), 2 * Block::bytes);
    cache.drop(one);
    cache.drop(one);
    EXPECT_FALSE(cache.holds(one));
    EXPECT_EQ(cache.bytes(), Block::bytes);
}

TEST_F(LabSoftware, ARoomThatIsFullKeepsTheSenderWaiting) {
    forget_caches();  // a room that is small stays in them
    machine.costs.software_room = 8192;
    const double held = bench.rate_mb(bench.trial(), 65'536);
    machine.costs.software_room = 4 << 20;
    EXPECT_LT(held, bench.rate_mb(bench.trial(), 65'536) * 0.9);
}

TEST_F(LabSoftware, ItHasNoWordsOfADesign) {
    Trial trial = bench.trial();
    trial.design["at"] = "2";
    const auto found = latency(trial, {});
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error(),
              "design of shm: there is no \"at\" of this machine: its NIC is a "
              "library");
}

TEST_F(LabSoftware, WhoSleepsIsWokenAndWhoIsAskedOftenNeverSleeps) {
    const auto answer = ask_interrupt(machine, 8);
    ASSERT_TRUE(answer.has_value()) << answer.error();
    ASSERT_EQ(answer->curves.size(), 2U);
    const double woken = static_cast<double>(machine.costs.interrupt) / 1e3;
    EXPECT_GT(answer->curves[1].y.front(), answer->curves[0].y.front() + woken);
    EXPECT_LT(answer->curves[1].y.back(), 1.0) << "the first message alone finds it asleep";
    EXPECT_FALSE(ask_doorbells(machine, 1).has_value()) << "it has none";
}

TEST_F(LabSoftware, ItsRowsHold) {
    const auto rows = shm_rows(machine, {});
    ASSERT_TRUE(rows.has_value()) << rows.error();
    for (const Row& row : *rows)
        EXPECT_EQ(row.reproduced, row.expected) << row.figure << ": " << row.ours;
}

TEST_F(LabSoftware, SaysAtWhichSizesItAgrees) {
    const double us = settled_ns(8, 4) / 1e3;
    const auto all = agreements(machine, {{8, us}, {16, us * 2}});
    ASSERT_TRUE(all.has_value());
    EXPECT_EQ(sentence_of(*all), "The model agrees within 15 % at 8 B.");
    EXPECT_EQ(sentence_of({{16, us * 2, us}}), "The model agrees within 15 % at no size.");
}

}  // namespace via::lab::study::software_test
