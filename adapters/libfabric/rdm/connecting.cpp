// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: peers, and connections to them when they are first needed.
#include <algorithm>
#include <thread>

#include "info.hpp"
#include "rdm/endpoint.hpp"

namespace via::fabric::rdm {

// Peers -----------------------------------------------------------------------------------------

/// nullptr: the address vector knows no such number, there is no memory, or it is not sure yet who
/// that is.
Peer* Endpoint::find_peer(fi_addr_t number) {
    const sockaddr_in* const address = addresses_ != nullptr ? addresses_->find(number) : nullptr;
    if (address == nullptr) return nullptr;
    Peer* found = nullptr;
    guarded([&] {
        // Who had that name before may have ended, unseen so far.
        if (peers_.contains(name_of(*address))) progress();
        Peer& peer = peer_named(*address);
        // Older than the number, so it may be over, and somebody else there, though nobody told us.
        if (peer.connection != nullptr &&
            addresses_->is_newer(number, peer.connection->there_since)) {
            ask_whether_there(*peer.connection);
            return 0;
        }
        if (peer.number == FI_ADDR_NOTAVAIL) peer.number = number;
        found = place_of(number) = &peer;
        return 0;
    });
    return found;
}

ssize_t Endpoint::no_peer(fi_addr_t number) const {
    return addresses_->find(number) == nullptr ? -FI_EINVAL : -FI_EAGAIN;
}

void Endpoint::ask_whether_there(Connection& connection) {
    if (connection.is_asked) return;
    Send* const send = connection.take();
    if (send == nullptr) return;  // the next one who wonders asks
    send->kind = Send::Kind::question;
    const VIP_RETURN code = connection.post_question(*send);
    if (code == VIP_SUCCESS) {
        connection.is_asked = true;
        connection.asked_at = addresses_->now();
        ++connection.waited_for;
        watch(connection);
    } else if (code != VIP_ERROR_RESOURCE) {
        fail(connection);
    }
}

Peer*& Endpoint::place_of(fi_addr_t number) {
    if (by_number_.size() <= number) by_number_.resize(number + 1);
    return by_number_[number];
}

/// Who has that name now.
Peer& Endpoint::peer_named(const sockaddr_in& address) {
    std::unique_ptr<Peer>& known = peers_[name_of(address)];
    if (known == nullptr || has_successor(*known)) {
        auto fresh = std::make_unique<Peer>();
        fresh->name = name_of(address);
        fresh->address = address;
        fresh->is_self = fresh->name == name_of(listener_->address());
        if (known != nullptr) {
            fresh->incarnation = known->incarnation;  // it may not be that one itself
            if (known->number != FI_ADDR_NOTAVAIL) place_of(known->number) = known.get();
            former_.push_back(std::move(known));
        }
        known = std::move(fresh);
    }
    return *known;
}

/// The program knows the name of one that ended by a number that was not used yet, so that is
/// another one: ports are used again. The former keeps its number, its end and its messages.
bool Endpoint::has_successor(const Peer& peer) const {
    if (peer.state != Peer::State::ended) return false;
    const fi_addr_t latest = addresses_->number_of(peer.name);
    return latest != FI_ADDR_NOTAVAIL && latest != peer.number &&
           (latest >= by_number_.size() || by_number_[latest] == nullptr);
}

fi_addr_t Endpoint::find_number(Peer& peer) {
    return peer.number = addresses_->number_of(peer.name);
}

void Endpoint::forget(fi_addr_t number) {
    if (number >= by_number_.size() || by_number_[number] == nullptr) return;
    Peer& peer = *by_number_[number];
    by_number_[number] = nullptr;
    if (peer.number != number) return;
    peer.number = FI_ADDR_NOTAVAIL;
    // Who is inserted again by that address may be another one.
    if (peer.state == Peer::State::ended) peer.state = Peer::State::unknown;
}

// Asking ----------------------------------------------------------------------------------------

/// Nobody need read a completion queue meanwhile.
ssize_t Endpoint::not_connected(Peer& peer) {
    progress();
    if (peer.state == Peer::State::ended) return -peer.error;
    if (peer.state == Peer::State::refused) {
        peer.state = Peer::State::unknown;
        return -peer.error;
    }
    if (peer.state == Peer::State::unknown) {
        if (const int error = ask(peer)) return error;
    } else {
        // Who asks again at once keeps the processor from those that connect, the peer among them.
        domain_.rest();
    }
    return -FI_EAGAIN;
}

Hello Endpoint::hello() const {
    Hello hello;
    hello.port = port_of(listener_->address());
    hello.packet = packet_max;
    hello.incarnation = incarnation_;
    return hello;
}

bool Endpoint::wants_lines(const Peer& peer) const {
    const auto asked = static_cast<std::size_t>(std::ranges::count_if(
        attempts_, [](const auto& attempt) { return attempt->asks_for_lines(); }));
    return !waits() && stores_are_wanted() && lined_.size() + asked < lines_max &&
           domain_.nic().has_shared_memory_to(peer.address);
}

int Endpoint::make_connection(Peer& peer, const VIP_VI_ATTRIBUTES* of_requester,
                              std::unique_ptr<Connection>& connection) {
    return guarded([&] {
        // What is told of it later shall need no memory.
        const std::size_t all = connections_.size() + attempts_.size() + 1;
        watched_.reserve(all);
        failed_.reserve(all);
        connections_.reserve(all);
        direct_.reserve(all);
        lined_.reserve(all);
        VIP_CQ_HANDLE queue = nullptr;
        if (!reserve_receives(queue)) return -FI_ENOMEM;
        const int error =
            Connection::open(domain_.nic(), peer, queue, waits(), of_requester, connection);
        if (error != 0) give_back_receives(queue);
        return error;
    });
}

int Endpoint::ask(Peer& peer) {
    return guarded([&] {
        std::unique_ptr<Connection> connection;
        if (const int error = make_connection(peer, nullptr, connection)) return error;
        connection->is_asking = true;
        const VIP_CQ_HANDLE queue = connection->queue();
        Hello asks = hello();
        asks.wants_lines = wants_lines(peer) ? 1 : 0;
        try {
            attempts_.push_back(std::make_unique<Attempt>(domain_.nic(), peer,
                                                          std::move(connection), asks, mailbox_));
        } catch (...) {
            give_back_receives(queue);
            throw;
        }
        try {
            domain_.fabric().connector().start(*attempts_.back());
        } catch (...) {
            attempts_.pop_back();
            give_back_receives(queue);
            throw;
        }
        peer.state = Peer::State::asking;
        peer.attempt = attempts_.back().get();
        return 0;
    });
}

void Endpoint::connected(Peer& peer, std::unique_ptr<Connection> connection,
                         std::uint64_t incarnation) {
    peer.state = Peer::State::connected;
    peer.connection = connection.get();
    peer.attempt = nullptr;
    peer.incarnation = incarnation;
    connection->there_since = addresses_->now();
    if (connection->queue() == nullptr) direct_.push_back(connection.get());
    if (connection->lines.are_open()) {
        lined_.push_back(connection.get());
        if (lined_.size() >= std::thread::hardware_concurrency()) {
            patience_most_ = patience_ = 0;
            fetches_at_once_ = domain_.nic().may_fetch() && one_copy_is_wanted(true);
        }
    }
    connections_.push_back(std::move(connection));
    FI_INFO(&provider, FI_LOG_EP_CTRL, "connected to port %u%s\n",
            static_cast<unsigned>(port_of(peer.address)),
            peer.connection->lines.are_open() ? ", the shortest messages by stores" : "");
}

/// An attempt came to its end: there is a connection, or the peer preferred its own request, or
/// there is nobody.
void Endpoint::answered(Attempt& attempt) {
    Peer& peer = attempt.peer;
    const auto place = std::ranges::find(attempts_, &attempt, &std::unique_ptr<Attempt>::get);
    const std::unique_ptr<Attempt> owned = std::move(*place);
    attempts_.erase(place);
    std::unique_ptr<Connection> connection = std::move(owned->connection);
    connection->is_asking = false;
    const bool good = owned->code == VIP_SUCCESS && owned->reply.magic != 0 &&
                      owned->reply.packet == packet_max && peer.attempt == &attempt;
    if (good) {
        const bool is_broken = connection->is_broken;
        Connection& now = *connection;
        now.lines.open();
        connected(peer, std::move(connection), owned->reply.incarnation);
        if (is_broken) fail(now);
        return;
    }
    if (owned->code == VIP_SUCCESS) {  // the program may have messages of it already
        connections_.push_back(std::move(connection));
        end(*connections_.back(), FI_ECONNREFUSED);
    } else {
        give_back_receives(connection->queue());
    }
    if (peer.attempt != &attempt) return;  // the other way was faster
    peer.attempt = nullptr;
    peer.state = Peer::State::refused;
    peer.error = owned->code == VIP_SUCCESS ? FI_ECONNREFUSED : error_of(owned->code);
    FI_INFO(&provider, FI_LOG_EP_CTRL, "no connection: %s\n", ViaReturnText(owned->code));
    fail_receives(tagged_, peer, peer.error);
    fail_receives(plain_, peer, peer.error);
}

// Answering -------------------------------------------------------------------------------------

void Endpoint::read_mail() noexcept {
    std::vector<Mailbox::Request> requests;
    std::vector<Attempt*> all_answered;
    // For want of memory it is read the next time.
    if (guarded([&] {
            mailbox_.take(requests, all_answered);
            return 0;
        }) != 0)
        return;
    for (Attempt* attempt : all_answered) answered(*attempt);
    for (Mailbox::Request& request : requests)
        guarded([&] {
            answer(request);
            return 0;
        });
}

void Endpoint::reject(Mailbox::Request& request, bool crossed) {
    Hello reply = hello();
    reply.crossed = crossed ? 1 : 0;
    request.request->reject(&reply, sizeof reply);
}

/// Of two requests that cross, the one of the endpoint with the lower name stands.
void Endpoint::answer(Mailbox::Request& request) {
    sockaddr_in address = request.request->peer;
    address.sin_port = htons(request.hello.port);
    Peer& peer = peer_named(address);
    const bool is_same = request.hello.incarnation == peer.incarnation;
    switch (peer.state) {
        case Peer::State::asking:
            if (peer.name > name_of(listener_->address())) return reject(request, true);
            break;
        case Peer::State::connected:
            // It asks again, and may be let in when the present one has ended. As long as that one
            // lives it keeps its name, whoever else claims it.
            if (!is_same) ask_whether_there(*peer.connection);
            return reject(request, true);
        case Peer::State::refused:
        case Peer::State::ended:
        case Peer::State::unknown:
            if (is_same) return reject(request, false);
            break;
    }
    if (!peer.is_self) accept(peer, request);
}

void Endpoint::accept(Peer& peer, Mailbox::Request& request) {
    std::unique_ptr<Connection> connection;
    if (make_connection(peer, &request.request->attributes, connection) != 0)
        return reject(request, false);
    Hello reply = hello();
    if (request.hello.wants_lines == 1 && wants_lines(peer)) connection->make_lines(reply);
    const VIP_RETURN code = request.request->accept(connection->vi(), &reply, sizeof reply);
    if (code != VIP_SUCCESS) {  // it has given up
        FI_INFO(&provider, FI_LOG_EP_CTRL, "accepting: %s\n", ViaReturnText(code));
        give_back_receives(connection->queue());
        return;
    }
    // Ours that is under way is answered, by a refusal if nothing else, and found to be late.
    Attempt* const ours = std::exchange(peer.attempt, nullptr);
    connected(peer, std::move(connection), request.hello.incarnation);
    if (ours != nullptr) ours->interrupt();
}

}  // namespace via::fabric::rdm
