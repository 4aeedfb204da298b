// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: connections that end, and what was to go over them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "rdm/short_way.hpp"

namespace via::fabric::rdm {

/// To be ended when nobody up the stack uses it.
void Endpoint::fail(Connection& connection) {
    if (connection.has_ended || connection.has_failed) return;
    connection.has_failed = true;
    failed_.push_back(&connection);
}

void Endpoint::end_failed() {
    while (!failed_.empty()) {
        Connection& connection = *failed_.back();
        failed_.pop_back();
        if (connection.is_asking) {
            connection.has_failed = false;
            connection.is_broken = true;
        } else {
            end(connection, FI_ECONNRESET);
        }
    }
}

/// What has come is still delivered; all else that was to go over it fails.
void Endpoint::end(Connection& connection, int error) {
    if (connection.has_ended) return;
    connection.has_ended = true;
    Peer& peer = connection.peer();
    FI_INFO(&provider, FI_LOG_EP_CTRL, "the connection to port %u ended\n",
            static_cast<unsigned>(port_of(peer.address)));
    std::erase(failed_, &connection);
    std::erase(watched_, &connection);
    std::erase(direct_, &connection);
    std::erase(lined_, &connection);
    VipDisconnect(connection.vi());
    drain(connection);
    // Nobody may fetch any more what the program gets back.
    connection.lines.close();
    while (Receive* receive = connection.waiting.take_first()) {
        --connection.held;
        if (receive->done)
            receive_pool_.give_back(*receive);
        else
            fail_receive(*receive, error);
    }
    for (Outgoing& outgoing : outgoing_)
        if (outgoing.is_used && outgoing.connection == &connection) finish(outgoing, error);
    if (peer.connection == &connection) {
        peer.connection = nullptr;
        // Who is not known by a number now is another one when it is: ports are used again.
        peer.state =
            number_of(peer) == FI_ADDR_NOTAVAIL ? Peer::State::unknown : Peer::State::ended;
        peer.error = error;
        fail_receives(tagged_, peer, error);
        fail_receives(plain_, peer, error);
    }
    give_back_receives(connection.queue());
    connection.close();
    if (connection.held == 0) free(connection);
}

/// Takes all descriptors off that are left, so that what came before the end is not lost.
void Endpoint::drain(Connection& connection) {
    reap(connection);
    for (;;) {
        VIP_DESCRIPTOR* descriptor = nullptr;
        VipRecvDone(connection.vi(), &descriptor);
        if (descriptor == nullptr) break;
        Slot& slot = reinterpret_cast<Slot&>(*descriptor);
        if ((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) == 0)
            arrived(slot, descriptor->CS.Length);
    }
    // No more than could lie there: the peer could go on for ever.
    for (std::uint32_t left = SharedLines::lines_each; left != 0 && take_next_stored(connection);
         --left) {
    }
}

/// No message that it holds is left.
void Endpoint::free(Connection& connection) {
    const auto place =
        std::ranges::find(connections_, &connection, &std::unique_ptr<Connection>::get);
    if (place != connections_.end()) connections_.erase(place);
}

void Endpoint::fail_receive(Receive& receive, int error) {
    Completion completion;
    completion.context = receive.context;
    completion.flags = FI_RECV | (receive.with_tag ? FI_TAGGED : FI_MSG);
    completion.tag = receive.tag;
    completion.error = error;
    count_receive(true);
    if (receive.of != nullptr) completion.flags |= end_part(*receive.of);
    // The memory of one that takes many is the program's again when its last part is done, too.
    receive.is_used_up = receive.takes_many && receive.parts != 0;
    if (receive.takes_many && !receive.is_used_up) completion.flags |= FI_MULTI_RECV;
    tell_receive(completion);
    if (!receive.is_used_up) receive_pool_.give_back(receive);
}

/// Those that nobody else can satisfy.
void Endpoint::fail_receives(Matching& matching, const Peer& peer, int error) {
    while (Receive* receive =
               matching.posted.take([&](const Receive& posted) { return posted.from == &peer; }))
        fail_receive(*receive, error);
}

/// Messages that were copied are done for the program, so they should not get lost with us.
void Endpoint::linger() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(500);
    const auto is_idle = [&] {
        const Domain::Guard guard(domain_);
        bool idle = true;
        for (const auto& connection : connections_) {
            if (connection->has_ended) continue;
            reap(*connection);
            send_waiting(*connection);
            send_answers(*connection);
            idle = idle && connection->under_way() == 0;
        }
        end_failed();
        return idle;
    };
    while (!is_idle() && Clock::now() < end) std::this_thread::yield();
}

/// Without a word, for the endpoint is closed.
void Endpoint::discard_all() {
    for (Outgoing& outgoing : outgoing_)
        if (outgoing.is_used) take_back(outgoing);
    const auto free_copy = [](Message* message) {
        if (message->slot == nullptr) std::free(message);
    };
    for (Matching* one : {&tagged_, &plain_})
        while (Message* message = one->unexpected.take_first()) free_copy(message);
    for (const auto& claim : claimed_) free_copy(claim.second);
}

}  // namespace via::fabric::rdm
