// Ports in several networks as one: two networks of the loopback's, which a mask of all bits keeps
// apart.
#include "device/udp/udp_rails.hpp"

#include <gtest/gtest.h>

#include "device/udp/test_support.hpp"

namespace via::device::udp::test::udp_rails_test {
namespace {

udp::Place place(const char* interface, std::vector<std::uint8_t> address, unsigned prefix) {
    udp::Place made{interface, 1, {}, prefix};
    std::copy(address.begin(), address.end(), made.address.bytes.begin());
    made.address.length = static_cast<std::uint16_t>(address.size() + 2);
    return made;
}

udp::Place on_rail(std::uint8_t rail, unsigned prefix = 32) {
    udp::Place made{"lo", 1, test_address(), prefix};
    made.address.bytes[1] = static_cast<std::uint8_t>(128 + rail);
    return made;
}

std::unique_ptr<UdpRails> open_rails(std::uint8_t count = 2) {
    std::vector<std::unique_ptr<datagram::Port>> ports;
    for (std::uint8_t rail = 0; rail < count; ++rail) {
        UdpConfig config;
        config.place = on_rail(rail);
        config.instance = 1;
        config.only_data = true;
        auto port = UdpPort::open(config);
        EXPECT_TRUE(port) << port.error();
        ports.push_back(std::move(*port));
    }
    auto rails = UdpRails::open(System::real(), std::move(ports));
    EXPECT_TRUE(rails) << rails.error();
    return std::move(*rails);
}

TEST(UdpRails, AHostIsInANetworkByTheBitsOfItsMask) {
    const auto is_near = [](unsigned prefix, std::vector<std::uint8_t> host) {
        const udp::Place other = place("eth0", std::move(host), 0);
        return is_in_network_of(place("eth0", {10, 1, 2, 3}, prefix), other.address);
    };
    EXPECT_TRUE(is_near(24, {10, 1, 2, 200}));
    EXPECT_FALSE(is_near(24, {10, 1, 3, 3}));
    EXPECT_TRUE(is_near(23, {10, 1, 3, 3}));
    EXPECT_TRUE(is_near(32, {10, 1, 2, 3}));
    EXPECT_FALSE(is_near(32, {10, 1, 2, 2}));
    EXPECT_FALSE(is_near(0, {10, 1, 2, 3})) << "no mask is known";
    EXPECT_FALSE(is_near(8, {10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})) << "of IPv6";
}

TEST(UdpRails, PlacesThatAreNoRailsOfOneNicAreNamed) {
    const udp::Place one = place("eth0", {10, 1, 2, 3}, 24);
    const udp::Place other = place("eth1", {10, 1, 3, 3}, 24);
    EXPECT_EQ(what_is_wrong_with_rails({one}), "");
    EXPECT_EQ(what_is_wrong_with_rails({one, other}), "");
    const std::string same = what_is_wrong_with_rails({one, place("eth1", {10, 1, 2, 9}, 24)});
    EXPECT_NE(same.find("eth0 (10.1.2.3) and eth1 (10.1.2.9) are in one network"), same.npos);
    const std::string within = what_is_wrong_with_rails({one, place("eth1", {10, 2, 0, 1}, 8)});
    EXPECT_NE(within.find("are in one network"), within.npos);
    const udp::Place ipv6 = place("eth1", {0xFD, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 64);
    EXPECT_NE(what_is_wrong_with_rails({one, ipv6}).find("of two kinds"), std::string::npos);
    EXPECT_NE(what_is_wrong_with_rails({one, one, one, one, one}).find("at most 4 networks, not 5"),
              std::string::npos);
}

TEST(UdpRails, WhatGoesToAHostLeavesInItsNetwork) {
    const auto a = open_rails();
    const auto b = open_rails();
    ASSERT_EQ(a->rails(), 2U);
    std::vector<datagram::Outgoing> burst;
    for (int n = 0; n < 3; ++n)
        for (const std::uint32_t rail : {0U, 1U})
            burst.push_back(outgoing(b->rail_address(rail), rail == 0 ? "zero" : "one"));
    ASSERT_EQ(a->send(burst), burst.size());
    std::size_t came[2] = {};
    for (int looks = 0; looks < 1000 && came[0] + came[1] < burst.size(); ++looks) {
        std::array<datagram::Incoming, 16> in;
        const std::size_t count = b->receive(in);
        for (std::size_t n = 0; n < count; ++n) {
            const std::uint32_t rail = in[n].from == a->rail_address(0) ? 0 : 1;
            EXPECT_EQ(in[n].from, a->rail_address(rail));
            EXPECT_EQ(in[n].length, rail == 0 ? 4U : 3U);
            ++came[rail];
        }
        b->release();
        pollfd entry{b->wait_handle(), POLLIN, 0};
        if (count == 0) {
            b->arm(Sleep::on_handle);
            ::poll(&entry, 1, watchdog_ms / 100);
            b->arm(Sleep::awake);
        }
    }
    EXPECT_EQ(came[0], 3U);
    EXPECT_EQ(came[1], 3U);
}

TEST(UdpRails, OneHandleTellsOfAllAndABufferIsKeptByItsOwner) {
    const auto a = open_rails(4);
    const auto b = open_rails(4);
    for (const std::uint32_t rail : {0U, 1U, 2U, 3U}) {
        b->arm(Sleep::on_handle);
        pollfd entry{b->wait_handle(), POLLIN, 0};
        EXPECT_EQ(::poll(&entry, 1, 0), 0);
        const std::string bytes = text(100, rail);
        const datagram::Outgoing one = outgoing(b->rail_address(rail), bytes);
        ASSERT_EQ(a->send({&one, 1}), 1U);
        ASSERT_EQ(::poll(&entry, 1, watchdog_ms), 1);
        b->arm(Sleep::awake);
        ASSERT_TRUE(b->has_work());
        std::array<datagram::Incoming, 4> in;
        ASSERT_EQ(b->receive(in), 1U);
        const std::uint32_t left = b->keeps_left();
        ASSERT_TRUE(b->keep(in[0].buffer));
        EXPECT_EQ(b->keeps_left(), left - 1);
        b->release();
        EXPECT_EQ(std::memcmp(in[0].bytes, bytes.data(), bytes.size()), 0);
        b->let_go(in[0].buffer);
        EXPECT_EQ(b->keeps_left(), left);
    }
    std::array<WakeDescriptor, 3> few{};
    EXPECT_GE(b->wake_descriptors(few), 4U) << "however many fit";
}

}  // namespace
}  // namespace via::device::udp::test::udp_rails_test
