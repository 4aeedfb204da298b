#include "device/datagram/attempts.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::attempts_test {
namespace {

HostAddress host(std::uint8_t number) {
    HostAddress address;
    address.length = 6;
    address.bytes[3] = number;
    return address;
}

TEST(Attempts, the_last_of_each_instance_at_its_address_is_known) {
    Attempts attempts;
    EXPECT_EQ(attempts.last(1, host(1)), 0U);
    attempts.note(1, host(1), 7);
    attempts.note(2, host(1), 8);
    attempts.note(1, host(2), 9);
    attempts.note(1, host(1), 10);
    EXPECT_EQ(attempts.last(1, host(1)), 10U);
    EXPECT_EQ(attempts.last(2, host(1)), 8U);
    EXPECT_EQ(attempts.last(1, host(2)), 9U);
}

TEST(Attempts, the_oldest_instances_are_forgotten) {
    Attempts attempts;
    for (std::uint64_t n = 1; n <= attempts_kept + 2; ++n) attempts.note(n, host(1), n);
    attempts.note(3, host(1), 1000);  // does not make it younger
    EXPECT_EQ(attempts.last(1, host(1)), 0U);
    EXPECT_EQ(attempts.last(2, host(1)), 0U);
    EXPECT_EQ(attempts.last(3, host(1)), 1000U);
    attempts.note(1, host(1), 5);
    EXPECT_EQ(attempts.last(3, host(1)), 0U);
    EXPECT_EQ(attempts.last(1, host(1)), 5U);
    EXPECT_EQ(attempts.last(attempts_kept + 2, host(1)), attempts_kept + 2);
}

}  // namespace
}  // namespace via::device::datagram::attempts_test
