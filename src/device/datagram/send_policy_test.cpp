#include "device/datagram/send_policy.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::send_policy_test {
namespace {

constexpr Duration slow = quick_succession + nanoseconds(1);

SendPolicy posting(std::uint32_t times) {
    SendPolicy policy;
    for (std::uint32_t n = 0; n < times; ++n) policy.handed_over();
    return policy;
}
bool holds(const SendPolicy& policy, bool ends_long_message, std::uint32_t in_a_row,
           Duration since_last) {
    return policy.holds_small(ends_long_message, in_a_row, [&] { return since_last; });
}

TEST(SendPolicy, small_ones_wait_where_many_are_posted_or_follow_quickly) {
    struct Row {
        std::uint32_t posted;
        bool ends_long_message;
        std::uint32_t in_a_row;
        Duration since_last;
        bool holds;
    };
    constexpr std::uint32_t many = in_a_row_least;
    const Row rows[] = {
        {many, false, 0, slow, true},
        {many, true, 0, slow, true},
        {many - 1, false, 0, quick_succession, false},
        {many - 1, false, many - 1, quick_succession, true},
        {many - 1, false, many - 1, slow, false},
        {many - 1, false, many - 2, quick_succession, false},
        {many - 1, true, many - 1, quick_succession, false},
    };
    for (const Row& row : rows)
        EXPECT_EQ(holds(posting(row.posted), row.ends_long_message, row.in_a_row, row.since_last),
                  row.holds)
            << row.posted << " " << row.ends_long_message << " " << row.in_a_row;
}

TEST(SendPolicy, the_clock_is_read_only_if_it_decides) {
    const auto clock = []() -> Duration {
        ADD_FAILURE() << "read";
        return {};
    };
    posting(in_a_row_least).holds_small(false, 0, clock);
    posting(1).holds_small(true, in_a_row_least, clock);
    posting(1).holds_small(false, 0, clock);
}

TEST(SendPolicy, who_posted_many_does_so_again_for_some_looks) {
    SendPolicy policy = posting(2 * in_a_row_least);
    policy.looked();
    policy.looked();
    EXPECT_TRUE(holds(policy, false, 0, slow)) << "looks at nothing posted change nothing";
    policy.handed_over();
    policy.looked();
    EXPECT_TRUE(holds(policy, false, 0, slow)) << "half as many";
    policy.handed_over();
    policy.looked();
    EXPECT_FALSE(holds(policy, false, 0, slow));
}

TEST(SendPolicy, a_rest_waits_once_behind_a_burst_of_who_posts_many) {
    SendPolicy policy = posting(in_a_row_least);
    EXPECT_FALSE(policy.may_hold_rest());
    policy.burst_left();
    EXPECT_TRUE(policy.may_hold_rest());
    EXPECT_FALSE(policy.may_hold_rest());
    SendPolicy few = posting(in_a_row_least - 1);
    few.burst_left();
    EXPECT_FALSE(few.may_hold_rest());
}

TEST(SendPolicy, a_rest_is_short_and_much_is_under_way) {
    EXPECT_TRUE(SendPolicy::holds_rest(rest_packets_max, burst_bytes));
    EXPECT_FALSE(SendPolicy::holds_rest(rest_packets_max + 1, burst_bytes));
    EXPECT_FALSE(SendPolicy::holds_rest(rest_packets_max, burst_bytes - 1));
    EXPECT_TRUE(SendPolicy::keeps_rest(burst_bytes));
    EXPECT_FALSE(SendPolicy::keeps_rest(burst_bytes - 1));
}

}  // namespace
}  // namespace via::device::datagram::send_policy_test
