// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: the program reads and writes the memory of peers. VIA's RDMA, which the
// peer's NIC carries out without its program; messages behind a write come after it.
#include <algorithm>
#include <cstring>

#include "info.hpp"
#include "rdm/short_way.hpp"

namespace via::fabric::rdm {

ssize_t Endpoint::move(const Moving& moving) {
    Peer* const peer = peer_at(moving.with);
    if (peer == nullptr) return no_peer(moving.with);
    if (moving.length > (moving.must_copy ? inject_max : message_size_max)) return -FI_EMSGSIZE;
    if (moving.key > UINT32_MAX) return -FI_EINVAL;  // none of ours
    if (peer->connection != nullptr) return move_over(*peer->connection, moving);
    return peer->is_self ? move_to_self(*peer, moving) : not_connected(*peer);
}

bool Endpoint::has_room_for(Connection& connection, std::size_t count) {
    if (connection.has_room(count)) return true;
    if (waits())
        look_at_queues();
    else
        reap(connection);
    return !connection.has_failed && connection.has_room(count);
}

/// In pieces of the VI's transfer size, the word to the peer's program, and a question, if the
/// program wants these.
ssize_t Endpoint::move_over(Connection& connection, const Moving& moving) {
    const std::size_t most = connection.transfer_size();
    const std::size_t parts = std::max<std::size_t>(1, (moving.length + most - 1) / most);
    const std::size_t all = parts + (moving.has_data ? 1 : 0) + (moving.confirmed ? 1 : 0);
    if (all > sends_max) return -FI_EMSGSIZE;
    if (!reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = has_room_for(connection, all) ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
    std::size_t at = 0;
    for (; at < all && code == VIP_SUCCESS; ++at) {
        Send& send = *connection.take();
        send.kind = at + 1 == all ? Send::Kind::move : Send::Kind::part;
        send.told = moving.told;
        send.context = moving.context;
        send.flags = moving.flags();
        code = post_part(connection, send, moving, at, parts);
        if (code == VIP_SUCCESS) ++connection.waited_for;
    }
    if (code == VIP_SUCCESS) {
        watch(connection);
        return 0;
    }
    // Part of it is out, and nobody would tell of the whole.
    if (at > 1) fail(connection);
    give_back_send();
    return why_not_posted(connection, code);
}

VIP_RETURN Endpoint::post_part(Connection& connection, Send& send, const Moving& moving,
                               std::size_t part, std::size_t parts) {
    if (part == parts && moving.has_data) {
        send.header = {moving.length, static_cast<std::uint32_t>(moving.data), Kind::written, 0, 0};
        return connection.post(send, sizeof(Header));
    }
    if (part >= parts) return connection.post_question(send);
    const std::size_t from = part * connection.transfer_size();
    const std::size_t length = std::min(moving.length - from, connection.transfer_size());
    std::byte* bytes = static_cast<std::byte*>(moving.bytes) + from;
    if (moving.must_copy && length != 0)
        bytes = static_cast<std::byte*>(std::memcpy(send.copy, bytes, length));
    const auto key = static_cast<std::uint32_t>(moving.key);
    return moving.reads ? connection.post_fetch(send, bytes, moving.address + from, key, length)
                        : connection.post_write(send, bytes, moving.address + from, key, length);
}

ssize_t Endpoint::move_to_self(Peer& self, const Moving& moving) {
    if (!reserve_send()) return -FI_EAGAIN;
    const int error = domain_.regions().use(
        {moving.address, moving.length, moving.key, !moving.reads, moving.reads},
        [&](std::byte* there) {
            if (moving.length == 0) return;
            std::memmove(moving.reads ? moving.bytes : there, moving.reads ? there : moving.bytes,
                         moving.length);
        });
    if (error == 0 && moving.has_data &&
        !tell_written(self, moving.length, static_cast<std::uint32_t>(moving.data))) {
        give_back_send();
        return -FI_EAGAIN;
    }
    tell_done(moving.context, moving.flags(), moving.told, error);
    look_in_turn();
    return 0;
}

/// A piece of what the program moves, or the end of all of it.
void Endpoint::moved(Connection& connection, const Send& send, bool failed) {
    const VIP_UINT32 status = send.descriptor.CS.Status;
    if (failed && connection.move_error == 0)
        connection.move_error =
            (status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0 ? FI_ECONNRESET : error_of_status(status);
    if (send.kind == Send::Kind::part) return;
    tell_done(send.context, send.flags, send.told, std::exchange(connection.move_error, 0));
}

// At the peer -----------------------------------------------------------------------------------

/// False: no memory.
bool Endpoint::tell_written(Peer& from, std::uint64_t length, std::uint32_t data) {
    if (!reserve_receive()) return false;
    tell_receive({.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                  .length = length,
                  .data = data,
                  .source = number_of(from)});
    return true;
}

void Endpoint::arrived_written(Slot& slot, const Header& header) {
    Connection& connection = *slot.connection;
    if (!told_of_writes_) return arrived_wrong(connection);
    if (!tell_written(connection.peer(), header.tag, header.data)) return fail(connection);
    connection.release(slot);
}

// libfabric's operations ------------------------------------------------------------------------

namespace {

Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

/// `moving` is filled but for what the flags of the operation say.
ssize_t move_with(Endpoint& endpoint, Moving moving, std::uint64_t flags) {
    if ((flags & (FI_COMMIT_COMPLETE | FI_FENCE)) != 0) return -FI_EOPNOTSUPP;
    moving.has_data = !moving.reads && (flags & FI_REMOTE_CQ_DATA) != 0;
    moving.told = endpoint.tells_sends(flags);
    moving.must_copy = !moving.reads && (flags & FI_INJECT) != 0;
    moving.confirmed = !moving.reads && (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) != 0;
    const Domain::Guard guard(endpoint.domain());
    return endpoint.move(moving);
}

ssize_t inject_with(Endpoint& endpoint, Moving moving, bool has_data) {
    moving.has_data = has_data;
    moving.must_copy = true;
    const Domain::Guard guard(endpoint.domain());
    return endpoint.move(moving);
}

Moving of_piece(fi_addr_t with, bool reads, const iovec& piece, std::uint64_t address,
                std::uint64_t key, std::uint64_t data, void* context) {
    return {with, reads, piece.iov_base, piece.iov_len, address, key, data, false, context, false};
}

iovec piece_of(const void* bytes, std::size_t length) { return {const_cast<void*>(bytes), length}; }

ssize_t message_with(fid_ep* endpoint, const fi_msg_rma& message, bool reads, std::uint64_t flags) {
    if (message.iov_count > 1 || message.rma_iov_count != 1) return -FI_EINVAL;
    const iovec piece = message.iov_count != 0 ? *message.msg_iov : iovec{};
    return move_with(endpoint_of(endpoint),
                     of_piece(message.addr, reads, piece, message.rma_iov->addr,
                              message.rma_iov->key, message.data, message.context),
                     flags);
}

ssize_t vector_with(fid_ep* endpoint, const iovec* pieces, std::size_t count, fi_addr_t with,
                    std::uint64_t address, std::uint64_t key, void* context, bool reads) {
    if (count > 1) return -FI_EINVAL;
    Endpoint& object = endpoint_of(endpoint);
    const iovec piece = count != 0 ? *pieces : iovec{};
    return move_with(object, of_piece(with, reads, piece, address, key, 0, context),
                     object.transmit_flags());
}

ssize_t read(fid_ep* endpoint, void* bytes, std::size_t length, void*, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) {
    const iovec piece = piece_of(bytes, length);
    return vector_with(endpoint, &piece, 1, from, address, key, context, true);
}

ssize_t write(fid_ep* endpoint, const void* bytes, std::size_t length, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) {
    const iovec piece = piece_of(bytes, length);
    return vector_with(endpoint, &piece, 1, to, address, key, context, false);
}

template <bool reads>
ssize_t move_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                    fi_addr_t with, std::uint64_t address, std::uint64_t key, void* context) {
    return vector_with(endpoint, pieces, count, with, address, key, context, reads);
}

template <bool reads>
ssize_t move_message(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
    return message_with(endpoint, *message, reads, flags);
}

ssize_t inject_write(fid_ep* endpoint, const void* bytes, std::size_t length, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key) {
    const iovec piece = piece_of(bytes, length);
    return inject_with(endpoint_of(endpoint), of_piece(to, false, piece, address, key, 0, nullptr),
                       false);
}

ssize_t writedata(fid_ep* endpoint, const void* bytes, std::size_t length, void*,
                  std::uint64_t data, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                  void* context) {
    Endpoint& object = endpoint_of(endpoint);
    const iovec piece = piece_of(bytes, length);
    return move_with(object, of_piece(to, false, piece, address, key, data, context),
                     object.transmit_flags() | FI_REMOTE_CQ_DATA);
}

ssize_t inject_writedata(fid_ep* endpoint, const void* bytes, std::size_t length,
                         std::uint64_t data, fi_addr_t to, std::uint64_t address,
                         std::uint64_t key) {
    const iovec piece = piece_of(bytes, length);
    return inject_with(endpoint_of(endpoint),
                       of_piece(to, false, piece, address, key, data, nullptr), true);
}

}  // namespace

fi_ops_rma rma_operations = {sizeof(fi_ops_rma),  read,         move_vector<true>,
                             move_message<true>,  write,        move_vector<false>,
                             move_message<false>, inject_write, writedata,
                             inject_writedata};

}  // namespace via::fabric::rdm
