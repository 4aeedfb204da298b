// SPDX-License-Identifier: Apache-2.0
#include "rdm/sends.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace via::fabric::rdm {

namespace {

/// `kind`: is the memory the program's again when this descriptor is done, or later?
void lend(Send& send, Send::Kind kind, const Sending& sending) {
    send.kind = kind;
    send.told = sending.told;
    send.context = sending.context;
    send.flags = kind_of(sending.flags);
}

VIP_RETURN post_in_place(Connection& connection, Send& send, const Sending& sending) {
    send.header = header_of(Kind::eager, sending);
    return sending.length != 0 ? connection.post_lent(send, sending.bytes, sending.length)
                               : connection.post(send, sizeof(Header));
}

/// Does the peer hear of it by a message behind it?
bool is_said(const Connection& connection, const Moving& moving) {
    return moving.has_data || connection.counts_moves;
}

/// Behind a read only when that has come: until then it is not done.
VIP_RETURN post_word(Connection& connection, Send& send, const Moving& moving) {
    if (moving.has_data)
        send.header = {moving.length, static_cast<std::uint32_t>(moving.data), Kind::written, 0, 0};
    else
        send.header = {0, moving.reads ? 1U : 0U, Kind::moved, 0, 0};
    return connection.post(send, sizeof(Header),
                           moving.reads ? VIP_CONTROL_QFENCE : VIP_CONTROL_OP_SENDRECV);
}

VIP_RETURN post_part(Connection& connection, Send& send, const Moving& moving, std::size_t part,
                     std::size_t parts) {
    if (part == parts && is_said(connection, moving)) return post_word(connection, send, moving);
    if (part >= parts) return connection.post_question(send);
    const std::size_t from = part * connection.transfer_size();
    const std::size_t length = std::min(moving.length - from, connection.transfer_size());
    std::byte* bytes = static_cast<std::byte*>(moving.bytes) + from;
    if (moving.must_copy && length != 0)
        bytes = static_cast<std::byte*>(std::memcpy(send.copy, bytes, length));
    const auto key = static_cast<std::uint32_t>(moving.key);
    return moving.reads ? connection.post_pull(send, bytes, moving.address + from, key, length)
                        : connection.post_write(send, bytes, moving.address + from, key, length);
}

std::size_t parts_of(const Connection& connection, const Moving& moving) {
    const std::size_t most = connection.transfer_size();
    return std::max<std::size_t>(1, (moving.length + most - 1) / most);
}

}  // namespace

std::size_t descriptors_of(const Connection& connection, const Moving& moving) {
    return parts_of(connection, moving) + (is_said(connection, moving) ? 1 : 0) +
           (moving.confirmed ? 1 : 0);
}

// Posting ---------------------------------------------------------------------------------------

/// The program waits for the descriptor that was posted, if it was.
VIP_RETURN Sends::under_way(Connection& connection, VIP_RETURN code) {
    if (code == VIP_SUCCESS) {
        ++connection.waited_for;
        connections_.watch(connection);
    }
    return code;
}

VIP_RETURN Sends::post_lent(Connection& connection, const Sending& sending) {
    Send* const send = connection.take();
    if (send == nullptr) return VIP_ERROR_RESOURCE;
    lend(*send, Send::Kind::lent, sending);
    return under_way(connection, post_in_place(connection, *send, sending));
}

/// A question behind it, which completes for both: the peer's NIC takes what comes in its order.
VIP_RETURN Sends::post_confirmed(Connection& connection, const Sending& sending) {
    if (!connection.has_room(2)) return VIP_ERROR_RESOURCE;
    Send& send = *connection.take();
    send.kind = Send::Kind::copied;
    send.header = header_of(Kind::eager, sending);
    VIP_RETURN code = VIP_SUCCESS;
    if (sending.must_copy) {
        copy_short(send.copy, sending.bytes, sending.length);
        code = connection.post(send, sizeof(Header) + sending.length);
    } else {
        code = post_in_place(connection, send, sending);
    }
    if (code != VIP_SUCCESS) return code;
    Send& question = *connection.take();
    lend(question, Send::Kind::lent, sending);
    code = under_way(connection, connection.post_question(question));
    // The message is out, and nobody would tell of it.
    if (code != VIP_SUCCESS) connections_.fail(connection);
    return code;
}

VIP_RETURN Sends::post_offer(Connection& connection, const Sending& sending) {
    Send* const send = connection.take();
    Outgoing* const outgoing =
        send != nullptr ? long_messages_.take(sending.context, kind_of(sending.flags), sending.told)
                        : nullptr;
    if (outgoing == nullptr) return VIP_ERROR_RESOURCE;
    outgoing->region = {reinterpret_cast<std::uintptr_t>(sending.bytes), sending.length, false,
                        true, 0};
    VIP_RETURN code = nic_.register_memory(outgoing->region);
    if (code == VIP_SUCCESS) {
        outgoing->connection = &connection;
        send->kind = Send::Kind::copied;
        send->header = header_of(Kind::offer, sending);
        const Offer offer{sending.length, outgoing->region.begin, outgoing->cookie(),
                          outgoing->region.handle, 0};
        std::memcpy(send->copy, &offer, sizeof offer);
        code = connection.post(*send, sizeof(Header) + sizeof offer);
        if (code == VIP_SUCCESS) return code;
        nic_.release(outgoing->region);
    }
    long_messages_.put_back(*outgoing);
    return code;
}

VIP_RETURN Sends::post_move(Connection& connection, const Moving& moving) {
    const std::size_t parts = parts_of(connection, moving);
    const std::size_t all = descriptors_of(connection, moving);
    for (std::size_t at = 0; at < all; ++at) {
        Send& send = *connection.take();
        send.kind = at + 1 == all ? Send::Kind::move : Send::Kind::part;
        send.told = moving.told;
        send.context = moving.context;
        send.flags = moving.flags();
        const VIP_RETURN code = post_part(connection, send, moving, at, parts);
        if (code != VIP_SUCCESS) {
            // Part of it is out, and nobody would tell of the whole.
            if (at != 0) connections_.fail(connection);
            return code;
        }
        ++connection.waited_for;
    }
    connections_.watch(connection);
    return VIP_SUCCESS;
}

// What is done ----------------------------------------------------------------------------------

void Sends::reap(Connection& connection) {
    for (;;) {
        VIP_DESCRIPTOR* done[batch];
        bool failed = false;
        const VIP_UINT32 taken = connection.take_done(done, batch, failed);
        connection.give_back(taken);
        for (VIP_UINT32 index = 0; index < taken; ++index)
            complete(connection, reinterpret_cast<const Send&>(*done[index]),
                     failed && index + 1 == taken);
        if (failed) connections_.fail(connection);
        if (taken == 0 || (taken < batch && !failed)) return;
    }
}

void Sends::take_done(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    const VIP_RETURN code = VipSendDone(vi, &descriptor);
    if (descriptor == nullptr) return;  // of a connection that ended meanwhile
    const Send& send = reinterpret_cast<const Send&>(*descriptor);
    Connection& connection = *send.connection;
    connection.give_back(1);
    complete(connection, send, code != VIP_SUCCESS);
    if (code != VIP_SUCCESS) connections_.fail(connection);
}

void Sends::complete(Connection& connection, const Send& send, bool failed) {
    if (send.kind == Send::Kind::copied) return;
    --connection.waited_for;
    if (send.kind == Send::Kind::question) {
        connection.is_asked = false;
        if (!failed) connection.there_since = connection.asked_at;
        return;
    }
    if (send.kind == Send::Kind::pull)
        return pulls_.came(connection, *send.receive, send.length, failed);
    if (send.kind >= Send::Kind::part) return moved(connection, send, failed);
    completions_.tell_done(send.context, send.flags, send.told, failed ? FI_ECONNRESET : 0);
}

/// A piece of what the program moves, or the end of all of it.
void Sends::moved(Connection& connection, const Send& send, bool failed) {
    const VIP_UINT32 status = send.descriptor.CS.Status;
    if (failed && connection.move_error == 0)
        connection.move_error =
            (status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0 ? FI_ECONNRESET : error_of_status(status);
    if (send.kind == Send::Kind::part) return;
    completions_.tell_done(send.context, send.flags, send.told,
                           std::exchange(connection.move_error, 0));
}

}  // namespace via::fabric::rdm
