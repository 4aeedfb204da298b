#include "device/datagram/received_numbers.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/random.hpp"

namespace via::device::datagram::received_numbers_test {
namespace {

std::string named(const ReceivedNumbers& numbers) {
    wire::Ack ack;
    numbers.fill(ack);
    std::string text;
    std::uint64_t last = ack.largest;
    for (std::uint32_t n = 0; n < ack.count; ++n) {
        if (n != 0) last -= ack.ranges[n].missing;
        const std::uint64_t first = last - ack.ranges[n].there + 1;
        text += (n == 0 ? "" : " ") + std::to_string(first) + "-" + std::to_string(last);
        last = first - 1;
    }
    return text;
}

TEST(ReceivedNumbers, ranges_join) {
    ReceivedNumbers numbers;
    EXPECT_FALSE(numbers.add(0));
    EXPECT_FALSE(numbers.add(1));
    EXPECT_TRUE(numbers.add(5)) << "2 to 4 are missing";
    EXPECT_FALSE(numbers.add(6));
    EXPECT_TRUE(numbers.add(8));
    EXPECT_EQ(named(numbers), "8-8 5-6 0-1");
    EXPECT_FALSE(numbers.add(7)) << "nothing more is missing";
    EXPECT_EQ(named(numbers), "5-8 0-1");
    EXPECT_FALSE(numbers.add(3));
    EXPECT_EQ(named(numbers), "5-8 3-3 0-1");
    EXPECT_FALSE(numbers.add(2));
    EXPECT_FALSE(numbers.add(4));
    EXPECT_EQ(named(numbers), "0-8");
}

TEST(ReceivedNumbers, first_number_missing_shows) {
    ReceivedNumbers numbers;
    EXPECT_TRUE(numbers.add(1));
    EXPECT_TRUE(numbers.seen(1));
    EXPECT_FALSE(numbers.seen(0));
    EXPECT_EQ(named(numbers), "1-1");
}

TEST(ReceivedNumbers, old_ones_count_as_seen) {
    ReceivedNumbers numbers;
    for (std::uint64_t n = 0; n <= wire::ack_ranges_max; ++n) numbers.add(10 + 2 * n);
    EXPECT_TRUE(numbers.seen(10));
    EXPECT_TRUE(numbers.seen(9)) << "below everything that is remembered";
    EXPECT_FALSE(numbers.seen(11));
    EXPECT_FALSE(numbers.seen(13));
    numbers.add(11);  // older than all ranges: it is taken, and remembered as the floor
    EXPECT_TRUE(numbers.seen(11));
}

TEST(ReceivedNumbers, what_the_peer_knows_is_not_named) {
    ReceivedNumbers numbers;
    for (const std::uint64_t n : {0U, 1U, 4U, 8U, 9U}) numbers.add(n);
    numbers.known_below(5);
    EXPECT_EQ(named(numbers), "8-9");
    numbers.add(2);  // late, and news
    EXPECT_EQ(named(numbers), "8-9 4-4 0-2");
    EXPECT_TRUE(numbers.seen(1));
}

TEST(ReceivedNumbers, agrees_with_a_set) {
    Random random(5);
    ReceivedNumbers numbers;
    std::set<std::uint64_t> all;
    for (std::uint64_t n = 0; n < 5000; ++n) {
        const std::uint64_t number = n + random.below(12);
        const bool known = all.contains(number);
        // What is far behind may be forgotten; nothing that was not seen counts so near the front.
        if (number + 30 > n) {
            ASSERT_EQ(numbers.seen(number), known) << number;
        }
        if (numbers.seen(number)) continue;
        numbers.add(number);
        all.insert(number);
    }
}

TEST(ReceivedNumbers, the_greatest_numbers) {
    ReceivedNumbers numbers;
    numbers.add(0);
    numbers.add(~std::uint64_t{0});
    EXPECT_TRUE(numbers.seen(~std::uint64_t{0}));
    EXPECT_TRUE(numbers.seen(0));
    EXPECT_FALSE(numbers.seen(1));
    EXPECT_EQ(named(numbers), "18446744073709551615-18446744073709551615");
}

}  // namespace
}  // namespace via::device::datagram::received_numbers_test
