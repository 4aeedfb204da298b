// SPDX-License-Identifier: Apache-2.0
#include "rdm/unexpected.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "info.hpp"

namespace via::fabric::rdm {

// What comes ------------------------------------------------------------------------------------

void Unexpected::arrived(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    const bool with_tag = (header.flags & flag::tagged) != 0;
    if (Receive* const many = receives_.take(with_tag, &connection.peer(), header.tag)) {
        Receive* const part = receives_.part_of(*many, length);
        if (part == nullptr) return connections_.fail(connection);
        receives_.deliver(completions_, *part, connection.peer(), header,
                          slot.bytes + sizeof header, length);
        connection.release(slot);
        return;
    }
    add(keep(slot, header, length));
}

void Unexpected::arrived_offer(Slot& slot, const Header& header) {
    Connection& connection = *slot.connection;
    Offer offer;
    std::memcpy(&offer, slot.bytes + sizeof header, sizeof offer);
    if (offer.length == 0 || offer.length > message_size_max || offer.zero != 0) {
        FI_WARN(&provider, FI_LOG_EP_DATA, "a peer offers what cannot be\n");
        return connections_.fail(connection);
    }
    const bool with_tag = (header.flags & flag::tagged) != 0;
    if (Receive* receive = receives_.take(with_tag, &connection.peer(), header.tag)) {
        if (receive->takes_many) receive = receives_.part_of(*receive, offer.length);
        if (receive == nullptr) return connections_.fail(connection);
        pulls_.begin(*receive, connection, header, offer);
        connection.release(slot);
        return;
    }
    Message& message = keep(slot, header, 0);
    message.offer = offer;
    add(message);
}

/// The message stays where it came while the connection has receives enough for the next ones. Then
/// it makes room, since what the program waits for may come behind it.
Message& Unexpected::keep(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    const std::byte* const bytes = slot.bytes + sizeof(Header);
    Message* message = &slot.message;
    if (!connection.may_keep(slot)) {
        void* memory = nullptr;
        if (connection.copied + message_memory(length) <= copied_max_)
            memory = std::malloc(message_memory(length));
        if (memory != nullptr) {
            message = static_cast<Message*>(memory);
            std::memcpy(message + 1, bytes, length);
        } else {
            FI_WARN_ONCE(&provider, FI_LOG_EP_DATA,
                         "%zu bytes before their receives, and no room for more: the peer waits\n",
                         connection.copied);
        }
    }
    new (message) Message;
    message->peer = &connection.peer();
    message->connection = &connection;
    message->header = header;
    message->length = length;
    ++connection.held;
    if (message == &slot.message) {
        message->slot = &slot;
        message->bytes = bytes;
    } else {
        message->bytes = reinterpret_cast<const std::byte*>(message + 1);
        connection.copied += message_memory(length);
        connection.release(slot);
    }
    return *message;
}

// Messages meet receives ------------------------------------------------------------------------

ssize_t Unexpected::receive(void* buffer, std::size_t room, Peer* peer, std::uint64_t tag,
                            std::uint64_t ignore, void* context, bool with_tag, bool told) {
    Line<Message>& waiting = waiting_.tagged_if(with_tag);
    if (peer != nullptr && peer->state == Peer::State::ended && peer->connection == nullptr &&
        waiting.find(fitting(peer, tag, ignore)) == nullptr)
        return -peer->error;
    Receive* const receive = receives_.make(buffer, room, peer, context, told);
    if (receive == nullptr) return -FI_EAGAIN;
    receive->tag = tag;
    receive->ignore = ignore;
    receive->with_tag = with_tag;
    if (!waiting.empty())
        if (Message* const message = waiting.take(fitting(peer, tag, ignore))) {
            give(*message, *receive);
            return 0;
        }
    receives_.post(*receive);
    return 0;
}

ssize_t Unexpected::receive_many(void* buffer, std::size_t room, Peer* peer, void* context,
                                 bool told) {
    Receive* const many = receives_.make(buffer, room, peer, context, told);
    if (many == nullptr) return -FI_EAGAIN;
    many->tag = 0;
    many->ignore = ~std::uint64_t{0};
    many->with_tag = false;
    many->takes_many = true;
    many->parts = 0;
    receives_.post(*many);
    give_to(*many);
    return 0;
}

/// What came before it. It may be gone when this returns.
void Unexpected::give_to(Receive& many) {
    Line<Message>& waiting = waiting_.tagged_if(false);
    const auto fits = fitting(many.from, many.tag, many.ignore);
    for (bool is_last = false; !is_last;) {
        Message* const message = waiting.find(fits);
        if (message == nullptr) return;
        const bool is_offer = message->header.kind == Kind::offer;
        Receive* const part =
            receives_.part_of(many, is_offer ? message->offer.length : message->length);
        if (part == nullptr) {
            // Without memory the message cannot be received in its order any more.
            if (message->connection != nullptr) connections_.fail(*message->connection);
            return;
        }
        is_last = many.is_used_up;
        waiting.take(fits);
        give(*message, *part);
    }
}

void Unexpected::give(Message& message, Receive& receive) {
    if (message.header.kind == Kind::offer)
        pulls_.begin(receive, *message.connection, message.header, message.offer);
    else
        receives_.deliver(completions_, receive, *message.peer, message.header, message.bytes,
                          message.length);
    if (message.sender != nullptr) long_messages_.finish(*message.sender, 0);
    release(message);
}

/// Its memory is of use again.
void Unexpected::release(Message& message) {
    Connection* const connection = message.connection;
    if (message.slot != nullptr) {
        connection->release(*message.slot);
    } else {
        if (connection != nullptr) connection->copied -= message_memory(message.length);
        std::free(&message);
    }
    if (connection != nullptr) connections_.let_go(*connection);
}

// Looking for messages --------------------------------------------------------------------------

void Unexpected::tell_found(const Message& message, void* context, bool with_bytes) {
    Completion completion;
    completion.context = context;
    completion.flags = received_flags(message.header);
    completion.length = message.header.kind == Kind::offer ? message.offer.length : message.length;
    completion.data = message.header.data;
    completion.tag = message.header.tag;
    completion.source = peers_.number_of(*message.peer);
    if (!with_bytes) completion.length = 0;
    completions_.tell_receive(completion);
}

/// A message that nobody will receive; its sender is told that it was.
void Unexpected::discard(Message& message) {
    if (message.header.kind == Kind::offer && !message.connection->has_ended)
        pulls_.decline(*message.connection, message.offer);
    if (message.sender != nullptr) long_messages_.finish(*message.sender, 0);
    release(message);
}

ssize_t Unexpected::search(const fi_msg_tagged& wanted, Peer* peer, std::uint64_t flags) {
    if (!completions_.reserve_receive()) return -FI_EAGAIN;
    Line<Message>& waiting = waiting_.tagged_if(true);
    const auto fits = fitting(peer, wanted.tag, wanted.ignore);
    Message* const message = waiting.find(fits);
    if (message == nullptr) {
        Completion completion;
        completion.context = wanted.context;
        completion.flags = FI_RECV | FI_TAGGED;
        completion.tag = wanted.tag;
        completion.error = FI_ENOMSG;
        completions_.tell_receive(completion);
        return 0;
    }
    if ((flags & FI_CLAIM) != 0 && guarded([&] {
                                       claimed_.emplace_back(wanted.context, message);
                                       return 0;
                                   }) != 0) {
        completions_.give_back_receive();
        return -FI_EAGAIN;
    }
    if ((flags & (FI_CLAIM | FI_DISCARD)) != 0) waiting.take(fits);
    if (completions_.tells_receives(flags))
        tell_found(*message, wanted.context, true);
    else
        completions_.give_back_receive();
    if ((flags & (FI_CLAIM | FI_DISCARD)) == FI_DISCARD) discard(*message);
    return 0;
}

ssize_t Unexpected::receive_claimed(const fi_msg_tagged& wanted, std::uint64_t flags) {
    const auto claim =
        std::ranges::find(claimed_, wanted.context, &std::pair<const void*, Message*>::first);
    if (claim == claimed_.end()) return -FI_EINVAL;
    Message& message = *claim->second;
    if ((flags & FI_DISCARD) != 0) {
        if (!completions_.reserve_receive()) return -FI_EAGAIN;
        claimed_.erase(claim);
        if (completions_.tells_receives(flags))
            tell_found(message, wanted.context, false);
        else
            completions_.give_back_receive();
        discard(message);
        return 0;
    }
    const iovec room = wanted.iov_count != 0 ? *wanted.msg_iov : iovec{};
    Receive* const receive = receives_.make(room.iov_base, room.iov_len, message.peer,
                                            wanted.context, completions_.tells_receives(flags));
    if (receive == nullptr) return -FI_EAGAIN;
    claimed_.erase(claim);
    receive->tag = message.header.tag;
    receive->with_tag = true;
    give(message, *receive);
    return 0;
}

void Unexpected::discard_all() {
    const auto free_copy = [](Message* message) {
        if (message->slot == nullptr) std::free(message);
    };
    for (const bool with_tag : {true, false})
        while (Message* message = waiting_.tagged_if(with_tag).take_first()) free_copy(message);
    for (const auto& claim : claimed_) free_copy(claim.second);
}

}  // namespace via::fabric::rdm
