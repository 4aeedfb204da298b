#include "bench/questions.hpp"

#include <gtest/gtest.h>

#include <set>

#include "bench/link.hpp"
#include "bench/sweep.hpp"

namespace via::bench::questions_test {
namespace {

cli::BenchOptions options_of(const std::string& bench) {
    cli::BenchOptions options;
    options.bench = bench;
    return options;
}

// What is wrong with these options, or nothing.
template <class Change>
std::string failure_of(const std::string& bench, Change change) {
    cli::BenchOptions options = options_of(bench);
    change(options);
    const auto questions = questions_of(options);
    return questions ? "" : questions.error().what;
}

TEST(Questions, WithoutSizesThereAreSome) {
    EXPECT_EQ(questions_of(options_of("latency"))->size(), 3u);
    EXPECT_EQ(questions_of(options_of("rate"))->size(), 1u);
    EXPECT_EQ(questions_of(options_of("rate"))->front().depth, 16u);
    EXPECT_EQ(questions_of(options_of("latency"))->front().depth, 1u);
}

TEST(Questions, SizesComeOnceAndVeryLargeOnesWithLessDepth) {
    cli::BenchOptions options = options_of("bandwidth");
    options.sizes = {"64", "netpipe:64", "32M"};
    const auto questions = questions_of(options);
    ASSERT_TRUE(questions.has_value());
    EXPECT_EQ(questions->size(), parse_sizes("netpipe:64", 64)->size() + 1);
    EXPECT_EQ(questions->back().depth, 2u);
}

TEST(Questions, IdleVisComeBesidesActiveOnes) {
    cli::BenchOptions options = options_of("latency");
    options.vis = 90;
    options.active_vis = 10;
    EXPECT_EQ(questions_of(options)->front().vis, 99u);
    EXPECT_EQ(questions_of(options)->front().active_vis, 10u);
    options.active_vis = 1;
    options.rotate_vis = true;
    EXPECT_EQ(questions_of(options)->front().vis, 90u);
    EXPECT_EQ(questions_of(options)->front().active_vis, 91u);
    options.active_vis = 2;
    EXPECT_FALSE(questions_of(options).has_value());
}

TEST(Questions, NonsenseIsSaid) {
    using Options = cli::BenchOptions;
    const std::vector<std::pair<std::string, void (*)(Options&)>> all{
        {"latency", [](Options& o) { o.sizes = {"65M"}; }},
        {"latency", [](Options& o) { o.sizes = {"8"}, o.segments = 9; }},
        {"rate", [](Options& o) { o.active_vis = 2, o.post_many = 2; }},
        {"rate", [](Options& o) { o.post_many = 65; }},
        {"latency", [](Options& o) { o.op = "read", o.immediate = true; }},
        {"latency", [](Options& o) { o.op = "read", o.reliability = "unreliable"; }},
        {"latency", [](Options& o) { o.op = "atomic", o.reliability = "unreliable"; }},
        {"latency", [](Options& o) { o.op = "atomic", o.sizes = {"16"}; }},
        {"latency", [](Options& o) { o.reuse = 50, o.sizes = {"7"}; }},
        {"latency", [](Options& o) { o.both_ways = true; }},
        {"bandwidth", [](Options& o) { o.both_ways = true, o.op = "read"; }},
        {"rate", [](Options& o) { o.both_ways = true, o.wait = "block"; }},
        {"latency", [](Options& o) { o.senders = 2; }},
        {"rate", [](Options& o) { o.senders = 2, o.both_ways = true; }},
        {"rate", [](Options& o) { o.senders = 2, o.active_vis = 2; }},
        {"rate", [](Options& o) { o.senders = 2, o.op = "write"; }},
        {"rate", [](Options& o) { o.senders = 2, o.reuse = 1; }},
        {"rate", [](Options& o) { o.senders = 64, o.sizes = {"1M"}; }},
    };
    std::set<std::string> said;
    for (const auto& [bench, change] : all) said.insert(failure_of(bench, change));
    EXPECT_EQ(said.size(), all.size()) << "each in its own words";
    EXPECT_EQ(said.count(""), 0u);
    EXPECT_EQ(failure_of("rate", [](Options& o) { o.both_ways = o.cq = true, o.wait = "block"; }),
              "");
    EXPECT_EQ(failure_of("rate", [](Options& o) { o.senders = 64, o.sizes = {"64K"}; }), "");
    EXPECT_EQ(failure_of("latency", [](Options& o) { o.sizes = {"0"}, o.segments = 1; }), "");
    EXPECT_NE(failure_of("latency", [](Options& o) { o.post_many = 2; }), "");
    EXPECT_NE(failure_of("rate", [](Options& o) { o.op = "read", o.post_many = 2; }), "");
    EXPECT_EQ(failure_of("rate", [](Options& o) { o.post_many = 64; }), "");
    EXPECT_EQ(failure_of("latency", [](Options& o) { o.op = "atomic"; }), "") << "one word";
}

TEST(Reuse, ThatManyMessagesTakeTheSameBuffersAndTheOthersNever) {
    Question question;
    question.size = 64;
    for (const std::uint32_t percent : {0u, 1u, 40u, 99u, 100u}) {
        SCOPED_TRACE(percent);
        question.reuse = percent;
        std::vector<std::byte> memory(arena_bytes_for(question));
        const Pool pool = pools_of({memory.data(), memory.size()}, question).send;
        EXPECT_EQ(pool.window(), 1u) << "a ping-pong has one under way";
        std::uint32_t again = 0;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            const std::uint64_t index = pool.index(i);
            ASSERT_LT(index, pool.total());
            if (index < pool.again) ++again;
        }
        EXPECT_EQ(again, percent * 10);
    }
}

TEST(Reuse, WhatIsUnderWayInAStreamSharesNoBuffer) {
    Question question;
    question.bench = Bench::bandwidth;
    question.depth = 10;
    for (const std::uint64_t size : {64u, 100'000u, 1u << 20}) {
        for (const std::uint32_t percent : {0u, 33u, 50u, 100u}) {
            question.size = size;
            question.reuse = percent;
            const Pool pool{nullptr, 64, buffers_for(question), buffers_to_reuse(question),
                            percent};
            EXPECT_GE(pool.window(), question.depth);
            for (std::uint64_t i = 0; i < 5000; i += 7) {
                std::set<std::uint64_t> used;
                for (std::uint64_t n = 0; n < pool.window(); ++n) used.insert(pool.index(i + n));
                ASSERT_EQ(used.size(), pool.window()) << size << " " << percent << " " << i;
            }
        }
    }
}

TEST(Reuse, DescriptorsHaveRoomForTheirSegments) {
    EXPECT_EQ(descriptor_stride(1), 64u);
    EXPECT_EQ(descriptor_stride(2), 128u);
    EXPECT_EQ(descriptor_stride(252), 4096u);
}

}  // namespace
}  // namespace via::bench::questions_test
