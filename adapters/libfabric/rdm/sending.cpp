// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: what the program asks for and is not done at once. Short messages are
// copied, longer ones lent, long ones offered.
#include <cstring>

#include "info.hpp"
#include "rdm/fast_path.hpp"

namespace via::fabric::rdm {

// Peers -----------------------------------------------------------------------------------------

/// nullptr: the address vector knows no such number, there is no memory, or it is not sure yet who
/// that is.
Peer* Endpoint::find_peer(fi_addr_t number) {
    const AddressVector* const addresses = peers_.addresses();
    const sockaddr_in* const address = addresses != nullptr ? addresses->find(number) : nullptr;
    if (address == nullptr) return nullptr;
    Peer* found = nullptr;
    guarded([&] {
        // Who had that name before may have ended, unseen so far.
        if (peers_.knows(name_of(*address))) progress();
        Peer& peer = peers_.named(*address, connecting_.own_name());
        // Older than the number, so it may be over, and somebody else there, though nobody told us.
        if (peer.connection != nullptr &&
            addresses->is_newer(number, peer.connection->there_since)) {
            connections_.ask_whether_there(*peer.connection, addresses->now());
            return 0;
        }
        if (peer.number == FI_ADDR_NOTAVAIL) peer.number = number;
        peers_.put(number, peer);
        found = &peer;
        return 0;
    });
    return found;
}

/// 0, or why nothing can come from there. nullptr: from anybody.
int Endpoint::find_source(fi_addr_t from, Peer*& peer) {
    peer = nullptr;
    if (!directed_ || from == FI_ADDR_UNSPEC) return 0;
    peer = peer_at(from);
    return peer == nullptr ? static_cast<int>(peers_.why_none(from)) : 0;
}

/// Nobody need read a completion queue meanwhile.
ssize_t Endpoint::not_connected(Peer& peer) {
    progress();
    if (peer.state == Peer::State::ended) return -peer.error;
    if (peer.state == Peer::State::refused) {
        peer.state = Peer::State::unknown;
        return -peer.error;
    }
    if (peer.state == Peer::State::unknown) {
        if (const int error = connecting_.ask(peer)) return error;
    } else {
        // Who asks again at once keeps the processor from those that connect, the peer among them.
        domain_.yield();
    }
    return -FI_EAGAIN;
}

// Over a connection ----------------------------------------------------------------------------

/// What is posted to one that has failed is flushed, and so looks done.
bool Endpoint::make_room(Connection& connection, std::size_t count) {
    if (receive_queues_.waits()) [[unlikely]]
        look_at_queues();
    else
        sends_.reap(connection);
    return !connection.has_failed && connection.has_room(count);
}

/// The descriptor was not posted: there is no room, or no connection any more. Who only sends again
/// and again, and reads nothing meanwhile, makes progress here: the peer may wait for us as well,
/// or be gone. The connection may have ended when this returns.
ssize_t Endpoint::why_not_posted(Connection& connection, VIP_RETURN code) {
    Peer& peer = connection.peer();
    if (code != VIP_ERROR_RESOURCE) connections_.fail(connection);
    // What is under way needs the peer, which may be waiting for this processor.
    if (connection.is_stuck()) domain_.yield();
    progress();
    return peer.state == Peer::State::ended ? -peer.error : -FI_EAGAIN;
}

template <class Post>
ssize_t Endpoint::start(Connection& connection, std::size_t descriptors, const Post& post) {
    if (!completions_.reserve_send()) return -FI_EAGAIN;
    const bool has_room = connection.has_room(descriptors) || make_room(connection, descriptors);
    const VIP_RETURN code = has_room ? post() : VIP_ERROR_RESOURCE;
    if (code == VIP_SUCCESS) return 0;
    completions_.give_back_send();
    return why_not_posted(connection, code);
}

/// Whatever send() does not do at once. `peer`: nullptr: there is none of that number.
ssize_t Endpoint::send_otherwise(Peer* peer, const Sending& sending) {
    if (peer == nullptr) [[unlikely]]
        return peers_.why_none(sending.to);
    if (sending.must_copy && sending.length > inject_max) return -FI_EMSGSIZE;
    Connection* const connection = peer->connection;
    if (connection == nullptr) [[unlikely]] {
        if (peer->is_self) return to_self(to_self_.send(*peer, sending));
        return not_connected(*peer);
    }
    // An offer is done when it was pulled.
    if (sending.length > pulls_.eager_size_to(*connection) && !sending.must_copy) {
        if (sending.length > message_size_max) return -FI_EMSGSIZE;
        return start(*connection, 1, [&] { return sends_.post_offer(*connection, sending); });
    }
    if (sending.confirmed)
        return start(*connection, 2, [&] { return sends_.post_confirmed(*connection, sending); });
    return start(*connection, 1, [&] { return sends_.post_lent(*connection, sending); });
}

ssize_t Endpoint::move(const Moving& moving) {
    Peer* const peer = peer_at(moving.with);
    if (peer == nullptr) return peers_.why_none(moving.with);
    if (moving.length > (moving.must_copy ? inject_max : message_size_max)) return -FI_EMSGSIZE;
    if (moving.key > UINT32_MAX) return -FI_EINVAL;  // none of ours
    Connection* const connection = peer->connection;
    if (connection == nullptr)
        return peer->is_self ? to_self(to_self_.move(*peer, moving)) : not_connected(*peer);
    const std::size_t descriptors = descriptors_of(*connection, moving);
    if (descriptors > sends_max) return -FI_EMSGSIZE;
    return start(*connection, descriptors, [&] { return sends_.post_move(*connection, moving); });
}

ssize_t Endpoint::atomic(const Atomic& atomic) {
    Peer* const peer = peer_at(atomic.with);
    if (peer == nullptr) return peers_.why_none(atomic.with);
    Connection* const connection = peer->connection;
    if (connection == nullptr)
        return peer->is_self ? to_self(to_self_.atomic(atomic)) : not_connected(*peer);
    return start(*connection, 1, [&] { return atomics_.ask(*connection, atomic); });
}

ssize_t Endpoint::to_self(ssize_t result) {
    if (to_self_.is_look_due()) progress();
    return result;
}

// Receiving -------------------------------------------------------------------------------------

ssize_t Endpoint::receive(void* buffer, std::size_t room, fi_addr_t from, std::uint64_t tag,
                          std::uint64_t ignore, void* context, bool with_tag, bool told) {
    Peer* peer = nullptr;
    if (const int error = find_source(from, peer)) return error;
    return unexpected_.receive(buffer, room, peer, tag, ignore, context, with_tag, told);
}

ssize_t Endpoint::receive_many(void* buffer, std::size_t room, fi_addr_t from, void* context,
                               bool told) {
    Peer* peer = nullptr;
    if (const int error = find_source(from, peer)) return error;
    return unexpected_.receive_many(buffer, room, peer, context, told);
}

ssize_t Endpoint::search(const fi_msg_tagged& message, std::uint64_t flags) {
    if ((flags & FI_PEEK) == 0) return unexpected_.receive_claimed(message, flags);
    Peer* peer = nullptr;
    if (const int error = find_source(message.addr, peer)) return error;
    // Who only asks again and again shall find what has come.
    progress();
    return unexpected_.search(message, peer, flags);
}

}  // namespace via::fabric::rdm
