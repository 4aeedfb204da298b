#include "wire/envelope.hpp"

#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"

namespace via::wire {

namespace {

constexpr std::uint32_t addresses_at = 16;
constexpr std::uint32_t connection_at = 8;

/// Of the envelope alone: the packet has a checksum, or a tag, of its own.
void put_checksum(std::byte* envelope, std::uint32_t length) {
    put(envelope, crc32c(std::span<const std::byte>(envelope, length).subspan(4)));
}

HostAddress get_address(const std::byte* from, std::uint8_t length) {
    HostAddress address;
    address.length = length;
    std::memcpy(address.bytes.data(), from, length);
    return address;
}

}  // namespace

std::uint32_t emit_envelope(const Envelope& envelope, std::byte* to) {
    const std::uint16_t each = envelope.source.length;
    const std::uint32_t length = envelope_length(each);
    put(to + 4, envelope_version);
    put(to + 5, envelope.kind);
    put(to + 6, envelope.hops);
    put(to + 7, static_cast<std::uint8_t>(each));
    put(to + connection_at, envelope.connection);
    std::memcpy(to + addresses_at, envelope.source.bytes.data(), each);
    std::memcpy(to + addresses_at + each, envelope.destination.bytes.data(), each);
    std::memset(to + addresses_at + 2U * each, 0, length - addresses_at - 2U * each);
    put_checksum(to, length);
    return length;
}

PacketError parse_quoted_envelope(std::span<const std::byte> datagram, Envelope& envelope) {
    const std::byte* const from = datagram.data();
    if (datagram.size() < envelope_length(6)) return PacketError::truncated;
    const auto each = get<std::uint8_t>(from + 7);
    if (each != 6 && each != 18) return PacketError::contents;
    const std::uint32_t length = envelope_length(each);
    if (datagram.size() < length) return PacketError::truncated;
    if (get<std::uint32_t>(from) != crc32c(datagram.first(length).subspan(4)))
        return PacketError::checksum;
    if (get<std::uint8_t>(from + 4) != envelope_version) return PacketError::version;
    const auto kind = get<EnvelopeKind>(from + 5);
    if (kind != EnvelopeKind::carried && kind != EnvelopeKind::unreachable)
        return PacketError::kind;
    envelope = {kind, get<std::uint8_t>(from + 6), get<std::uint64_t>(from + connection_at),
                get_address(from + addresses_at, each),
                get_address(from + addresses_at + each, each)};
    const auto padding = datagram.first(length).subspan(addresses_at + 2U * each);
    const bool padded =
        std::ranges::all_of(padding, [](std::byte byte) { return byte == std::byte{0}; });
    return padded && port_of(envelope.source) != 0 && port_of(envelope.destination) != 0
               ? PacketError::none
               : PacketError::contents;
}

PacketError parse_envelope(std::span<const std::byte> datagram, Envelope& envelope) {
    const PacketError error = parse_quoted_envelope(datagram, envelope);
    if (error != PacketError::none) return error;
    const std::uint32_t length = envelope_length(envelope.source.length);
    if (envelope.kind == EnvelopeKind::unreachable)
        return datagram.size() == length ? PacketError::none : PacketError::contents;
    if (datagram.size() - length < packet_length_least) return PacketError::truncated;
    return get<std::uint64_t>(datagram.data() + length + connection_at) == envelope.connection
               ? PacketError::none
               : PacketError::contents;
}

void set_hops(std::span<std::byte> datagram, std::uint8_t hops) {
    put(datagram.data() + 6, hops);
    put_checksum(datagram.data(), envelope_length(get<std::uint8_t>(datagram.data() + 7)));
}

}  // namespace via::wire
