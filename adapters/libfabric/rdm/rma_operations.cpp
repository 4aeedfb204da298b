// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: libfabric's operations on the memory of peers.
#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {
namespace {

/// `moving` is filled but for what the flags of the operation say.
ssize_t move_with(Endpoint& endpoint, Moving moving, std::uint64_t flags) {
    if ((flags & (FI_COMMIT_COMPLETE | FI_FENCE)) != 0) return -FI_EOPNOTSUPP;
    moving.has_data = !moving.reads && (flags & FI_REMOTE_CQ_DATA) != 0;
    moving.told = endpoint.completions().tells_sends(flags);
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
