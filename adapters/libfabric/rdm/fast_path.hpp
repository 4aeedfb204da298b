// SPDX-License-Identifier: Apache-2.0
// The common message of an endpoint for datagrams, there and back: copied when it is sent, to a
// peer that is connected, and met by a posted receive. In a header, since calls would be a good
// part of it; whatever else there is goes the general way (sending.cpp, progress.cpp).
#pragma once

#include <cstring>

#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {

[[gnu::always_inline]] inline ssize_t Endpoint::send(const Sending& sending) {
    Peer* const peer = peer_at(sending.to);
    if (peer != nullptr && peer->connection != nullptr && sending.may_copy &&
        sending.length <= inject_max) [[likely]]
        return send_copy(*peer->connection, sending);
    return send_otherwise(peer, sending);
}

[[gnu::always_inline]] inline ssize_t Endpoint::send_copy(Connection& connection,
                                                          const Sending& sending) {
    if (sending.told && !completions_.reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    if (connection.lines.may_store(sending.length)) {
        connection.lines.store(header_of(Kind::eager, sending), sending.bytes, sending.length);
        code = VIP_SUCCESS;
    } else if (connection.lines.may_store_long(sending.length)) {
        connection.lines.store_long(header_of(Kind::eager, sending), sending.bytes, sending.length);
        code = VIP_SUCCESS;
    } else if (Send* const send = room_for(connection)) [[likely]] {
        send->kind = Send::Kind::copied;
        send->header = header_of(Kind::eager, sending);
        copy_short(send->copy, sending.bytes, sending.length);
        code = connection.post(*send, sizeof(Header) + sending.length);
    }
    if (code == VIP_SUCCESS) [[likely]] {
        completions_.count_send(false);
        if (sending.told) completions_.tell_send(sent(sending));
        return 0;
    }
    if (sending.told) completions_.give_back_send();
    return why_not_posted(connection, code);
}

[[gnu::always_inline]] inline void Endpoint::arrived(Slot& slot, std::size_t length) {
    // One comparison for both ends: a write that takes a receive, which no peer of ours makes, can
    // say any length.
    if (length - sizeof(Header) > eager_max) [[unlikely]]
        return connections_.fail_wrong(*slot.connection);
    Header header;
    std::memcpy(&header, slot.bytes, sizeof header);
    length -= sizeof header;
    Connection& connection = *slot.connection;
    if (header.number != connection.lines.came() && !take_stored_before(connection, header.number))
        [[unlikely]]
        return connections_.fail_wrong(connection);
    connection.lines.came_one(header.flags);
    if (header.kind != Kind::eager) [[unlikely]]
        return arrived_other(slot, header, length);
    Peer& peer = connection.peer();
    Receive* const receive = receives_.take((header.flags & flag::tagged) != 0, &peer, header.tag);
    if (receive == nullptr || receive->takes_many) [[unlikely]]
        return unexpected_.arrived(slot, header, length);
    receives_.deliver(completions_, *receive, peer, header, slot.bytes + sizeof header, length);
    connection.release(slot);
}

/// The next message lies in a line.
[[gnu::always_inline]] inline void Endpoint::arrived_by_stores(Connection& connection) {
    Header header;
    std::size_t length = 0;
    if (!connection.lines.take(header, length)) [[unlikely]]
        return connections_.fail_wrong(connection);
    Peer& peer = connection.peer();
    Receive* const receive = receives_.take((header.flags & flag::tagged) != 0, &peer, header.tag);
    if (receive == nullptr || receive->takes_many) [[unlikely]] {
        Slot* const slot = connection.slot_of_stored(length);
        return slot != nullptr ? unexpected_.arrived(*slot, header, length)
                               : connections_.fail_wrong(connection);
    }
    receives_.deliver(completions_, *receive, peer, header, connection.lines.bytes(), length);
    connection.lines.answer();
}

/// Looks at the lines. True: there was something.
[[gnu::always_inline]] inline bool Endpoint::take_stored() {
    return connections_.lined().take([this](Connection& from) { arrived_by_stores(from); });
}

}  // namespace via::fabric::rdm
