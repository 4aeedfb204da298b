// Does somebody answer for the host? A query as any other: that it is answered matters, not how.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/packet.hpp"

namespace via::device::datagram {

/// Room for a question, and for any answer.
using HostQuestion = std::array<std::byte, wire::connecting_length_max>;

/// Returns its length. `number`: not 0.
inline std::uint32_t emit_host_question(std::uint64_t number, HostQuestion& packet) {
    return wire::emit_query(number, {}, packet);
}

/// Of the question that `packet` answers; 0: it is no answer.
inline std::uint64_t answered_question(std::span<const std::byte> packet) {
    wire::PacketPrefix prefix;
    if (wire::parse_prefix(packet, prefix) != wire::PacketError::none ||
        prefix.kind != wire::PacketKind::answer)
        return 0;
    return prefix.connection;
}

}  // namespace via::device::datagram
