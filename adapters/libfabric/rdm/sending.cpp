// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: short messages are copied, longer ones lent, long ones offered.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "info.hpp"
#include "rdm/short_way.hpp"

namespace via::fabric::rdm {
/// Whatever send() does not do at once. `peer`: nullptr: there is none of that number.
ssize_t Endpoint::send_otherwise(Peer* peer, const Sending& sending) {
    if (peer == nullptr) [[unlikely]]
        return no_peer(sending.to);
    if (sending.must_copy && sending.length > inject_max) return -FI_EMSGSIZE;
    Connection* const connection = peer->connection;
    if (connection == nullptr) [[unlikely]] {
        if (peer->is_self) return send_to_self(*peer, sending);
        return not_connected(*peer);
    }
    // An offer is done when it was fetched.
    if (sending.length > eager_size_to(*connection) && !sending.must_copy)
        return send_offer(*connection, sending);
    return sending.confirmed ? send_confirmed(*connection, sending)
                             : send_lent(*connection, sending);
}

/// The descriptor was not posted: there is no room, or no connection any more. Who only sends again
/// and again, and reads nothing meanwhile, makes progress here: the peer may wait for us as well,
/// or be gone. The connection may have ended when this returns.
ssize_t Endpoint::why_not_posted(Connection& connection, VIP_RETURN code) {
    Peer& peer = connection.peer();
    if (code != VIP_ERROR_RESOURCE) fail(connection);
    // What is under way needs the peer, which may be waiting for this processor.
    if (connection.is_stuck()) domain_.rest();
    progress();
    return peer.state == Peer::State::ended ? -peer.error : -FI_EAGAIN;
}

/// `kind`: is the memory the program's again when this descriptor is done, or later?
void Endpoint::lend(Send& send, Send::Kind kind, const Sending& sending) {
    send.kind = kind;
    send.told = sending.told;
    send.context = sending.context;
    send.flags = kind_of(sending.flags);
}

VIP_RETURN Endpoint::post_lent(Connection& connection, Send& send, const Sending& sending) {
    send.header = header_of(Kind::eager, sending);
    return sending.length != 0 ? connection.post_lent(send, sending.bytes, sending.length)
                               : connection.post(send, sizeof(Header));
}

ssize_t Endpoint::send_lent(Connection& connection, const Sending& sending) {
    if (!reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    if (Send* const send = room_for(connection)) {
        lend(*send, Send::Kind::lent, sending);
        code = post_lent(connection, *send, sending);
        if (code == VIP_SUCCESS) {
            ++connection.waited_for;
            watch(connection);
            return 0;
        }
    }
    give_back_send();
    return why_not_posted(connection, code);
}

/// A question behind it, which completes for both: the peer's NIC takes what comes in its order.
ssize_t Endpoint::send_confirmed(Connection& connection, const Sending& sending) {
    if (!reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    Send* const send = room_for(connection);
    if (send != nullptr && connection.under_way() + 2 <= sends_max) {
        send->kind = Send::Kind::copied;
        send->header = header_of(Kind::eager, sending);
        if (sending.must_copy) {
            copy_short(send->copy, sending.bytes, sending.length);
            code = connection.post(*send, sizeof(Header) + sending.length);
        } else {
            code = post_lent(connection, *send, sending);
        }
    }
    if (code == VIP_SUCCESS) {
        Send& question = *connection.take();
        lend(question, Send::Kind::lent, sending);
        code = connection.post_question(question);
        if (code == VIP_SUCCESS) {
            ++connection.waited_for;
            watch(connection);
            return 0;
        }
        fail(connection);  // the message is out, and nobody would tell of it
    }
    give_back_send();
    return why_not_posted(connection, code);
}

// Long messages ---------------------------------------------------------------------------------

/// nullptr: no memory.
Outgoing* Endpoint::take_outgoing(void* context, std::uint64_t flags, bool told) {
    if (free_outgoing_ == nullptr && guarded([&] {
                                         const auto place =
                                             static_cast<std::uint32_t>(outgoing_.size());
                                         outgoing_.emplace_back().place = place;
                                         free_outgoing_ = &outgoing_.back();
                                         return 0;
                                     }) != 0)
        return nullptr;
    Outgoing* const taken = free_outgoing_;
    free_outgoing_ = taken->next;
    taken->is_used = true;
    taken->context = context;
    taken->flags = flags;
    taken->told = told;
    taken->connection = nullptr;
    taken->is_atomic = false;
    return taken;
}

ssize_t Endpoint::send_offer(Connection& connection, const Sending& sending) {
    if (sending.length > message_size_max) return -FI_EMSGSIZE;
    if (!reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    Send* const send = room_for(connection);
    Outgoing* const outgoing =
        send != nullptr ? take_outgoing(sending.context, kind_of(sending.flags), sending.told)
                        : nullptr;
    if (outgoing != nullptr) {
        outgoing->region = {reinterpret_cast<std::uintptr_t>(sending.bytes), sending.length, false,
                            true, 0};
        code = domain_.nic().register_memory(outgoing->region);
    }
    if (code == VIP_SUCCESS) {
        outgoing->connection = &connection;
        send->kind = Send::Kind::copied;
        send->header = header_of(Kind::offer, sending);
        const Offer offer{sending.length, outgoing->region.begin, outgoing->cookie(),
                          outgoing->region.handle, 0};
        std::memcpy(send->copy, &offer, sizeof offer);
        code = connection.post(*send, sizeof(Header) + sizeof offer);
        if (code == VIP_SUCCESS) return 0;
        domain_.nic().release(outgoing->region);
    }
    if (outgoing != nullptr) put_back(*outgoing);
    give_back_send();
    return why_not_posted(connection, code);
}

void Endpoint::put_back(Outgoing& outgoing) {
    outgoing.is_used = false;
    ++outgoing.generation;
    outgoing.next = std::exchange(free_outgoing_, &outgoing);
}

/// The peer has no more to do with it.
void Endpoint::take_back(Outgoing& outgoing) {
    if (outgoing.connection == nullptr) return;
    if (outgoing.is_atomic)
        --outgoing.connection->atomics;
    else
        domain_.nic().release(outgoing.region);
}

void Endpoint::finish(Outgoing& outgoing, int error) {
    take_back(outgoing);
    tell_done(outgoing.context, outgoing.flags, outgoing.told, error);
    put_back(outgoing);
}

/// What the peer was sent by that name. nullptr: nothing of that kind.
Outgoing* Endpoint::find_outgoing(Connection& connection, std::uint64_t cookie, bool is_atomic) {
    const auto place = static_cast<std::uint32_t>(cookie);
    if (place >= outgoing_.size()) return nullptr;
    Outgoing& outgoing = outgoing_[place];
    const bool is_that = outgoing.is_used && outgoing.cookie() == cookie &&
                         outgoing.connection == &connection && outgoing.is_atomic == is_atomic;
    return is_that ? &outgoing : nullptr;
}

/// The peer says that it is done with it; it may say so of its own ones alone.
void Endpoint::finish_named(Connection& connection, std::uint64_t cookie) {
    if (Outgoing* const outgoing = find_outgoing(connection, cookie, false))
        return finish(*outgoing, 0);
    FI_WARN(&provider, FI_LOG_EP_DATA, "a peer ends what it was not sent\n");
    fail(connection);
}

// To ourselves ----------------------------------------------------------------------------------

/// An unexpected message: a copy, or the program's memory until it is met.
Message* Endpoint::message_to_self(Peer& peer, const Sending& sending, bool copies) {
    const std::size_t copied = copies ? sending.length : 0;
    void* const memory = std::malloc(message_memory(copied));
    if (memory == nullptr) return nullptr;
    Message& message = *new (memory) Message;
    message.peer = &peer;
    message.header = header_of(Kind::eager, sending);
    message.length = sending.length;
    message.bytes = static_cast<const std::byte*>(sending.bytes);
    if (!copies) {
        message.sender = take_outgoing(sending.context, kind_of(sending.flags), sending.told);
        if (message.sender != nullptr) return &message;
        std::free(memory);
        return nullptr;
    }
    if (copied != 0) std::memcpy(&message + 1, sending.bytes, copied);
    message.bytes = reinterpret_cast<std::byte*>(&message + 1);
    return &message;
}

ssize_t Endpoint::send_to_self(Peer& peer, const Sending& sending) {
    // Done without its receive where one to another endpoint would be.
    const bool copies = sending.length <= std::max(inject_max, eager_size_to_self_);
    const bool reserved = sending.told || !copies;
    if (reserved && !reserve_send()) return -FI_EAGAIN;
    Matching& among = matching((sending.flags & flag::tagged) != 0);
    Receive* receive = among.take_receive(&peer, sending.tag);
    if (receive != nullptr && receive->takes_many) {
        receive = part_of(*receive, among, sending.length);
        if (receive == nullptr) {
            if (reserved) give_back_send();
            return -FI_EAGAIN;
        }
    }
    if (receive != nullptr) {
        deliver(*receive, peer, header_of(Kind::eager, sending),
                static_cast<const std::byte*>(sending.bytes), sending.length);
    } else {
        Message* const message = message_to_self(peer, sending, copies);
        if (message == nullptr) {
            if (reserved) give_back_send();
            return -FI_EAGAIN;
        }
        among.unexpected.push(*message);
        if (!copies) return 0;
    }
    count_send(false);
    if (sending.told)
        tell_send(sent(sending));
    else if (reserved)
        give_back_send();
    look_in_turn();
    return 0;
}

}  // namespace via::fabric::rdm
