// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: connections that end, and what was to go over them.
#include <chrono>
#include <thread>

#include "rdm/fast_path.hpp"

namespace via::fabric::rdm {

void Endpoint::end_failed() {
    while (Connection* const connection = connections_.take_failed())
        end(*connection, FI_ECONNRESET);
}

/// What has come is still delivered; all else that was to go over it fails.
void Endpoint::end(Connection& connection, int error) {
    if (connection.has_ended) return;
    connection.has_ended = true;
    Peer& peer = connection.peer();
    FI_INFO(&provider, FI_LOG_EP_CTRL, "the connection to port %u ended\n",
            static_cast<unsigned>(port_of(peer.address)));
    connections_.forget(connection);
    VipDisconnect(connection.vi());
    drain(connection);
    // Nobody may pull any more what the program gets back.
    connection.lines.close();
    pulls_.fail_all(connection, error);
    long_messages_.finish_all(connection, error);
    if (peer.connection == &connection) {
        peer.connection = nullptr;
        // Who is not known by a number now is another one when it is: ports are used again.
        peer.state =
            peers_.number_of(peer) == FI_ADDR_NOTAVAIL ? Peer::State::unknown : Peer::State::ended;
        peer.error = error;
        receives_.fail_all_from(peer, error);
    }
    receive_queues_.give_back(connection.queue());
    connection.close();
    if (connection.held == 0) connections_.free(connection);
}

/// Takes all descriptors off that are left, so that what came before the end is not lost.
void Endpoint::drain(Connection& connection) {
    sends_.reap(connection);
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

/// Messages that were copied are done for the program, so they should not get lost with us.
void Endpoint::linger() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(500);
    const auto is_idle = [&] {
        const Domain::Guard guard(domain_);
        bool idle = true;
        connections_.for_each([&](Connection& connection) {
            if (connection.has_ended) return;
            sends_.reap(connection);
            pulls_.go_on(connection);
            atomics_.send_answers(connection);
            idle = idle && connection.under_way() == 0;
        });
        end_failed();
        return idle;
    };
    while (!is_idle() && Clock::now() < end) std::this_thread::yield();
}

}  // namespace via::fabric::rdm
