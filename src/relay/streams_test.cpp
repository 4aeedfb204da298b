#include "relay/streams.hpp"

#include <gtest/gtest.h>

namespace via::relay::streams_test {

namespace {

HostAddress address(std::uint16_t host, std::uint16_t port) {
    return with_port(
        {{10, 0, static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host & 0xFF)}, 6},
        port);
}

Forwarder::Onward onward(std::uint16_t source, std::uint16_t destination, std::uint16_t next) {
    return {address(1, 0), address(next, relay_port), address(source, 50000),
            address(destination, 50001)};
}

TEST(Streams, are_counted_for_each_pair_of_hosts) {
    Streams streams;
    streams.note(onward(2, 3, 3), 100);
    streams.note(onward(3, 2, 9), 10);
    streams.note(onward(2, 3, 3), 1);
    ASSERT_EQ(streams.ways().size(), 2U);
    const device::Way& there = streams.ways()[0];
    EXPECT_EQ(there.own, address(2, 0));
    EXPECT_EQ(there.peer, address(3, 0));
    EXPECT_EQ(there.over.length, 0U) << "it is next to the relay";
    EXPECT_EQ(there.state, device::WayState::passed_on);
    EXPECT_EQ(there.packets, 2U);
    EXPECT_EQ(there.bytes, 101U);
    const device::Way& back = streams.ways()[1];
    EXPECT_EQ(back.over, address(9, relay_port));
    EXPECT_EQ(back.packets, 1U);
}

TEST(Streams, of_other_ports_are_the_same) {
    Streams streams;
    Forwarder::Onward other = onward(2, 3, 3);
    streams.note(other, 1);
    other.source = address(2, 60000);
    other.destination = address(3, 60001);
    streams.note(other, 1);
    ASSERT_EQ(streams.ways().size(), 1U);
    EXPECT_EQ(streams.ways()[0].packets, 2U);
}

TEST(Streams, beyond_the_most_are_left_out) {
    Streams streams;
    for (std::uint16_t host = 2; host < Streams::streams_max + 10; ++host)
        streams.note(onward(host, 1, 1), 1);
    EXPECT_EQ(streams.ways().size(), Streams::streams_max);
    streams.note(onward(2, 1, 1), 1);
    EXPECT_EQ(streams.ways()[0].packets, 2U) << "those that are known go on";
}

}  // namespace
}  // namespace via::relay::streams_test
