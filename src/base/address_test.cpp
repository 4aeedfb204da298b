#include "base/address.hpp"

#include <gtest/gtest.h>

namespace via::address_test {

TEST(HostAddress, its_port_is_its_last_two_bytes_whatever_its_length) {
    for (const std::uint16_t length : {std::uint16_t{6}, std::uint16_t{18}}) {
        HostAddress address;
        address.length = length;
        address.bytes.fill(7);
        const HostAddress there = with_port(address, 0x1234);
        EXPECT_EQ(port_of(there), 0x1234);
        EXPECT_EQ(there.bytes[length - 2U], 0x12) << "most significant byte first";
        EXPECT_EQ(there.bytes[length - 3U], 7);
        EXPECT_EQ(with_port(there, 0x0707), address);
        EXPECT_TRUE(same_host(there, address));
        HostAddress other = there;
        other.bytes[0] = 8;
        EXPECT_FALSE(same_host(there, other));
    }
}

}  // namespace via::address_test
