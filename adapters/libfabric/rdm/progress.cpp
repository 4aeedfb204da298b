// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: what has come, and what is done.
#include <utility>

#include "rdm/fast_path.hpp"

namespace via::fabric::rdm {
void Endpoint::progress() {
    if (connecting_.has_mail()) [[unlikely]]
        connecting_.read_mail();
    take_receives();
    connections_.look_at_watched([this](Connection& connection) { return look_at(connection); });
    if (connections_.any_failed()) [[unlikely]]
        end_failed();
}

// Receives --------------------------------------------------------------------------------------

/// False: nothing lies there.
bool Endpoint::take_next_stored(Connection& connection) {
    if (!connection.lines.has_next()) return false;
    arrived_by_stores(connection);
    return true;
}

/// A message over the VI has that number: those before it were stored, or the peer breaks the
/// rules.
bool Endpoint::take_stored_before(Connection& connection, std::uint16_t number) {
    while (connection.lines.came() != number)
        if (!take_next_stored(connection)) return false;
    return true;
}

/// One look at the NIC, which tells of all connections.
void Endpoint::take_receives() {
    LinedConnections& lined = connections_.lined();
    const auto by_stores = [this](Connection& from) { arrived_by_stores(from); };
    if (!lined.empty() && lined.nic_may_wait(take_stored() || lined.take_awaited(by_stores)))
        return;
    std::vector<Connection*>& direct = connections_.direct();
    std::uint32_t taken = 0;
    std::size_t index = 0;
    // Who has no receive posted does not look.
    if (!receive_queues_.are_used() && !direct.empty() && direct.front()->posted() != 0) [[likely]]
        taken = take_from(*direct[index++]);
    else
        look_at_queues();
    for (; index < direct.size(); ++index) {
        if (!direct[index]->has_received()) continue;
        taken += take_from(*direct[index]);
        std::swap(direct.front(), direct[index]);  // likely it is the next one, too
    }
    if (taken == 0)
        for (Connection* connection : direct) connection->post_some();
}

std::uint32_t Endpoint::take_from(Connection& connection) {
    VIP_DESCRIPTOR* done[batch];
    bool failed = false;
    const VIP_UINT32 taken = connection.take_received(done, batch, failed);
    for (VIP_UINT32 index = 0; index < taken; ++index) {
        if (failed && index + 1 == taken) [[unlikely]]
            connections_.fail(connection);
        else
            arrived(reinterpret_cast<Slot&>(*done[index]), done[index]->CS.Length);
    }
    return taken;
}

void Endpoint::look_at_queues() {
    for (const ReceiveQueues::Part& part : receive_queues_.parts()) {
        VIA_COMPLETION entries[batch];
        VIP_UINT32 taken = 0;
        if (ViaCQDoneMany(part.queue, entries, batch, &taken) != VIP_SUCCESS) continue;
        for (VIP_UINT32 index = 0; index < taken; ++index) {
            if (entries[index].RecvQueue != VIP_TRUE) {
                sends_.take_done(entries[index].ViHandle);
                continue;
            }
            VIP_DESCRIPTOR* descriptor = nullptr;
            VipRecvDone(entries[index].ViHandle, &descriptor);
            if (descriptor == nullptr) continue;  // of a connection that ended meanwhile
            Slot& slot = reinterpret_cast<Slot&>(*descriptor);
            slot.connection->taken_one();
            if ((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != 0) [[unlikely]]
                connections_.fail(*slot.connection);
            else
                arrived(slot, descriptor->CS.Length);
        }
    }
}

/// Not a message that lies here.
void Endpoint::arrived_other(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    if (header.kind == Kind::offer && length == sizeof(Offer))
        return unexpected_.arrived_offer(slot, header);
    if (header.kind == Kind::written && length == 0) return arrived_written(slot, header);
    if (header.kind == Kind::moved && length == 0) return arrived_moved(slot, header);
    if (header.kind == Kind::atomic) return atomics_.arrived(slot, header, length);
    if (header.kind == Kind::answer) return atomics_.answer_arrived(slot, header, length);
    if (header.kind != Kind::finished || length != 0) return connections_.fail_wrong(connection);
    // It may say so of its own ones alone.
    if (!long_messages_.finish_named(connection, header.tag)) {
        FI_WARN(&provider, FI_LOG_EP_DATA, "a peer ends what it was not sent\n");
        connections_.fail(connection);
    }
    connection.release(slot);
}

void Endpoint::arrived_written(Slot& slot, const Header& header) {
    Connection& connection = *slot.connection;
    if (!told_of_writes_) return connections_.fail_wrong(connection);
    if (!completions_.tell_written(peers_.number_of(connection.peer()), header.tag, header.data))
        return connections_.fail(connection);
    connection.release(slot);
}

/// Only where the program counts, as it said when they connected.
void Endpoint::arrived_moved(Slot& slot, const Header& header) {
    Connection& connection = *slot.connection;
    if (!completions_.counts_moves() || header.data > 1) return connections_.fail_wrong(connection);
    completions_.count_moved(header.data == 1);
    connection.release(slot);
}

// Sends -----------------------------------------------------------------------------------------

/// False: nobody waits for anything any more. The look for receives was one for what is done, too.
bool Endpoint::look_at(Connection& connection) {
    if (connection.has_done() && !receive_queues_.waits()) sends_.reap(connection);
    pulls_.go_on(connection);
    if (!connection.answers.empty()) [[unlikely]]
        atomics_.send_answers(connection);
    return connection.waited_for != 0 || !connection.waiting.empty() || !connection.answers.empty();
}

}  // namespace via::fabric::rdm
