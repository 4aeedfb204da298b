// For tests of ports: what a device answers to any query, where nobody listens.
#pragma once

#include "device/datagram/host_question.hpp"

namespace via::device::datagram::test {

/// Returns the length of the answer; 0: that is no query.
inline std::uint32_t answer_query(std::span<const std::byte> query, HostQuestion& answer) {
    wire::PacketPrefix prefix;
    if (wire::parse_prefix(query, prefix) != wire::PacketError::none ||
        prefix.kind != wire::PacketKind::query)
        return 0;
    return wire::emit_answer(prefix.connection, {wire::AnswerCode::no_match, 0, 0}, answer);
}

}  // namespace via::device::datagram::test
