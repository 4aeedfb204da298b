// SPDX-License-Identifier: Apache-2.0
// The data path: libfabric's calls become descriptors, and done descriptors completions.
#include <sys/uio.h>

#include <algorithm>

#include "endpoint.hpp"

namespace via::fabric {
namespace {

Endpoint& endpoint_of(fid_ep* endpoint) { return *static_cast<Endpoint*>(endpoint); }

}  // namespace

// Posting ---------------------------------------------------------------------------------------

/// Why nothing can be sent: there will be a connection, or there is none. (With one that has ended
/// it can: VIA flushes it at once, and so the program hears of it as of what was under way.)
ssize_t Endpoint::not_now(const Transfer& transfer) {
    if (state_ == State::connecting) return -FI_EAGAIN;
    if (state_ != State::closed) return -FI_ENOTCONN;
    return transfer.told == Told::nothing ? 0 : cancel(sends_, transfer.context, transfer.flags);
}

/// Tells of an operation that was not posted as of one that was flushed.
ssize_t Endpoint::cancel(Side& from, void* context, std::uint64_t flags) {
    Completion completion{};
    completion.context = context;
    completion.flags = flags;
    completion.error = FI_ECANCELED;
    completion.status = VIP_STATUS_DESC_FLUSHED_ERROR;
    return guarded([&] {
        from.queue->tell(completion);
        return 0;
    });
}

/// 0, or what libfabric is told; then the operation is back in the ring.
ssize_t Endpoint::post(Side& to, Operation& operation, bool receives) {
    const VIP_MEM_HANDLE handle = domain_.nic().everything();
    const VIP_RETURN code = receives ? VipPostRecv(vi_, &operation.descriptor, handle)
                                     : VipPostSend(vi_, &operation.descriptor, handle);
    if (code == VIP_SUCCESS) return 0;
    to.ring.take_back();
    return code == VIP_ERROR_RESOURCE ? -FI_EAGAIN : -error_of(code);
}

/// A later piece of a long RDMA could not be posted, for want of memory. The connection ends, after
/// which the earlier ones touch no memory, and the whole is told as failed.
void Endpoint::give_up(const Transfer& transfer) {
    VipDisconnect(vi_);
    on_connection_lost(VIP_ERROR_CONN_LOST);
    sends_.queue->drain(vi_, false);
    if (transfer.told != Told::nothing) cancel(sends_, transfer.context, transfer.flags);
}

/// One of the transfer's `cuts` pieces.
void Endpoint::fill_cut(Operation& operation, std::uint32_t place, const Transfer& transfer,
                        std::size_t cut, std::size_t cuts) {
    const std::size_t from = cut * attributes_.MaxTransferSize;
    VIP_CONTROL_SEGMENT& control = operation.descriptor.CS;
    control.Control = cut + 1 == cuts
                          ? transfer.control
                          : static_cast<VIP_UINT16>(transfer.control & ~VIP_CONTROL_IMMEDIATE);
    control.Reserved = 0;
    control.ImmediateData = static_cast<VIP_UINT32>(transfer.data);
    std::size_t segment = 0;
    if (transfer.is_rdma()) {
        VIP_ADDRESS_SEGMENT& remote = operation.segments()[segment++].Remote;
        remote.Data.AddressBits = transfer.remote_address + from;
        remote.Handle = static_cast<VIP_MEM_HANDLE>(transfer.key);
        remote.Reserved = 0;
    }
    const std::size_t length = operation.length;
    if (!transfer.copied) {
        operation.fill_pieces(segment, transfer.pieces, transfer.count, from,
                              std::min<std::size_t>(attributes_.MaxTransferSize, length - from),
                              domain_.nic().everything());
        return;
    }
    std::byte* const copy = copies_.get() + place * inject_size_max;
    std::byte* end = copy;
    for (std::size_t index = 0; index < transfer.count; ++index)
        end = std::copy_n(static_cast<const std::byte*>(transfer.pieces[index].iov_base),
                          transfer.pieces[index].iov_len, end);
    const iovec piece{copy, length};
    operation.fill_pieces(segment, &piece, 1, 0, length, domain_.nic().everything());
}

/// A read of no bytes. The peer's NIC takes what a connection brings in its order, so with the
/// answer all that was sent before is where it belongs.
void Endpoint::fill_question(Operation& operation) {
    operation.descriptor.CS = {};
    operation.descriptor.CS.Control = VIP_CONTROL_OP_RDMAREAD;
    operation.descriptor.CS.SegCount = 1;
    operation.segments()[0].Remote = {};
}

ssize_t Endpoint::send(const Transfer& transfer) {
    if (const State state = state_; state != State::connected && state != State::ended)
        return not_now(transfer);
    if (transfer.count > segments_max) return -FI_EINVAL;
    const std::size_t length = length_of(transfer.pieces, transfer.count);
    const std::size_t most = attributes_.MaxTransferSize;
    if (transfer.copied && length > inject_size_max) return -FI_EMSGSIZE;
    if (length > (transfer.is_rdma() ? message_size_max : most)) return -FI_EMSGSIZE;
    const std::size_t cuts = length == 0 ? 1 : (length + most - 1) / most;
    const std::size_t all = cuts + (transfer.confirmed ? 1 : 0);
    if (all > sends_.ring.size()) return -FI_EMSGSIZE;
    const HeldIf guard(domain_.shares_endpoints(), sends_.ring.lock());
    if (!sends_.ring.has_room(static_cast<std::uint32_t>(all))) return -FI_EAGAIN;
    for (std::size_t at = 0; at < all; ++at) {
        std::uint32_t place = 0;
        Operation& operation = sends_.ring.take(place);
        operation.endpoint = this;
        operation.shared = nullptr;
        operation.context = transfer.context;
        operation.flags = transfer.flags;
        operation.buffer = nullptr;
        operation.length = length;
        operation.last = at + 1 == all;
        operation.told = operation.last ? transfer.told : Told::errors;
        if (at < cuts)
            fill_cut(operation, place, transfer, at, cuts);
        else
            fill_question(operation);
        if (const ssize_t error = post(sends_, operation, false)) {
            if (at == 0) return error;
            give_up(transfer);
            return 0;
        }
    }
    return 0;
}

ssize_t Endpoint::receive(const iovec* pieces, std::size_t count, void* context, Told told) {
    if (vi_ == nullptr)
        return state_ == State::closed ? cancel(receives_, context, FI_MSG | FI_RECV)
                                       : -FI_EOPBADSTATE;
    if (count > segments_max || shares_receives_) return -FI_EINVAL;
    const std::size_t length = length_of(pieces, count);
    if (length > std::size_t{UINT32_MAX}) return -FI_EMSGSIZE;
    const HeldIf guard(domain_.shares_endpoints(), receives_.ring.lock());
    if (!receives_.ring.has_room(1)) return -FI_EAGAIN;
    std::uint32_t place = 0;
    Operation& operation = receives_.ring.take(place);
    operation.endpoint = this;
    operation.shared = nullptr;
    operation.fill_receive(pieces, count, length, context, told, domain_.nic().everything());
    return post(receives_, operation, true);
}

// Completing ------------------------------------------------------------------------------------

void Endpoint::count(std::uint64_t flags, bool receive, bool error) {
    Counter* const counter = receive                   ? counters_[1]
                             : (flags & FI_READ) != 0  ? counters_[2]
                             : (flags & FI_WRITE) != 0 ? counters_[3]
                                                       : counters_[0];
    if (counter != nullptr) counter->count(error);
}

bool Endpoint::complete(Operation& operation, bool receive, Completion& completion) {
    const VIP_CONTROL_SEGMENT& control = operation.descriptor.CS;
    const VIP_UINT32 status = control.Status;
    const bool unused = (status & VIP_STATUS_DESC_FLUSHED_ERROR) != 0;
    if (operation.shared != nullptr && unused && operation.shared->post_again(operation))
        return false;
    completion.context = operation.context;
    completion.flags = operation.flags;
    completion.length = receive ? control.Length : operation.length;
    completion.buffer = operation.buffer;
    completion.data = 0;
    completion.error = 0;
    completion.status = status;
    if ((status & VIP_STATUS_ERROR_MASK) != 0) {
        completion.error = error_of_status(status);
        if (completion.error == FI_ETRUNC && receive) completion.length = operation.length;
        // A receive that went wrong has ended the connection, of which VIA says nothing else here.
        if (receive && completion.error != FI_ECANCELED) on_connection_lost(VIP_ERROR_CONN_LOST);
    }
    if (receive && (status & VIP_STATUS_IMMEDIATE) != 0) {
        completion.flags |= FI_REMOTE_CQ_DATA;
        completion.data = control.ImmediateData;
    }
    if (receive && (status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE) {
        completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
        completion.buffer = nullptr;
    }
    const bool last = operation.last;
    Told told = operation.told;
    if (operation.shared == nullptr) {
        side(receive).ring.give_back();
    } else {
        if (told == Told::errors && tells_always(true)) told = Told::all;
        operation.shared->give_back(operation);
    }
    if (!last) {
        // What went wrong with a piece is told with the last one, which was flushed for it.
        if (completion.error != 0 && cut_error_ == 0) {
            cut_error_ = completion.error;
            cut_status_ = status;
        }
        return false;
    }
    if (!receive && cut_error_ != 0) {
        completion.error = std::exchange(cut_error_, 0);
        completion.status = cut_status_;
    }
    count(completion.flags, receive, completion.error != 0);
    return told == Told::all || (told == Told::errors && completion.error != 0);
}

// libfabric's operations ------------------------------------------------------------------------

namespace {

constexpr std::uint64_t sent = FI_MSG | FI_SEND;
constexpr std::uint64_t written = FI_RMA | FI_WRITE;
constexpr std::uint64_t was_read = FI_RMA | FI_READ;

/// What an operation with these flags tells the program.
Told told_with(const Endpoint& endpoint, std::uint64_t flags, bool receives) {
    const bool always = endpoint.tells_always(receives) || (flags & FI_COMPLETION) != 0;
    return always ? Told::all : Told::errors;
}

VIP_UINT16 control_of(unsigned operation, std::uint64_t flags) {
    unsigned control = operation;
    if ((flags & FI_REMOTE_CQ_DATA) != 0) control |= VIP_CONTROL_IMMEDIATE;
    if ((flags & FI_FENCE) != 0) control |= VIP_CONTROL_QFENCE;
    return static_cast<VIP_UINT16>(control);
}

iovec piece_of(const void* buffer, std::size_t length) {
    return {const_cast<void*>(buffer), length};
}

/// In memory that outlives the peer's power when it completes: nobody tells us.
bool is_too_much(std::uint64_t flags) { return (flags & FI_COMMIT_COMPLETE) != 0; }

/// In the peer's receive or memory when it completes: the level of a whole connection, or asked.
bool is_confirmed(const Endpoint& endpoint, std::uint64_t flags) {
    return (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) != 0 &&
           !endpoint.completes_on_delivery();
}

ssize_t send_message(Endpoint& endpoint, const iovec* pieces, std::size_t count, void* context,
                     std::uint64_t data, std::uint64_t flags) {
    if (is_too_much(flags)) return -FI_EOPNOTSUPP;
    Transfer transfer{control_of(VIP_CONTROL_OP_SENDRECV, flags), sent, pieces, count, context};
    transfer.told = told_with(endpoint, flags, false);
    transfer.confirmed = is_confirmed(endpoint, flags);
    transfer.copied = (flags & FI_INJECT) != 0;
    transfer.data = data;
    return endpoint.send(transfer);
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t length, void*, fi_addr_t,
             void* context) {
    const iovec piece = piece_of(buffer, length);
    Endpoint& to = endpoint_of(endpoint);
    return send_message(to, &piece, 1, context, 0, to.transmit_flags());
}

ssize_t sendv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t,
              void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return send_message(to, pieces, count, context, 0, to.transmit_flags());
}

ssize_t sendmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) {
    return send_message(endpoint_of(endpoint), message->msg_iov, message->iov_count,
                        message->context, message->data, flags);
}

ssize_t senddata(fid_ep* endpoint, const void* buffer, std::size_t length, void*,
                 std::uint64_t data, fi_addr_t, void* context) {
    const iovec piece = piece_of(buffer, length);
    Endpoint& to = endpoint_of(endpoint);
    return send_message(to, &piece, 1, context, data, to.transmit_flags() | FI_REMOTE_CQ_DATA);
}

ssize_t inject_message(Endpoint& endpoint, const void* buffer, std::size_t length,
                       std::uint64_t data, std::uint64_t flags) {
    const iovec piece = piece_of(buffer, length);
    Transfer transfer{control_of(VIP_CONTROL_OP_SENDRECV, flags), sent, &piece, 1, nullptr};
    transfer.told = Told::nothing;
    transfer.copied = true;
    transfer.data = data;
    return endpoint.send(transfer);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t length, fi_addr_t) {
    return inject_message(endpoint_of(endpoint), buffer, length, 0, 0);
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t length, std::uint64_t data,
                   fi_addr_t) {
    return inject_message(endpoint_of(endpoint), buffer, length, data, FI_REMOTE_CQ_DATA);
}

ssize_t recvv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t,
              void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return to.receive(pieces, count, context, told_with(to, to.receive_flags(), true));
}

ssize_t recv(fid_ep* endpoint, void* buffer, std::size_t length, void*, fi_addr_t, void* context) {
    const iovec piece{buffer, length};
    return recvv(endpoint, &piece, nullptr, 1, 0, context);
}

ssize_t recvmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) {
    // As an ordinary receive it would take a message that the program only looks for.
    if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV)) != 0) return -FI_EOPNOTSUPP;
    Endpoint& to = endpoint_of(endpoint);
    return to.receive(message->msg_iov, message->iov_count, message->context,
                      told_with(to, flags, true));
}

// RMA

ssize_t move(Endpoint& endpoint, unsigned operation, const iovec* pieces, std::size_t count,
             std::uint64_t address, std::uint64_t key, void* context, std::uint64_t data,
             std::uint64_t flags) {
    const bool no_data = (flags & FI_REMOTE_CQ_DATA) != 0 && !endpoint.writes_with_data();
    if (no_data || is_too_much(flags)) return -FI_EOPNOTSUPP;
    const bool reads = operation == VIP_CONTROL_OP_RDMAREAD;
    Transfer transfer{control_of(operation, flags), reads ? was_read : written, pieces, count,
                      context};
    transfer.told = told_with(endpoint, flags, false);
    transfer.copied = !reads && (flags & FI_INJECT) != 0;
    transfer.confirmed = !reads && is_confirmed(endpoint, flags);
    transfer.remote_address = address;
    transfer.key = key;
    transfer.data = data;
    return endpoint.send(transfer);
}

ssize_t readv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t,
              std::uint64_t address, std::uint64_t key, void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return move(to, VIP_CONTROL_OP_RDMAREAD, pieces, count, address, key, context, 0,
                to.transmit_flags());
}

ssize_t read(fid_ep* endpoint, void* buffer, std::size_t length, void*, fi_addr_t,
             std::uint64_t address, std::uint64_t key, void* context) {
    const iovec piece{buffer, length};
    return readv(endpoint, &piece, nullptr, 1, 0, address, key, context);
}

ssize_t readmsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
    if (message->rma_iov_count != 1) return -FI_EINVAL;
    return move(endpoint_of(endpoint), VIP_CONTROL_OP_RDMAREAD, message->msg_iov,
                message->iov_count, message->rma_iov->addr, message->rma_iov->key, message->context,
                0, flags & ~FI_REMOTE_CQ_DATA);
}

ssize_t writev(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t,
               std::uint64_t address, std::uint64_t key, void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return move(to, VIP_CONTROL_OP_RDMAWRITE, pieces, count, address, key, context, 0,
                to.transmit_flags());
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t length, void*, fi_addr_t,
              std::uint64_t address, std::uint64_t key, void* context) {
    const iovec piece = piece_of(buffer, length);
    return writev(endpoint, &piece, nullptr, 1, 0, address, key, context);
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) {
    if (message->rma_iov_count != 1) return -FI_EINVAL;
    return move(endpoint_of(endpoint), VIP_CONTROL_OP_RDMAWRITE, message->msg_iov,
                message->iov_count, message->rma_iov->addr, message->rma_iov->key, message->context,
                message->data, flags);
}

ssize_t writedata(fid_ep* endpoint, const void* buffer, std::size_t length, void*,
                  std::uint64_t data, fi_addr_t, std::uint64_t address, std::uint64_t key,
                  void* context) {
    const iovec piece = piece_of(buffer, length);
    Endpoint& to = endpoint_of(endpoint);
    return move(to, VIP_CONTROL_OP_RDMAWRITE, &piece, 1, address, key, context, data,
                to.transmit_flags() | FI_REMOTE_CQ_DATA);
}

ssize_t inject_write_with(Endpoint& endpoint, const void* buffer, std::size_t length,
                          std::uint64_t address, std::uint64_t key, std::uint64_t data,
                          std::uint64_t flags) {
    if ((flags & FI_REMOTE_CQ_DATA) != 0 && !endpoint.writes_with_data()) return -FI_EOPNOTSUPP;
    const iovec piece = piece_of(buffer, length);
    Transfer transfer{control_of(VIP_CONTROL_OP_RDMAWRITE, flags), written, &piece, 1, nullptr};
    transfer.told = Told::nothing;
    transfer.copied = true;
    transfer.remote_address = address;
    transfer.key = key;
    transfer.data = data;
    return endpoint.send(transfer);
}

ssize_t inject_write(fid_ep* endpoint, const void* buffer, std::size_t length, fi_addr_t,
                     std::uint64_t address, std::uint64_t key) {
    return inject_write_with(endpoint_of(endpoint), buffer, length, address, key, 0, 0);
}

ssize_t inject_writedata(fid_ep* endpoint, const void* buffer, std::size_t length,
                         std::uint64_t data, fi_addr_t, std::uint64_t address, std::uint64_t key) {
    return inject_write_with(endpoint_of(endpoint), buffer, length, address, key, data,
                             FI_REMOTE_CQ_DATA);
}

}  // namespace

fi_ops_msg message_operations = {
    sizeof(fi_ops_msg), recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata};
fi_ops_rma rma_operations = {
    sizeof(fi_ops_rma), read,         readv,     readmsg,         write, writev,
    writemsg,           inject_write, writedata, inject_writedata};

}  // namespace via::fabric
