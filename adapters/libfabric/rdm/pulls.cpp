// SPDX-License-Identifier: Apache-2.0
#include "rdm/pulls.hpp"

#include "info.hpp"

namespace via::fabric::rdm {

namespace {

constexpr std::uint64_t at_once_max = 1 << 20;  ///< bytes

/// What there is room for.
std::size_t wanted_of(const Receive& receive) {
    return std::min<std::uint64_t>(receive.room, receive.offer.length);
}

}  // namespace

Pulls::Pulls(Nic& nic, Completions& completions, Connections& connections, Receives& receives)
    : completions_(completions),
      connections_(connections),
      receives_(receives),
      at_once_(nic.may_pull() && one_copy_is_wanted(false)),
      at_once_if_crowded_(nic.may_pull() && one_copy_is_wanted(true)),
      eager_size_at_once_(eager_size_one_copy()) {}

/// From here on the connection holds the receive.
void Pulls::begin(Receive& receive, Connection& connection, const Header& header,
                  const Offer& offer) {
    if (connection.has_ended) {
        receives_.fail(receive, FI_ECONNRESET);
        return;
    }
    receive.connection = &connection;
    receive.header = header;
    receive.offer = offer;
    receive.pulled = 0;
    ++connection.held;
    if (receive.room == 0 || pull_at_once(receive, connection)) {
        receives_.tell(completions_, receive, connection.peer(), header, offer.length);
        receive.done = true;
    }
    connection.waiting.push(receive);
    connections_.watch(connection);
    go_on(connection);
}

/// From the sender's memory, so that it need not get a processor to answer. Pieces of longer ones
/// come while it runs, and do not keep us for that long.
bool Pulls::pull_at_once(const Receive& receive, Connection& connection) const {
    if (!pulls_at_once() || receive.offer.length > at_once_max) return false;
    return connection.lines.pull(receive.buffer, receive.offer.address, wanted_of(receive));
}

void Pulls::decline(Connection& connection, const Offer& offer) {
    Receive* const receive = receives_.make_bare();
    if (receive == nullptr) return connections_.fail(connection);
    receive->done = true;
    receive->offer = offer;
    receive->connection = &connection;
    ++connection.held;
    connection.waiting.push(*receive);
    connections_.watch(connection);
    go_on(connection);
}

void Pulls::came(Connection& connection, Receive& receive, std::size_t length, bool failed) {
    if (failed) {
        --connection.held;
        receives_.fail(receive, FI_ECONNRESET);
        return;
    }
    receive.pulled += length;
    if (receive.pulled == wanted_of(receive)) {
        receives_.tell(completions_, receive, connection.peer(), receive.header,
                       receive.offer.length);
        receive.done = true;
    }
    connection.waiting.push(receive);
}

/// The next piece of what is pulled, or the word that all of it was.
VIP_RETURN Pulls::post_next(Connection& connection, Send& send, Receive& receive) const {
    if (receive.done) {
        send.kind = Send::Kind::copied;
        send.header = {receive.offer.cookie, 0, Kind::finished, 0, 0};
        return connection.post(send, sizeof(Header));
    }
    send.kind = Send::Kind::pull;
    send.receive = &receive;
    send.length = std::min(wanted_of(receive) - receive.pulled, connection.transfer_size());
    return connection.post_pull(send, receive.buffer + receive.pulled,
                                receive.offer.address + receive.pulled, receive.offer.key,
                                send.length);
}

void Pulls::go_on(Connection& connection) {
    while (!connection.waiting.empty() && !connection.has_ended) {
        Send* const send = connection.take();
        if (send == nullptr) return;
        Receive& receive = *connection.waiting.first();
        const VIP_RETURN code = post_next(connection, *send, receive);
        if (code != VIP_SUCCESS) {
            if (code != VIP_ERROR_RESOURCE) connections_.fail(connection);
            return;
        }
        connection.waiting.take_first();
        if (receive.done) {
            --connection.held;
            receives_.give_back(receive);
        } else {
            ++connection.waited_for;
        }
    }
}

void Pulls::fail_all(Connection& connection, int error) {
    while (Receive* receive = connection.waiting.take_first()) {
        --connection.held;
        if (receive->done)
            receives_.give_back(*receive);
        else
            receives_.fail(*receive, error);
    }
}

}  // namespace via::fabric::rdm
