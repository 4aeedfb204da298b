// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: receives, and the messages that meet them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rdm/short_way.hpp"

namespace via::fabric::rdm {
ssize_t Endpoint::receive(void* buffer, std::size_t room, fi_addr_t from, std::uint64_t tag,
                          std::uint64_t ignore, void* context, bool with_tag, bool told) {
    Peer* peer = nullptr;
    if (directed_ && from != FI_ADDR_UNSPEC) {
        peer = peer_at(from);
        if (peer == nullptr) return no_peer(from);
        if (peer->state == Peer::State::ended && peer->connection == nullptr &&
            matching(with_tag).unexpected.find(Matching::fitting(peer, tag, ignore)) == nullptr)
            return -peer->error;
    }
    if (!reserve_receive()) return -FI_EAGAIN;
    Receive* const receive = receive_pool_.take();
    if (receive == nullptr) {
        give_back_receive();
        return -FI_EAGAIN;
    }
    receive->from = peer;
    receive->tag = tag;
    receive->ignore = ignore;
    receive->buffer = static_cast<std::byte*>(buffer);
    receive->room = room;
    receive->context = context;
    receive->with_tag = with_tag;
    receive->told = told;
    receive->done = false;
    Matching& among = matching(with_tag);
    if (!among.unexpected.empty())
        if (Message* const message = among.unexpected.take(Matching::fitting(peer, tag, ignore))) {
            give(*message, *receive);
            return 0;
        }
    among.posted.push(*receive);
    return 0;
}

// Messages meet receives ------------------------------------------------------------------------

/// From here on the connection holds the receive.
void Endpoint::fetch(Receive& receive, Connection& connection, const Header& header,
                     const Offer& offer) {
    if (connection.has_ended) {
        fail_receive(receive, FI_ECONNRESET);
        return;
    }
    receive.connection = &connection;
    receive.header = header;
    receive.offer = offer;
    receive.fetched = 0;
    ++connection.held;
    if (receive.room == 0) {
        tell_received(receive, connection.peer(), header, offer.length);
        receive.done = true;
    }
    connection.waiting.push(receive);
    watch(connection);
    send_waiting(connection);
}

void Endpoint::give(Message& message, Receive& receive) {
    if (message.header.kind == Kind::offer)
        fetch(receive, *message.connection, message.header, message.offer);
    else
        deliver(receive, *message.peer, message.header, message.bytes, message.length);
    if (message.sender != nullptr) finish(*message.sender, 0);
    release(message);
}

/// Its memory is of use again.
void Endpoint::release(Message& message) {
    Connection* const connection = message.connection;
    if (message.slot != nullptr) {
        connection->release(*message.slot);
    } else {
        if (connection != nullptr) connection->copied -= message_memory(message.length);
        std::free(&message);
    }
    if (connection != nullptr && --connection->held == 0 && connection->has_ended)
        free(*connection);
}

// Looking for messages --------------------------------------------------------------------------

void Endpoint::tell_found(const Message& message, void* context, bool with_bytes) {
    Completion completion;
    completion.context = context;
    completion.flags = received_flags(message.header);
    completion.length = message.header.kind == Kind::offer ? message.offer.length : message.length;
    completion.data = message.header.data;
    completion.tag = message.header.tag;
    completion.source = number_of(*message.peer);
    if (!with_bytes) completion.length = 0;
    tell_receive(completion);
}

/// A message that nobody will receive; its sender is told that it was.
void Endpoint::discard(Message& message) {
    if (message.header.kind == Kind::offer && !message.connection->has_ended) {
        Receive* const receive = receive_pool_.take();
        if (receive == nullptr) {
            fail(*message.connection);
        } else {
            receive->done = true;
            receive->offer = message.offer;
            receive->connection = message.connection;
            ++message.connection->held;
            message.connection->waiting.push(*receive);
            watch(*message.connection);
            send_waiting(*message.connection);
        }
    }
    if (message.sender != nullptr) finish(*message.sender, 0);
    release(message);
}

ssize_t Endpoint::search(const fi_msg_tagged& wanted, std::uint64_t flags) {
    const bool told = tells_receives(flags);
    if ((flags & FI_PEEK) == 0) return receive_claimed(wanted, flags);
    Peer* peer = nullptr;
    if (directed_ && wanted.addr != FI_ADDR_UNSPEC) {
        peer = peer_at(wanted.addr);
        if (peer == nullptr) return no_peer(wanted.addr);
    }
    // Who only asks again and again shall find what has come.
    progress();
    if (!reserve_receive()) return -FI_EAGAIN;
    const auto fits = Matching::fitting(peer, wanted.tag, wanted.ignore);
    Message* const message = tagged_.unexpected.find(fits);
    if (message == nullptr) {
        Completion completion;
        completion.context = wanted.context;
        completion.flags = FI_RECV | FI_TAGGED;
        completion.tag = wanted.tag;
        completion.error = FI_ENOMSG;
        tell_receive(completion);
        return 0;
    }
    if ((flags & FI_CLAIM) != 0 && guarded([&] {
                                       claimed_.emplace_back(wanted.context, message);
                                       return 0;
                                   }) != 0) {
        give_back_receive();
        return -FI_EAGAIN;
    }
    if ((flags & (FI_CLAIM | FI_DISCARD)) != 0) tagged_.unexpected.take(fits);
    if (told)
        tell_found(*message, wanted.context, true);
    else
        give_back_receive();
    if ((flags & (FI_CLAIM | FI_DISCARD)) == FI_DISCARD) discard(*message);
    return 0;
}

/// The message that was claimed with this context before.
ssize_t Endpoint::receive_claimed(const fi_msg_tagged& wanted, std::uint64_t flags) {
    const auto claim =
        std::ranges::find(claimed_, wanted.context, &std::pair<const void*, Message*>::first);
    if (claim == claimed_.end()) return -FI_EINVAL;
    Message& message = *claim->second;
    if (!reserve_receive()) return -FI_EAGAIN;
    if ((flags & FI_DISCARD) != 0) {
        claimed_.erase(claim);
        if (tells_receives(flags))
            tell_found(message, wanted.context, false);
        else
            give_back_receive();
        discard(message);
        return 0;
    }
    Receive* const receive = receive_pool_.take();
    if (receive == nullptr) {
        give_back_receive();
        return -FI_EAGAIN;
    }
    claimed_.erase(claim);
    receive->from = message.peer;
    receive->tag = message.header.tag;
    receive->buffer =
        wanted.iov_count != 0 ? static_cast<std::byte*>(wanted.msg_iov->iov_base) : nullptr;
    receive->room = wanted.iov_count != 0 ? wanted.msg_iov->iov_len : 0;
    receive->context = wanted.context;
    receive->with_tag = true;
    receive->told = tells_receives(flags);
    receive->done = false;
    give(message, *receive);
    return 0;
}

ssize_t Endpoint::cancel(const void* context) {
    for (Matching* one : {&tagged_, &plain_}) {
        Receive* const receive =
            one->posted.take([&](const Receive& posted) { return posted.context == context; });
        if (receive == nullptr) continue;
        fail_receive(*receive, FI_ECANCELED);
        return 0;
    }
    return -FI_ENOENT;
}

}  // namespace via::fabric::rdm
