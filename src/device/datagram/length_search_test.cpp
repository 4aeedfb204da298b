#include "device/datagram/length_search.hpp"

#include <gtest/gtest.h>

#include "device/datagram/constants.hpp"

namespace via::device::datagram::length_search_test {
namespace {

/// Searches over a way that carries `carried`; returns how many probes it took.
int search(LengthSearch& search, std::uint32_t carried) {
    int probes = 0;
    while (const std::uint32_t length = search.wanted()) {
        ++probes;
        search.sent();
        EXPECT_EQ(search.wanted(), 0U) << "one under way";
        if (length <= carried) {
            EXPECT_TRUE(search.arrived(length));
        } else {
            search.lost(length);
        }
    }
    return probes;
}

TEST(LengthSearch, nothing_to_find) {
    LengthSearch length;
    length.begin(1472, 1472);
    EXPECT_EQ(length.wanted(), 0U);
    EXPECT_EQ(length.good(), 1472U);
}

TEST(LengthSearch, finds_what_the_way_carries) {
    for (const std::uint32_t carried : {1472U, 1500U, 4000U, 8972U, 20000U, 65507U}) {
        LengthSearch length;
        length.begin(1472, 65507);
        EXPECT_LE(search(length, carried), 3 * 12 + 12);
        EXPECT_LE(length.good(), carried);
        EXPECT_GE(length.good() + length_step_last, carried);
    }
}

TEST(LengthSearch, tries_the_hint_first) {
    LengthSearch length;
    length.begin(548, 9000, 1400);
    EXPECT_EQ(length.wanted(), 1400U);
    search(length, 1400);
    EXPECT_EQ(length.good(), 1400U);
    length.begin(548, 9000, 100'000);
    EXPECT_EQ(length.wanted(), 548 + length_step_first) << "a hint beyond reason";
}

TEST(LengthSearch, one_loss_says_little) {
    LengthSearch length;
    length.begin(1472, 1600);
    const std::uint32_t first = length.wanted();
    for (std::uint32_t n = 1; n < length_losses_max; ++n) {
        length.sent();
        length.lost(first);
        EXPECT_EQ(length.wanted(), first);
    }
    length.sent();
    length.lost(first);
    EXPECT_LT(length.wanted(), first);
}

TEST(LengthSearch, what_came_of_a_probe_says_nothing_of_another_length) {
    LengthSearch length;
    length.begin(1000, 1064);
    for (std::uint32_t n = 0; n < length_losses_max; ++n) {
        length.sent();
        length.lost(1064);
    }
    ASSERT_EQ(length.wanted(), 1032U);
    length.sent();
    length.raise(1064);
    EXPECT_EQ(length.wanted(), 0U) << "one is under way";
    EXPECT_FALSE(length.arrived(1032));
    EXPECT_EQ(length.good(), 1000U);
    EXPECT_EQ(length.wanted(), 1064U);
    length.begin(548, 1064);
    length.lost(1064);
    EXPECT_FALSE(length.arrived(1064));
    EXPECT_EQ(length.good(), 548U);
}

}  // namespace
}  // namespace via::device::datagram::length_search_test
