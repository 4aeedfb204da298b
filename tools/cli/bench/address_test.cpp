#include "bench/address.hpp"

#include <gtest/gtest.h>

namespace via::bench::address_test {
namespace {

TEST(Address, HostAndPort) {
    for (const auto& [text, wanted] : {std::pair{"10.0.0.1", "10.0.0.1:9742"},
                                       {"10.0.0.1:80", "10.0.0.1:80"},
                                       {"::1", "[::1]:9742"},
                                       {"[fd00::1]", "[fd00::1]:9742"},
                                       {"[fd00::1]:80", "[fd00::1]:80"},
                                       {"", "[::]:9742"},
                                       {":80", "[::]:80"}}) {
        const auto address = Address::resolve(text, 9742);
        ASSERT_TRUE(address.has_value()) << text << ": " << address.error().what;
        EXPECT_EQ(address->text(), wanted);
        EXPECT_EQ(address->is_any(), wanted[1] == ':' && wanted[2] == ':' && wanted[3] == ']');
    }
}

TEST(Address, WhatIsNone) {
    for (const char* text :
         {"10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:8x", "10.0.0.1:-1", "[::1", "[::1]80"}) {
        EXPECT_FALSE(Address::resolve(text, 9742).has_value()) << text;
    }
}

TEST(Address, MachinesAreToldApartWithoutTheirPorts) {
    const auto address = Address::resolve("10.0.0.1:80", 1);
    ASSERT_TRUE(address.has_value());
    EXPECT_TRUE(address->same_machine(address->with_port(81)));
    EXPECT_FALSE(address->same_machine(Address(in_addr{htonl(INADDR_LOOPBACK)})));
    EXPECT_EQ(address->any_ipv4().text(), "0.0.0.0:80");
}

}  // namespace
}  // namespace via::bench::address_test
