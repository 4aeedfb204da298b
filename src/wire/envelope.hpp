// What a packet is in while relays pass it on (docs/design/relay.md): who made it and whom it is
// for, in front of the packet, which nobody on the way looks into. Little-endian, but for
// addresses.
//   0 CRC32C of the envelope's other bytes   4 version 3   5 kind
//   6 relays that may still pass it on   7 bytes of an address: 6 or 18
//   8 connection: the one in the packet, where every packet has it
//  16 source   16 + that length: destination, each host and port; zero up to a multiple of 8
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "wire/packet.hpp"

namespace via::wire {

constexpr std::uint8_t envelope_version = 3;

enum class EnvelopeKind : std::uint8_t {
    carried = 1,  ///< a packet follows
    /// Nothing follows: the source takes no datagrams, says the network, of one that the
    /// destination sent there and that had that connection.
    unreachable,
};

struct Envelope {
    EnvelopeKind kind{};
    std::uint8_t hops = 0;
    std::uint64_t connection = 0;
    HostAddress source;
    HostAddress destination;  ///< as long as the source
};

/// `address_length`: 6 or 18.
constexpr std::uint32_t envelope_length(std::uint16_t address_length) {
    return (16U + 2U * address_length + 7U) / 8U * 8U;
}
constexpr std::uint32_t envelope_length_max = envelope_length(18);

/// Writes it to the beginning of `to`, which is long enough, and returns its length.
std::uint32_t emit_envelope(const Envelope& envelope, std::byte* to);
/// Of a whole datagram. What is carried is a packet as far as its length and connection tell; it
/// begins behind envelope_length(). A port of 0 is refused.
PacketError parse_envelope(std::span<const std::byte> datagram, Envelope& envelope);
/// Of the beginning of a datagram that the network quotes: what is carried need not be there.
PacketError parse_quoted_envelope(std::span<const std::byte> quoted, Envelope& envelope);
/// Of one that was parsed: another number of relays may pass it on.
void set_hops(std::span<std::byte> datagram, std::uint8_t hops);

}  // namespace via::wire
