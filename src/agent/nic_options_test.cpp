#include "agent/nic_options.hpp"

#include <gtest/gtest.h>

#include "agent/test_support.hpp"

namespace via::agent::nic_options_test {
namespace {

using test::Variable;

std::expected<NicOptions, std::string> options_of(std::string_view name) {
    return nic_options(split_nic_name(name));
}

std::string wrong_with(std::string_view name) {
    const auto options = options_of(name);
    return options ? "" : options.error();
}

TEST(NicOptions, FollowTheName) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    EXPECT_EQ(split_nic_name("shm:left,pin=never").name, "shm:left");
    EXPECT_EQ(split_nic_name("shm").name, "shm");
    EXPECT_EQ(options_of("shm")->pin, Pin::prefer) << "the default";
    EXPECT_EQ(options_of("shm,pin=require")->pin, Pin::require);
    EXPECT_EQ(options_of("shm:left,pin=prefer")->pin, Pin::prefer);
    EXPECT_EQ(options_of("shm,pin=never")->pin, Pin::never);
    EXPECT_EQ(options_of("shm,pin=dma")->pin, Pin::dma);
    EXPECT_EQ(options_of("shm,pin=never,pin=dma")->pin, Pin::dma) << "the last one holds";
    EXPECT_EQ(options_of("shm")->granularity, Granularity::byte);
    EXPECT_EQ(options_of("shm,granularity=page")->granularity, Granularity::page);
}

TEST(NicOptions, TheWireMayHaveToBeSealed) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    EXPECT_EQ(options_of("udp:eth0")->secure, Secure::configured);
    EXPECT_EQ(options_of("udp:eth0,secure=require")->secure, Secure::require);
    EXPECT_EQ(options_of("udp:eth0,secure=never")->secure, Secure::never);
    EXPECT_EQ(options_of("udp:eth0,secure=prefer")->secure, Secure::prefer);
    EXPECT_FALSE(options_of("udp:eth0,secure=perhaps"));
}

TEST(NicOptions, ANicMayHaveNoPaths) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    EXPECT_EQ(options_of("udp:eth0")->paths, 4096U);
    EXPECT_EQ(options_of("udp:eth0,own_frames=never,paths=0")->paths, 0U) << "as viad opens it";
    EXPECT_FALSE(options_of("udp:eth0,paths=4097"));
}

TEST(NicOptions, WaysOverRelaysStandInAFile) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    EXPECT_EQ(options_of("udp:eth0")->ways, "");
    EXPECT_EQ(options_of("udp:eth0,ways=/etc/openvia/a2.ways,paths=0")->ways,
              "/etc/openvia/a2.ways");
    EXPECT_FALSE(options_of("udp:eth0,ways="));
}

TEST(NicOptions, WhatIsWrongIsNamedWithWhatIsPossible) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    for (const char* name : {"shm,", "shm,pim=never", "shm,pin=never,", "shm,Pin=never",
                             "shm,,pin=never", "shm, pin=never", "shm,=never"}) {
        EXPECT_NE(wrong_with(name).find("is no option; there are: pin = require, prefer, never "),
                  std::string::npos)
            << name << ": " << wrong_with(name);
    }
    EXPECT_NE(wrong_with("shm,pim=never").find("\"pim\""), std::string::npos);
    for (const char* name : {"shm,pin", "shm,pin=", "shm,pin=maybe", "shm,pin=never "}) {
        EXPECT_NE(wrong_with(name).find("\": pin is require, prefer, never or dma"),
                  std::string::npos)
            << name << ": " << wrong_with(name);
    }
    EXPECT_NE(wrong_with("shm,pin=maybe").find("\"pin=maybe\""), std::string::npos);
    EXPECT_EQ(wrong_with("shm,pin=\x1b[31m").find('\x1b'), std::string::npos) << "fit for a log";
}

TEST(NicOptions, TheEnvironmentHasDefaultsForEveryNic) {
    const Variable defaults("OPENVIA_OPTIONS", "pin=require");
    EXPECT_EQ(options_of("shm")->pin, Pin::require);
    EXPECT_EQ(options_of("shm,pin=never")->pin, Pin::never) << "what the name says wins";
    const Variable empty("OPENVIA_OPTIONS", "");
    EXPECT_EQ(options_of("shm")->pin, Pin::prefer);
    const Variable bad("OPENVIA_OPTIONS", "pin=maybe");
    EXPECT_NE(wrong_with("shm,pin=never").find("OPENVIA_OPTIONS: \"pin=maybe\""),
              std::string::npos);
}

TEST(NicOptions, GiveTheShapeOfASmallTable) {
    const Variable none("OPENVIA_OPTIONS", nullptr);
    EXPECT_EQ(options_of("shm")->table().entries, 0U) << "off by default";
    const auto options = options_of(
        "shm,table_entries=16,table_line=2,table_ways=2,table_replacement=random,lock_max=65536");
    ASSERT_TRUE(options) << options.error();
    EXPECT_EQ(options->table().entries, 16U);
    EXPECT_EQ(options->table().line, 2U);
    EXPECT_EQ(options->table().ways, 2U);
    EXPECT_EQ(options->table().replacement, memory::Replacement::random);
    EXPECT_EQ(options->lock_max, 65536U);
    EXPECT_EQ(options_of("shm,table_replacement=fifo")->table_replacement,
              memory::Replacement::fifo);
    EXPECT_EQ(wrong_with("shm,table_entries=17"),
              "table_entries is not a multiple of table_line * table_ways");
    EXPECT_NE(wrong_with("shm,table_entries=-1").find("table_entries is 0 to 1048576"),
              std::string::npos);
    EXPECT_NE(wrong_with("shm,table_line=3").find("a power of two"), std::string::npos);
    EXPECT_NE(wrong_with("shm,table_ways=0").find("table_ways is 1 to 64"), std::string::npos);
    EXPECT_NE(wrong_with("shm,table_replacement=best").find("lru, fifo or random"),
              std::string::npos);
    EXPECT_NE(wrong_with("shm,table_entries=64,pin=dma").find("take one of them"),
              std::string::npos);
}

TEST(NicOptions, AreToldWithTheirDefaults) {
    ASSERT_FALSE(nic_option_texts().empty());
    for (const NicOptionText& text : nic_option_texts()) {
        NicOptions options;
        EXPECT_TRUE(apply_options(text.name + "=" + text.otherwise, options)) << text.name;
        EXPECT_FALSE(text.meaning.empty());
    }
}

}  // namespace
}  // namespace via::agent::nic_options_test
