#include "bench/libfabric_tool.hpp"

#include <gtest/gtest.h>

namespace via::bench {
namespace {

constexpr std::string_view good =
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    "64k     300     =300     37m         0.03s   1572.55      41.67       0.02\n";

std::string with(std::string_view from, std::string_view to) {
    std::string text(good);
    return text.replace(text.find(from), from.size(), to);
}

TEST(FiPingpong, TellsOneWay) {
    const auto us = one_way_us_of(good, 65536);
    ASSERT_TRUE(us.has_value()) << us.error().what;
    EXPECT_DOUBLE_EQ(*us, 41.67);
}

TEST(FiPingpong, SmallMessagesAreAllowedTheirRounding) {
    const auto us = one_way_us_of(
        "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
        "8       2k      =2k      31k         0.11s      0.28      28.08       0.04\n",
        8);
    ASSERT_TRUE(us.has_value()) << us.error().what;
    EXPECT_DOUBLE_EQ(*us, 28.08);
}

TEST(FiPingpong, WordsBeforeTheTableDoNotMatter) {
    EXPECT_TRUE(one_way_us_of("a warning\n" + std::string(good), 65536).has_value());
}

TEST(FiPingpong, WhatMakesNoSenseIsNoFigure) {
    for (const std::string& text :
         {std::string(), std::string("[error] failed to connect"), with("\n64k", " 64k"),
          with("41.67", "-41.67"), with("41.67", "nan"), with("41.67", "0"), with("41.67", "41x"),
          with("  0.02", ""), with("usec/xfer", "msec/xfer"), with("1572.55", "786.28")}) {
        const auto us = one_way_us_of(text, 65536);
        ASSERT_FALSE(us.has_value()) << text;
        EXPECT_NE(us.error().what.find("fi_pingpong"), std::string::npos);
    }
    EXPECT_FALSE(one_way_us_of(good, 4096).has_value()) << "of other messages";
}

}  // namespace
}  // namespace via::bench
