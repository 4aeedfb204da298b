// SPDX-License-Identifier: Apache-2.0
#include "rdm/connecting.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "info.hpp"

namespace via::fabric::rdm {

namespace {

std::uint64_t new_incarnation() {
    std::random_device source;
    return (std::uint64_t{source()} << 32 | source()) | 1;
}

}  // namespace

Connecting::Connecting(Domain& domain, Peers& peers, Connections& connections,
                       ReceiveQueues& receive_queues, Receives& receives, End end)
    : domain_(domain),
      peers_(peers),
      connections_(connections),
      receive_queues_(receive_queues),
      receives_(receives),
      end_(std::move(end)),
      incarnation_(new_incarnation()),
      listener_(std::make_unique<Listener>(domain.shared_nic())) {}

int Connecting::listen(std::uint16_t port, std::vector<WaitObject*> shown, bool counts_moves) {
    counts_moves_ = counts_moves;
    mailbox_.shown_by(std::move(shown));
    return listener_->listen(port, [this](auto request, auto data, auto length) {
        mailbox_.put_request(std::move(request), data, length);
    });
}

void Connecting::cancel_all() {
    for (const auto& attempt : attempts_) domain_.fabric().connector().cancel(*attempt);
}

// Asking ----------------------------------------------------------------------------------------

Hello Connecting::hello() const {
    Hello hello;
    hello.port = port_of(address());
    hello.packet = packet_max;
    hello.incarnation = incarnation_;
    hello.counts_moves = counts_moves_ ? 1 : 0;
    return hello;
}

bool Connecting::wants_lines(const Peer& peer) const {
    const auto asked = static_cast<std::size_t>(std::ranges::count_if(
        attempts_, [](const auto& attempt) { return attempt->asks_for_lines(); }));
    return !receive_queues_.waits() && stores_are_wanted() &&
           connections_.lined().size() + asked < LinedConnections::lines_max &&
           domain_.nic().has_shared_memory_to(peer.address);
}

int Connecting::make_connection(Peer& peer, const VIP_VI_ATTRIBUTES* of_requester,
                                std::unique_ptr<Connection>& connection) {
    return guarded([&] {
        // What is told of it later shall need no memory.
        connections_.reserve(attempts_.size() + 1);
        VIP_CQ_HANDLE queue = nullptr;
        if (!receive_queues_.reserve(connections_.direct().size(), queue)) return -FI_ENOMEM;
        const int error = Connection::open(domain_.nic(), peer, queue, receive_queues_.waits(),
                                           of_requester, connection);
        if (error != 0) receive_queues_.give_back(queue);
        return error;
    });
}

int Connecting::ask(Peer& peer) {
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
            receive_queues_.give_back(queue);
            throw;
        }
        try {
            domain_.fabric().connector().start(*attempts_.back());
        } catch (...) {
            attempts_.pop_back();
            receive_queues_.give_back(queue);
            throw;
        }
        peer.state = Peer::State::asking;
        peer.attempt = attempts_.back().get();
        return 0;
    });
}

void Connecting::connected(Peer& peer, std::unique_ptr<Connection> connection,
                           const Hello& theirs) {
    peer.state = Peer::State::connected;
    peer.connection = connection.get();
    peer.attempt = nullptr;
    peer.incarnation = theirs.incarnation;
    connection->counts_moves = theirs.counts_moves == 1;
    connection->there_since = peers_.addresses()->now();
    connections_.add_open(std::move(connection));
    FI_INFO(&provider, FI_LOG_EP_CTRL, "connected to port %u%s\n",
            static_cast<unsigned>(port_of(peer.address)),
            peer.connection->lines.are_open() ? ", the shortest messages by stores" : "");
}

/// An attempt came to its end: there is a connection, or the peer preferred its own request, or
/// there is nobody.
void Connecting::answered(Attempt& attempt) {
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
        connected(peer, std::move(connection), owned->reply);
        if (is_broken) connections_.fail(now);
        return;
    }
    if (owned->code == VIP_SUCCESS) {  // the program may have messages of it already
        Connection& refused = *connection;
        connections_.add(std::move(connection));
        end_(refused, FI_ECONNREFUSED);
    } else {
        receive_queues_.give_back(connection->queue());
    }
    if (peer.attempt != &attempt) return;  // the other way was faster
    peer.attempt = nullptr;
    peer.state = Peer::State::refused;
    peer.error = owned->code == VIP_SUCCESS ? FI_ECONNREFUSED : error_of(owned->code);
    FI_INFO(&provider, FI_LOG_EP_CTRL, "no connection: %s\n", ViaReturnText(owned->code));
    receives_.fail_all_from(peer, peer.error);
}

// Answering -------------------------------------------------------------------------------------

void Connecting::read_mail() noexcept {
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

void Connecting::reject(Mailbox::Request& request, bool crossed) {
    Hello reply = hello();
    reply.crossed = crossed ? 1 : 0;
    request.request->reject(&reply, sizeof reply);
}

/// Of two requests that cross, the one of the endpoint with the lower name stands.
void Connecting::answer(Mailbox::Request& request) {
    sockaddr_in address = request.request->peer;
    address.sin_port = htons(request.hello.port);
    Peer& peer = peers_.named(address, own_name());
    const bool is_same = request.hello.incarnation == peer.incarnation;
    switch (peer.state) {
        case Peer::State::asking:
            if (peer.name > own_name()) return reject(request, true);
            break;
        case Peer::State::connected:
            // It asks again, and may be let in when the present one has ended. As long as that one
            // lives it keeps its name, whoever else claims it.
            if (!is_same)
                connections_.ask_whether_there(*peer.connection, peers_.addresses()->now());
            return reject(request, true);
        case Peer::State::refused:
        case Peer::State::ended:
        case Peer::State::unknown:
            if (is_same) return reject(request, false);
            break;
    }
    if (!peer.is_self) accept(peer, request);
}

void Connecting::accept(Peer& peer, Mailbox::Request& request) {
    std::unique_ptr<Connection> connection;
    if (make_connection(peer, &request.request->attributes, connection) != 0)
        return reject(request, false);
    Hello reply = hello();
    if (request.hello.wants_lines == 1 && wants_lines(peer)) connection->make_lines(reply);
    const VIP_RETURN code = request.request->accept(connection->vi(), &reply, sizeof reply);
    if (code != VIP_SUCCESS) {  // it has given up
        FI_INFO(&provider, FI_LOG_EP_CTRL, "accepting: %s\n", ViaReturnText(code));
        receive_queues_.give_back(connection->queue());
        return;
    }
    // Ours that is under way is answered, by a refusal if nothing else, and found to be late.
    Attempt* const ours = std::exchange(peer.attempt, nullptr);
    connected(peer, std::move(connection), request.hello);
    if (ours != nullptr) ours->interrupt();
}

}  // namespace via::fabric::rdm
