// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: receives, and the messages that meet them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rdm/short_way.hpp"

namespace via::fabric::rdm {
/// 0, or why nothing can come from there.
int Endpoint::find_source(fi_addr_t from, Peer*& peer) {
    peer = nullptr;
    if (!directed_ || from == FI_ADDR_UNSPEC) return 0;
    peer = peer_at(from);
    return peer == nullptr ? static_cast<int>(no_peer(from)) : 0;
}

/// With room for its completion. nullptr: no memory.
Receive* Endpoint::new_receive(void* buffer, std::size_t room, Peer* from, void* context,
                               bool told) {
    if (!reserve_receive()) return nullptr;
    Receive* const receive = receive_pool_.take();
    if (receive == nullptr) {
        give_back_receive();
        return nullptr;
    }
    receive->from = from;
    receive->buffer = static_cast<std::byte*>(buffer);
    receive->room = room;
    receive->context = context;
    receive->told = told;
    receive->done = false;
    receive->takes_many = receive->is_used_up = false;
    receive->of = nullptr;
    return receive;
}

ssize_t Endpoint::receive(void* buffer, std::size_t room, fi_addr_t from, std::uint64_t tag,
                          std::uint64_t ignore, void* context, bool with_tag, bool told) {
    Peer* peer = nullptr;
    if (const int error = find_source(from, peer)) return error;
    if (peer != nullptr && peer->state == Peer::State::ended && peer->connection == nullptr &&
        matching(with_tag).unexpected.find(Matching::fitting(peer, tag, ignore)) == nullptr)
        return -peer->error;
    Receive* const receive = new_receive(buffer, room, peer, context, told);
    if (receive == nullptr) return -FI_EAGAIN;
    receive->tag = tag;
    receive->ignore = ignore;
    receive->with_tag = with_tag;
    Matching& among = matching(with_tag);
    if (!among.unexpected.empty())
        if (Message* const message = among.unexpected.take(Matching::fitting(peer, tag, ignore))) {
            give(*message, *receive);
            return 0;
        }
    among.posted.push(*receive);
    return 0;
}

// For several messages --------------------------------------------------------------------------

ssize_t Endpoint::receive_many(void* buffer, std::size_t room, fi_addr_t from, void* context,
                               bool told) {
    Peer* peer = nullptr;
    if (const int error = find_source(from, peer)) return error;
    Receive* const many = new_receive(buffer, room, peer, context, told);
    if (many == nullptr) return -FI_EAGAIN;
    many->tag = 0;
    many->ignore = ~std::uint64_t{0};
    many->with_tag = false;
    many->takes_many = true;
    many->parts = 0;
    plain_.posted.push(*many);
    give_to(*many);
    return 0;
}

/// What came before it. It may be gone when this returns.
void Endpoint::give_to(Receive& many) {
    const auto fits = Matching::fitting(many.from, many.tag, many.ignore);
    for (bool is_last = false; !is_last;) {
        Message* const message = plain_.unexpected.find(fits);
        if (message == nullptr) return;
        const bool is_offer = message->header.kind == Kind::offer;
        Receive* const part =
            part_of(many, plain_, is_offer ? message->offer.length : message->length);
        if (part == nullptr) {
            // Without memory the message cannot be received in its order any more.
            if (message->connection != nullptr) fail(*message->connection);
            return;
        }
        is_last = many.is_used_up;
        plain_.unexpected.take(fits);
        give(*message, *part);
    }
}

/// For a message of that length. nullptr: no memory. The last part has the completion that was
/// reserved for the whole.
Receive* Endpoint::part_of(Receive& many, Matching& among, std::size_t length) {
    const std::size_t taken = std::min(length, many.room);
    const bool is_last = many.room - taken < min_room_;
    if (!is_last && !reserve_receive()) return nullptr;
    Receive* const part = receive_pool_.take();
    if (part == nullptr) {
        if (!is_last) give_back_receive();
        return nullptr;
    }
    *part = many;
    part->takes_many = false;
    part->of = &many;
    many.buffer += taken;
    many.room -= taken;
    ++many.parts;
    if (is_last) {
        many.is_used_up = true;
        among.posted.take([&](const Receive& posted) { return &posted == &many; });
    }
    return part;
}

/// FI_MULTI_RECV: that was the last one.
std::uint64_t Endpoint::end_part(Receive& many) {
    if (--many.parts != 0 || !many.is_used_up) return 0;
    receive_pool_.give_back(many);
    return FI_MULTI_RECV;
}

void Endpoint::tell_part(const Receive& part, Peer& from, const Header& header,
                         std::size_t length) {
    const bool fits = length <= part.room;
    const std::uint64_t ends = end_part(*part.of);
    count_receive(!fits);
    if (!part.told && fits && ends == 0) return give_back_receive();
    tell_receive({.context = part.context,
                  .flags = received_flags(header) | ends,
                  .length = fits ? length : part.room,
                  .buffer = part.buffer,
                  .data = header.data,
                  .source = number_of(from),
                  .missing = fits ? 0 : length - part.room,
                  .error = fits ? 0 : FI_ETRUNC});
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
    } else if (fetch_at_once(receive, connection)) {
        tell_received(receive, connection.peer(), header, offer.length);
        receive.done = true;
    }
    connection.waiting.push(receive);
    watch(connection);
    send_waiting(connection);
}

/// From the sender's memory, so that it need not get a processor to answer. Pieces of longer ones
/// come while it runs, and do not keep us for that long.
bool Endpoint::fetch_at_once(const Receive& receive, Connection& connection) {
    if (!fetches_at_once_ || receive.offer.length > fetched_at_once_max) return false;
    return connection.lines.fetch(receive.buffer, receive.offer.address,
                                  std::min<std::uint64_t>(receive.room, receive.offer.length));
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
    if (const int error = find_source(wanted.addr, peer)) return error;
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
    if ((flags & FI_DISCARD) != 0) {
        if (!reserve_receive()) return -FI_EAGAIN;
        claimed_.erase(claim);
        if (tells_receives(flags))
            tell_found(message, wanted.context, false);
        else
            give_back_receive();
        discard(message);
        return 0;
    }
    const iovec room = wanted.iov_count != 0 ? *wanted.msg_iov : iovec{};
    Receive* const receive = new_receive(room.iov_base, room.iov_len, message.peer, wanted.context,
                                         tells_receives(flags));
    if (receive == nullptr) return -FI_EAGAIN;
    claimed_.erase(claim);
    receive->tag = message.header.tag;
    receive->with_tag = true;
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
