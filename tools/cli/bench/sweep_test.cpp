#include "bench/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace via::bench::sweep_test {
namespace {

using Sizes = std::vector<std::uint64_t>;

Row row_of(std::uint64_t size, double median, Bench bench = Bench::bandwidth,
           Mode mode = Mode::near) {
    Row row;
    row.device = "shm";
    row.question.bench = bench;
    row.question.size = size;
    row.mode = mode;
    row.summary.median = median;
    return row;
}

TEST(Netpipe, PowersOfTwoAndThriceThemThreeMoreAndThreeLess) {
    EXPECT_EQ(netpipe_sizes(16), (Sizes{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16}));
    const Sizes all = netpipe_sizes(1 << 20);
    for (const std::uint64_t size : {49149u, 49152u, 49155u, 65533u, 65539u, 1u << 20}) {
        EXPECT_TRUE(std::binary_search(all.begin(), all.end(), size)) << size;
    }
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_EQ(all.back(), 1u << 20) << "and no byte more";
}

TEST(Netpipe, WhatSizeAccepts) {
    EXPECT_EQ(parse_sizes("4K", 1 << 20), Sizes{4096});
    EXPECT_EQ(parse_sizes("netpipe:16", 1 << 20), netpipe_sizes(16));
    EXPECT_EQ(parse_sizes("netpipe", 64 << 20), netpipe_sizes(4 << 20));
    EXPECT_EQ(parse_sizes("netpipe", 1 << 20), netpipe_sizes(1 << 20));
    for (const char* wrong :
         {"", "netpipe:", "netpipe:0", "netpipes", "netpipe:x", "2M", "-1", "netpipe:2M", ":4"}) {
        EXPECT_FALSE(parse_sizes(wrong, 1 << 20).has_value()) << wrong;
    }
}

TEST(Half, IsFoundBetweenTwoSizes) {
    const auto points =
        half_points({row_of(64, 100), row_of(1024, 300), row_of(2048, 500), row_of(65536, 800)});
    ASSERT_EQ(points.size(), 1u);
    EXPECT_DOUBLE_EQ(points[0].size, 1536);
    EXPECT_DOUBLE_EQ(points[0].most_mb_s, 800);
    EXPECT_EQ(points[0].at, 65536u);
    EXPECT_EQ(half_text(points),
              "\nshm, near: half of 800 MB/s (at 64K bytes) from 1536 bytes on\n");
    EXPECT_EQ(half_json(points),
              R"({"schema":"via-bench-half-1","bench":"bandwidth","device":"shm","mode":"near",)"
              R"("half_size":1536,"most_mb_s":800,"most_at_size":65536})"
              "\n");
}

TEST(Half, OfLatenciesItIsSizeByTime) {
    const auto points =
        half_points({row_of(8, 1, Bench::latency), row_of(64, 2, Bench::latency),
                     row_of(1000, 10, Bench::latency), row_of(10000, 50, Bench::latency)});
    ASSERT_EQ(points.size(), 1u);
    EXPECT_DOUBLE_EQ(points[0].most_mb_s, 200);
    EXPECT_DOUBLE_EQ(points[0].size, 1000);
}

TEST(Half, NeedsASweepOfOneModeThatReachesIt) {
    EXPECT_TRUE(half_points({row_of(8, 1), row_of(64, 20), row_of(4096, 500)}).empty())
        << "three sizes are no sweep";
    EXPECT_TRUE(half_points({row_of(8, 1), row_of(64, 20, Bench::bandwidth, Mode::far),
                             row_of(4096, 500), row_of(8192, 600)})
                    .empty());
    EXPECT_TRUE(
        half_points({row_of(1024, 500), row_of(2048, 600), row_of(4096, 700), row_of(8192, 800)})
            .empty())
        << "half lies below all of them";
    EXPECT_TRUE(half_points({row_of(8, 1, Bench::rate), row_of(64, 2, Bench::rate),
                             row_of(100, 3, Bench::rate), row_of(200, 9, Bench::rate)})
                    .empty());
}

}  // namespace
}  // namespace via::bench::sweep_test
