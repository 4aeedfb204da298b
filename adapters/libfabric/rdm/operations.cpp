// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: libfabric's operations on data. Messages are of one piece of memory.
#include "rdm/fast_path.hpp"

namespace via::fabric::rdm {
namespace {

/// `sending` is filled but for what the flags of the operation say.
[[gnu::noinline]] ssize_t send_with(Endpoint& endpoint, Sending sending, std::uint64_t flags) {
    // In the peer's receive when it completes: nobody tells us.
    if ((flags & (FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_FENCE)) != 0) return -FI_EOPNOTSUPP;
    if ((flags & FI_REMOTE_CQ_DATA) != 0) sending.flags |= flag::data;
    sending.told = endpoint.completions().tells_sends(flags);
    sending.may_copy = (flags & FI_TRANSMIT_COMPLETE) == 0;
    sending.must_copy = (flags & FI_INJECT) != 0;
    if (sending.must_copy) sending.may_copy = true;
    if ((flags & FI_DELIVERY_COMPLETE) != 0) {
        sending.confirmed = true;
        sending.may_copy = false;
    }
    const Domain::Guard guard(endpoint.domain());
    return endpoint.send(sending);
}

[[gnu::always_inline]] inline ssize_t inject_with(Endpoint& endpoint, Sending sending) {
    sending.told = false;
    sending.must_copy = true;
    const Domain::Guard guard(endpoint.domain());
    return endpoint.send(sending);
}

ssize_t receive_with(Endpoint& endpoint, const iovec* pieces, std::size_t count, fi_addr_t from,
                     std::uint64_t tag, std::uint64_t ignore, void* context, bool tagged,
                     std::uint64_t flags) {
    if (count > 1) return -FI_EINVAL;
    const iovec room = count != 0 ? *pieces : iovec{};
    const bool told = endpoint.completions().tells_receives(flags);
    const Domain::Guard guard(endpoint.domain());
    // As a default of the endpoint it is of messages without tags alone.
    if ((flags & FI_MULTI_RECV) != 0 && !tagged)
        return endpoint.receive_many(room.iov_base, room.iov_len, from, context, told);
    return endpoint.receive(room.iov_base, room.iov_len, from, tag, ignore, context, tagged, told);
}

// Tagged ----------------------------------------------------------------------------------------

ssize_t trecv(fid_ep* endpoint, void* buffer, std::size_t length, void*, fi_addr_t from,
              std::uint64_t tag, std::uint64_t ignore, void* context) {
    Endpoint& to = endpoint_of(endpoint);
    const Domain::Guard guard(to.domain());
    return to.receive(buffer, length, from, tag, ignore, context, true,
                      to.completions().tells_receives(to.receive_flags()));
}

ssize_t trecvv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t from,
               std::uint64_t tag, std::uint64_t ignore, void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return receive_with(to, pieces, count, from, tag, ignore, context, true, to.receive_flags());
}

ssize_t trecvmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) {
    Endpoint& to = endpoint_of(endpoint);
    if ((flags & FI_MULTI_RECV) != 0) return -FI_EOPNOTSUPP;
    if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) == 0)
        return receive_with(to, message->msg_iov, message->iov_count, message->addr, message->tag,
                            message->ignore, message->context, true, flags);
    if ((flags & (FI_PEEK | FI_CLAIM)) == 0 || message->iov_count > 1) return -FI_EINVAL;
    const Domain::Guard guard(to.domain());
    return to.search(*message, flags);
}

ssize_t tsend(fid_ep* endpoint, const void* bytes, std::size_t length, void*, fi_addr_t to,
              std::uint64_t tag, void* context) {
    Endpoint& from = endpoint_of(endpoint);
    return send_with(from, {to, bytes, length, tag, 0, flag::tagged, context, true},
                     from.transmit_flags());
}

ssize_t tsendv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
               std::uint64_t tag, void* context) {
    if (count > 1) return -FI_EINVAL;
    return tsend(endpoint, count != 0 ? pieces->iov_base : nullptr,
                 count != 0 ? pieces->iov_len : 0, nullptr, to, tag, context);
}

ssize_t tsendmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) {
    if (message->iov_count > 1) return -FI_EINVAL;
    const iovec piece = message->iov_count != 0 ? *message->msg_iov : iovec{};
    return send_with(endpoint_of(endpoint),
                     {message->addr, piece.iov_base, piece.iov_len, message->tag, message->data,
                      flag::tagged, message->context, true},
                     flags);
}

ssize_t tinject(fid_ep* endpoint, const void* bytes, std::size_t length, fi_addr_t to,
                std::uint64_t tag) {
    return inject_with(endpoint_of(endpoint),
                       {to, bytes, length, tag, 0, flag::tagged, nullptr, false});
}

ssize_t tsenddata(fid_ep* endpoint, const void* bytes, std::size_t length, void*,
                  std::uint64_t data, fi_addr_t to, std::uint64_t tag, void* context) {
    Endpoint& from = endpoint_of(endpoint);
    return send_with(from, {to, bytes, length, tag, data, flag::tagged, context, true},
                     from.transmit_flags() | FI_REMOTE_CQ_DATA);
}

ssize_t tinjectdata(fid_ep* endpoint, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t to, std::uint64_t tag) {
    return inject_with(endpoint_of(endpoint),
                       {to, bytes, length, tag, data, flag::tagged | flag::data, nullptr, false});
}

// Not tagged ------------------------------------------------------------------------------------

constexpr std::uint64_t any_tag = ~std::uint64_t{0};

ssize_t recvv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t from,
              void* context) {
    Endpoint& to = endpoint_of(endpoint);
    return receive_with(to, pieces, count, from, 0, any_tag, context, false, to.receive_flags());
}

ssize_t recv(fid_ep* endpoint, void* buffer, std::size_t length, void*, fi_addr_t from,
             void* context) {
    const iovec piece{buffer, length};
    return recvv(endpoint, &piece, nullptr, 1, from, context);
}

ssize_t recvmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) {
    if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return -FI_EOPNOTSUPP;
    return receive_with(endpoint_of(endpoint), message->msg_iov, message->iov_count, message->addr,
                        0, any_tag, message->context, false, flags);
}

ssize_t send(fid_ep* endpoint, const void* bytes, std::size_t length, void*, fi_addr_t to,
             void* context) {
    Endpoint& from = endpoint_of(endpoint);
    return send_with(from, {to, bytes, length, 0, 0, 0, context, true}, from.transmit_flags());
}

ssize_t sendv(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
              void* context) {
    if (count > 1) return -FI_EINVAL;
    return send(endpoint, count != 0 ? pieces->iov_base : nullptr, count != 0 ? pieces->iov_len : 0,
                nullptr, to, context);
}

ssize_t sendmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) {
    if (message->iov_count > 1) return -FI_EINVAL;
    const iovec piece = message->iov_count != 0 ? *message->msg_iov : iovec{};
    return send_with(
        endpoint_of(endpoint),
        {message->addr, piece.iov_base, piece.iov_len, 0, message->data, 0, message->context, true},
        flags);
}

ssize_t inject(fid_ep* endpoint, const void* bytes, std::size_t length, fi_addr_t to) {
    return inject_with(endpoint_of(endpoint), {to, bytes, length, 0, 0, 0, nullptr, false});
}

ssize_t senddata(fid_ep* endpoint, const void* bytes, std::size_t length, void*, std::uint64_t data,
                 fi_addr_t to, void* context) {
    Endpoint& from = endpoint_of(endpoint);
    return send_with(from, {to, bytes, length, 0, data, 0, context, true},
                     from.transmit_flags() | FI_REMOTE_CQ_DATA);
}

ssize_t injectdata(fid_ep* endpoint, const void* bytes, std::size_t length, std::uint64_t data,
                   fi_addr_t to) {
    return inject_with(endpoint_of(endpoint),
                       {to, bytes, length, 0, data, flag::data, nullptr, false});
}

}  // namespace

fi_ops_msg message_operations = {
    sizeof(fi_ops_msg), recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata};
fi_ops_tagged tagged_operations = {sizeof(fi_ops_tagged),
                                   trecv,
                                   trecvv,
                                   trecvmsg,
                                   tsend,
                                   tsendv,
                                   tsendmsg,
                                   tinject,
                                   tsenddata,
                                   tinjectdata};

}  // namespace via::fabric::rdm
