// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: what has come, and what is done.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "info.hpp"
#include "rdm/short_way.hpp"

namespace via::fabric::rdm {
namespace {

constexpr VIP_UINT32 batch = 16;

/// Between two looks at memory that another processor writes.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

void Endpoint::progress() {
    if (mailbox_.has_mail()) [[unlikely]]
        read_mail();
    take_receives();
    for (std::size_t index = 0; index < watched_.size();) {
        Connection& connection = *watched_[index];
        if (look_at(connection)) {
            ++index;
            continue;
        }
        connection.is_watched = false;
        watched_[index] = watched_.back();
        watched_.pop_back();
    }
    if (!failed_.empty()) [[unlikely]]
        end_failed();
}

// Receives --------------------------------------------------------------------------------------

/// The next message is likely one by stores, too, and a look at the lines costs less than the way
/// back to the program and here again. Where none came it is not waited for that long again.
bool Endpoint::take_awaited() {
    std::uint32_t left = std::exchange(looks_at_lines_, 0);
    if (left == 0 || lined_.front()->lines.is_at_end_of_row()) return false;
    for (; left != 0; --left) {
        pause();
        if (take_stored()) {
            patience_ = patience_most_;
            return true;
        }
    }
    patience_ = std::min(std::max(patience_ / 2, patience_min), patience_most_);
    return false;
}

/// Of those that not each look is at; one that sends takes the place of one that each look is at.
bool Endpoint::take_stored_in_turn() {
    bool found = false;
    const std::size_t others = lined_.size() - lines_each_look;
    for (std::size_t count = std::min(others, lines_in_turn); count != 0; --count) {
        Connection*& at = lined_[lines_each_look + next_in_turn_++ % others];
        if (!take_stored_of(*at)) continue;
        std::swap(lined_[lines_each_look - 1], at);
        found = true;
    }
    return found;
}

/// The lines were looked at. Each look at the NIC puts off the next message by stores, but others
/// shall not wait for one that stores again and again.
bool Endpoint::nic_may_wait(bool found) {
    if (found && ++looks_without_nic_ < looks_without_nic_max) return true;
    looks_without_nic_ = 0;
    return false;
}

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
    if (!lined_.empty() && nic_may_wait(take_stored() || take_awaited())) return;
    std::uint32_t taken = 0;
    std::size_t index = 0;
    // Who has no receive posted does not look.
    if (queued_ == 0 && !direct_.empty() && direct_.front()->posted() != 0) [[likely]]
        taken = take_from(*direct_[index++]);
    else
        look_at_queues();
    for (; index < direct_.size(); ++index) {
        if (!direct_[index]->has_received()) continue;
        taken += take_from(*direct_[index]);
        std::swap(direct_.front(), direct_[index]);  // likely it is the next one, too
    }
    if (taken == 0)
        for (Connection* connection : direct_) connection->post_some();
}

std::uint32_t Endpoint::take_from(Connection& connection) {
    VIP_DESCRIPTOR* done[batch];
    bool failed = false;
    const VIP_UINT32 taken = connection.take_received(done, batch, failed);
    for (VIP_UINT32 index = 0; index < taken; ++index) {
        if (failed && index + 1 == taken) [[unlikely]]
            fail(connection);
        else
            arrived(reinterpret_cast<Slot&>(*done[index]), done[index]->CS.Length);
    }
    return taken;
}

void Endpoint::look_at_queues() {
    for (const Part& part : parts_) {
        VIA_COMPLETION entries[batch];
        VIP_UINT32 taken = 0;
        if (ViaCQDoneMany(part.queue, entries, batch, &taken) != VIP_SUCCESS) continue;
        for (VIP_UINT32 index = 0; index < taken; ++index) {
            if (entries[index].RecvQueue != VIP_TRUE) {
                take_send(entries[index].ViHandle);
                continue;
            }
            VIP_DESCRIPTOR* descriptor = nullptr;
            VipRecvDone(entries[index].ViHandle, &descriptor);
            if (descriptor == nullptr) continue;  // of a connection that ended meanwhile
            Slot& slot = reinterpret_cast<Slot&>(*descriptor);
            slot.connection->taken_one();
            if ((descriptor->CS.Status & VIP_STATUS_ERROR_MASK) != 0) [[unlikely]]
                fail(*slot.connection);
            else
                arrived(slot, descriptor->CS.Length);
        }
    }
}

/// One that is done; only where a program may sleep.
void Endpoint::take_send(VIP_VI_HANDLE vi) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    const VIP_RETURN code = VipSendDone(vi, &descriptor);
    if (descriptor == nullptr) return;  // of a connection that ended meanwhile
    const Send& send = reinterpret_cast<const Send&>(*descriptor);
    Connection& connection = *send.connection;
    connection.give_back(1);
    complete(connection, send, code != VIP_SUCCESS);
    if (code != VIP_SUCCESS) fail(connection);
}

/// Whatever a peer says wrongly ends the connection to it.
void Endpoint::arrived_wrong(Connection& connection) {
    FI_WARN(&provider, FI_LOG_EP_DATA, "a peer sent what is no message\n");
    fail(connection);
}

/// Not a message that lies here.
void Endpoint::arrived_other(Slot& slot, const Header& header, std::size_t length) {
    if (header.kind == Kind::offer && length == sizeof(Offer)) return arrived_offer(slot, header);
    if (header.kind == Kind::written && length == 0) return arrived_written(slot, header);
    if (header.kind == Kind::atomic) return arrived_atomic(slot, header, length);
    if (header.kind == Kind::answer) return arrived_answer(slot, header, length);
    if (header.kind != Kind::finished || length != 0) return arrived_wrong(*slot.connection);
    finish_named(*slot.connection, header.tag);
    slot.connection->release(slot);
}

/// Before its receive, or for one that takes many.
void Endpoint::arrived_early(Slot& slot, const Header& header, std::size_t length) {
    Matching& among = matching((header.flags & flag::tagged) != 0);
    Connection& connection = *slot.connection;
    if (Receive* const many = among.take_receive(&connection.peer(), header.tag)) {
        Receive* const part = part_of(*many, among, length);
        if (part == nullptr) return fail(connection);
        deliver(*part, connection.peer(), header, slot.bytes + sizeof header, length);
        connection.release(slot);
        return;
    }
    Message& message = keep(slot, length);
    message.header = header;
    among.unexpected.push(message);
}

void Endpoint::arrived_offer(Slot& slot, const Header& header) {
    Connection& connection = *slot.connection;
    Offer offer;
    std::memcpy(&offer, slot.bytes + sizeof header, sizeof offer);
    if (offer.length == 0 || offer.length > message_size_max || offer.zero != 0) {
        FI_WARN(&provider, FI_LOG_EP_DATA, "a peer offers what cannot be\n");
        return fail(connection);
    }
    Matching& among = matching((header.flags & flag::tagged) != 0);
    if (Receive* receive = among.take_receive(&connection.peer(), header.tag)) {
        if (receive->takes_many) receive = part_of(*receive, among, offer.length);
        if (receive == nullptr) return fail(connection);
        fetch(*receive, connection, header, offer);
        connection.release(slot);
        return;
    }
    Message& message = keep(slot, 0);
    message.header = header;
    message.offer = offer;
    among.unexpected.push(message);
}

/// The message stays where it came while the connection has receives enough for the next ones. Then
/// it makes room, since what the program waits for may come behind it.
Message& Endpoint::keep(Slot& slot, std::size_t length) {
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

// Sends -----------------------------------------------------------------------------------------

/// Somebody waits for what is under way, so it is looked for.
void Endpoint::watch(Connection& connection) {
    if (connection.is_watched) return;
    connection.is_watched = true;
    watched_.push_back(&connection);
}

/// False: nobody waits for anything any more. The look for receives was one for what is done, too.
bool Endpoint::look_at(Connection& connection) {
    if (connection.has_done() && !waits()) reap(connection);
    send_waiting(connection);
    if (!connection.answers.empty()) [[unlikely]]
        send_answers(connection);
    return connection.waited_for != 0 || !connection.waiting.empty() || !connection.answers.empty();
}

void Endpoint::reap(Connection& connection) {
    for (;;) {
        VIP_DESCRIPTOR* done[batch];
        bool failed = false;
        const VIP_UINT32 taken = connection.take_done(done, batch, failed);
        connection.give_back(taken);
        for (VIP_UINT32 index = 0; index < taken; ++index)
            complete(connection, reinterpret_cast<const Send&>(*done[index]),
                     failed && index + 1 == taken);
        if (failed) fail(connection);
        if (taken == 0 || (taken < batch && !failed)) return;
    }
}

void Endpoint::complete(Connection& connection, const Send& send, bool failed) {
    if (send.kind == Send::Kind::copied) return;
    --connection.waited_for;
    if (send.kind == Send::Kind::question) {
        connection.is_asked = false;
        if (!failed) connection.there_since = connection.asked_at;
        return;
    }
    if (send.kind == Send::Kind::fetch) {
        fetched(connection, *send.receive, send.length, failed);
        return;
    }
    if (send.kind >= Send::Kind::part) return moved(connection, send, failed);
    tell_done(send.context, send.flags, send.told, failed ? FI_ECONNRESET : 0);
}

/// Of any operation; uses up what was reserved.
void Endpoint::tell_done(void* context, std::uint64_t flags, bool told, int error) {
    count(flags, error != 0);
    Completion completion;
    completion.context = context;
    completion.flags = flags;
    completion.error = error;
    // Who wants to know of errors alone and gives no context cannot be told of one.
    if (told || (error != 0 && context != nullptr))
        tell_send(completion);
    else
        give_back_send();
}

/// A piece of a message that the peer offered.
void Endpoint::fetched(Connection& connection, Receive& receive, std::size_t length, bool failed) {
    if (failed) {
        --connection.held;
        fail_receive(receive, FI_ECONNRESET);
        return;
    }
    receive.fetched += length;
    if (receive.fetched == std::min<std::uint64_t>(receive.room, receive.offer.length)) {
        tell_received(receive, connection.peer(), receive.header, receive.offer.length);
        receive.done = true;
    }
    connection.waiting.push(receive);
}

/// The next piece of what is fetched, or the word that all of it was.
void Endpoint::send_waiting(Connection& connection) {
    while (!connection.waiting.empty() && !connection.has_ended) {
        Send* const send = connection.take();
        if (send == nullptr) return;
        Receive& receive = *connection.waiting.first();
        VIP_RETURN code;
        if (receive.done) {
            send->kind = Send::Kind::copied;
            send->header = {receive.offer.cookie, 0, Kind::finished, 0, 0};
            code = connection.post(*send, sizeof(Header));
        } else {
            const std::size_t all = std::min<std::uint64_t>(receive.room, receive.offer.length);
            send->kind = Send::Kind::fetch;
            send->receive = &receive;
            send->length = std::min(all - receive.fetched, connection.transfer_size());
            code = connection.post_fetch(*send, receive.buffer + receive.fetched,
                                         receive.offer.address + receive.fetched, receive.offer.key,
                                         send->length);
        }
        if (code != VIP_SUCCESS) {
            if (code != VIP_ERROR_RESOURCE) fail(connection);
            return;
        }
        connection.waiting.take_first();
        if (receive.done) {
            --connection.held;
            receive_pool_.give_back(receive);
        } else {
            ++connection.waited_for;
        }
    }
}

}  // namespace via::fabric::rdm
