// SPDX-License-Identifier: Apache-2.0
// The common message of an endpoint for datagrams, there and back: copied when it is sent, to a
// peer that is connected, and met by a posted receive. In a header, since calls would be a good
// part of it; whatever else there is goes the general way (sending.cpp, progress.cpp).
#pragma once

#include <algorithm>
#include <cstring>

#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {

inline Header header_of(Kind kind, const Sending& sending) {
    return {sending.tag, static_cast<std::uint32_t>(sending.data), kind, sending.flags, 0};
}

inline std::uint64_t kind_of(std::uint8_t flags) {
    return FI_SEND | ((flags & flag::tagged) != 0 ? FI_TAGGED : FI_MSG);
}

inline Completion sent(const Sending& sending) {
    Completion completion;
    completion.context = sending.context;
    completion.flags = kind_of(sending.flags);
    return completion;
}

inline std::uint64_t received_flags(const Header& header) {
    return FI_RECV | ((header.flags & flag::tagged) != 0 ? FI_TAGGED : FI_MSG) |
           ((header.flags & flag::data) != 0 ? FI_REMOTE_CQ_DATA : 0);
}

[[gnu::always_inline]] inline ssize_t Endpoint::send(const Sending& sending) {
    Peer* const peer = peer_at(sending.to);
    if (peer != nullptr && peer->connection != nullptr && sending.may_copy &&
        sending.length <= inject_max) [[likely]]
        return send_copy(*peer->connection, sending);
    return send_otherwise(peer, sending);
}

[[gnu::always_inline]] inline ssize_t Endpoint::send_copy(Connection& connection,
                                                          const Sending& sending) {
    if (sending.told && !reserve_send()) return -FI_EAGAIN;
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
        count_send(false);
        if (sending.told) tell_send(sent(sending));
        return 0;
    }
    if (sending.told) give_back_send();
    return why_not_posted(connection, code);
}

/// For completions: whose message it is.
[[gnu::always_inline]] inline fi_addr_t Endpoint::number_of(Peer& peer) {
    return peer.number != FI_ADDR_NOTAVAIL ? peer.number : find_number(peer);
}

[[gnu::always_inline]] inline void Endpoint::tell_received(const Receive& receive, Peer& from,
                                                           const Header& header,
                                                           std::size_t length) {
    if (receive.of != nullptr) [[unlikely]]
        return tell_part(receive, from, header, length);
    const bool fits = length <= receive.room;
    count_receive(!fits);
    if (!receive.told && fits) return give_back_receive();
    tell_receive({.context = receive.context,
                  .flags = received_flags(header),
                  .length = fits ? length : receive.room,
                  .buffer = receive.buffer,
                  .data = header.data,
                  .tag = header.tag,
                  .source = number_of(from),
                  .missing = fits ? 0 : length - receive.room,
                  .error = fits ? 0 : FI_ETRUNC});
}

[[gnu::always_inline]] inline void Endpoint::deliver(Receive& receive, Peer& from,
                                                     const Header& header, const std::byte* bytes,
                                                     std::size_t length) {
    copy_short(receive.buffer, bytes, std::min(length, receive.room));
    tell_received(receive, from, header, length);
    receive_pool_.give_back(receive);
}

[[gnu::always_inline]] inline void Endpoint::arrived(Slot& slot, std::size_t length) {
    // One comparison for both ends: a write that takes a receive, which no peer of ours makes, can
    // say any length.
    if (length - sizeof(Header) > eager_max) [[unlikely]]
        return arrived_wrong(*slot.connection);
    Header header;
    std::memcpy(&header, slot.bytes, sizeof header);
    length -= sizeof header;
    Connection& connection = *slot.connection;
    if (header.number != connection.lines.came() && !take_stored_before(connection, header.number))
        [[unlikely]]
        return arrived_wrong(connection);
    connection.lines.came_one(header.flags);
    if (header.kind != Kind::eager) [[unlikely]]
        return arrived_other(slot, header, length);
    Peer& peer = connection.peer();
    Receive* const receive =
        matching((header.flags & flag::tagged) != 0).take_receive(&peer, header.tag);
    if (receive == nullptr || receive->takes_many) [[unlikely]]
        return arrived_early(slot, header, length);
    deliver(*receive, peer, header, slot.bytes + sizeof header, length);
    connection.release(slot);
}

/// The next message lies in a line.
[[gnu::always_inline]] inline void Endpoint::arrived_by_stores(Connection& connection) {
    Header header;
    std::size_t length = 0;
    if (!connection.lines.take(header, length)) [[unlikely]]
        return arrived_wrong(connection);
    Peer& peer = connection.peer();
    Receive* const receive =
        matching((header.flags & flag::tagged) != 0).take_receive(&peer, header.tag);
    if (receive == nullptr || receive->takes_many) [[unlikely]] {
        Slot* const slot = connection.slot_of_stored(length);
        return slot != nullptr ? arrived_early(*slot, header, length) : arrived_wrong(connection);
    }
    deliver(*receive, peer, header, connection.lines.bytes(), length);
    connection.lines.answer();
}

/// What lies in the lines of one. False: nothing.
[[gnu::always_inline]] inline bool Endpoint::take_stored_of(Connection& connection) {
    if (!connection.lines.has_next()) return false;
    std::uint32_t left = SharedLines::lines_each;
    do {
        arrived_by_stores(connection);
        --left;
    } while (left != 0 && connection.lines.has_next());
    looks_at_lines_ = patience_;
    return true;
}

/// Looks at the lines. True: there was something.
[[gnu::always_inline]] inline bool Endpoint::take_stored() {
    bool found = false;
    const std::size_t each_time = std::min(lined_.size(), lines_each_look);
    for (std::size_t index = 0; index < each_time; ++index) {
        if (!take_stored_of(*lined_[index])) continue;
        std::swap(lined_.front(), lined_[index]);  // likely it is the next one, too
        found = true;
    }
    return lined_.size() > each_time ? take_stored_in_turn() || found : found;
}

}  // namespace via::fabric::rdm
