#include "wire/envelope.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
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

std::string printed(std::span<const std::byte> datagram) {
    char text[400];
    const std::size_t length = print_packet(datagram, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    return text;
}

TEST(Envelope, is_printed_with_what_is_in_it) {
    std::vector<std::byte> close(connecting_length_max);
    close.resize(emit_close(0x99, CloseReason::left, ConnectingBytes(close)));
    const auto datagram_of = [&](EnvelopeKind kind, std::uint16_t length) {
        std::vector<std::byte> datagram(envelope_length(length));
        emit_envelope({kind, 5, 0x99, address(length, 10), address(length, 0xF0)}, datagram.data());
        if (kind == EnvelopeKind::carried)
            datagram.insert(datagram.end(), close.begin(), close.end());
        return datagram;
    };
    const std::string in_it = printed(close);
    auto datagram = datagram_of(EnvelopeKind::carried, 6);
    const std::string whole = "carried 10.11.12.13:3599 to 240.241.242.243:62709 hops=5: ";
    EXPECT_EQ(printed(datagram), whole + in_it);
    EXPECT_EQ(printed(datagram_of(EnvelopeKind::carried, 18)),
              "carried [a0b:c0d:e0f:1011:1213:1415:1617:1819]:6683 to "
              "[f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff]:1 hops=5: " +
                  in_it);
    EXPECT_EQ(printed(datagram_of(EnvelopeKind::unreachable, 6)),
              "unreachable 10.11.12.13:3599 to 240.241.242.243:62709 hops=5 "
              "connection=0000000000000099");
    datagram.back() ^= std::byte{1};
    EXPECT_EQ(printed(datagram), whole + "packet of 20 bytes with a wrong checksum");
    datagram[6] ^= std::byte{1};
    EXPECT_EQ(printed(datagram), "envelope of 52 bytes with a wrong checksum");
    EXPECT_EQ(printed(std::span(datagram).first(31)), "envelope of 31 bytes too short");
}

}  // namespace

}  // namespace via::wire::envelope_test
