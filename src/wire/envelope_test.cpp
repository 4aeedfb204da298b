#include "wire/envelope.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace via::wire::envelope_test {

namespace {

HostAddress address(std::uint16_t length, std::uint8_t first) {
    HostAddress address;
    address.length = length;
    for (std::size_t n = 0; n < length; ++n)
        address.bytes[n] = static_cast<std::uint8_t>(first + n);
    return address;
}

std::vector<std::byte> carried(std::uint16_t length) {
    std::vector<std::byte> packet(64, std::byte{7});
    std::uint64_t connection = 0;
    std::memcpy(&connection, packet.data() + 8, sizeof connection);
    const Envelope envelope{EnvelopeKind::carried, 5, connection, address(length, 10),
                            address(length, 40)};
    std::vector<std::byte> datagram(envelope_length(length));
    EXPECT_EQ(emit_envelope(envelope, datagram.data()), datagram.size());
    datagram.insert(datagram.end(), packet.begin(), packet.end());
    return datagram;
}

TEST(Envelope, is_read_as_it_was_written) {
    for (const std::uint16_t length : {std::uint16_t{6}, std::uint16_t{18}}) {
        const auto datagram = carried(length);
        Envelope read;
        ASSERT_EQ(parse_envelope(datagram, read), PacketError::none);
        EXPECT_EQ(read.kind, EnvelopeKind::carried);
        EXPECT_EQ(read.hops, 5);
        EXPECT_EQ(read.connection, 0x0707'0707'0707'0707U);
        EXPECT_EQ(read.source, address(length, 10));
        EXPECT_EQ(read.destination, address(length, 40));
    }
    EXPECT_EQ(envelope_length(6), 32U);
    EXPECT_EQ(envelope_length(18), 56U);
}

TEST(Envelope, of_which_any_byte_was_changed_is_refused) {
    for (const std::uint16_t length : {std::uint16_t{6}, std::uint16_t{18}}) {
        const auto good = carried(length);
        for (std::uint32_t at = 0; at < envelope_length(length); ++at) {
            auto bad = good;
            bad[at] ^= std::byte{1};
            Envelope read;
            EXPECT_NE(parse_envelope(bad, read), PacketError::none) << at;
        }
    }
}

TEST(Envelope, says_nothing_of_the_packet_but_its_connection) {
    auto datagram = carried(6);
    Envelope read;
    datagram[envelope_length(6) + 8] ^= std::byte{1};
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::contents);
    datagram[envelope_length(6) + 8] ^= std::byte{1};
    datagram[envelope_length(6) + 20] ^= std::byte{1};
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::none);
}

TEST(Envelope, that_is_cut_off_is_refused) {
    for (const std::uint16_t length : {std::uint16_t{6}, std::uint16_t{18}}) {
        const auto good = carried(length);
        for (std::size_t bytes = 0; bytes < envelope_length(length) + packet_length_least;
             ++bytes) {
            const std::vector<std::byte> cut(good.begin(),
                                             good.begin() + static_cast<std::ptrdiff_t>(bytes));
            Envelope read;
            EXPECT_NE(parse_envelope(cut, read), PacketError::none) << bytes;
        }
    }
}

TEST(Envelope, of_another_version_or_kind_or_without_ports_is_refused) {
    Envelope envelope{EnvelopeKind::unreachable, 1, 9, address(6, 1), address(6, 2)};
    std::vector<std::byte> datagram(envelope_length(6));
    Envelope read;
    emit_envelope(envelope, datagram.data());
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::none);
    datagram.push_back(std::byte{0});
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::contents) << "nothing follows it";
    datagram.pop_back();
    envelope.kind = static_cast<EnvelopeKind>(3);
    emit_envelope(envelope, datagram.data());
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::kind);
    envelope.kind = EnvelopeKind::unreachable;
    envelope.destination.bytes[4] = envelope.destination.bytes[5] = 0;
    emit_envelope(envelope, datagram.data());
    EXPECT_EQ(parse_envelope(datagram, read), PacketError::contents);
}

TEST(Envelope, may_pass_fewer_relays_from_one_to_the_next) {
    auto datagram = carried(18);
    set_hops(datagram, 2);
    Envelope read;
    ASSERT_EQ(parse_envelope(datagram, read), PacketError::none);
    EXPECT_EQ(read.hops, 2);
}

}  // namespace

}  // namespace via::wire::envelope_test
