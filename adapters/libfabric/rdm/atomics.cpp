// SPDX-License-Identifier: Apache-2.0
// Endpoints for datagrams: atomic operations on the memory of peers. A message asks for one, and
// whoever reads completions at the peer carries it out and answers.
#include <cstring>

#include "rdm/short_way.hpp"

namespace via::fabric::rdm {
namespace {

/// So many of a connection may wait for their answers: fewer than the receives that messages before
/// their receives leave posted (Connection::may_keep), so that answers always find one.
constexpr std::uint32_t atomics_max = 16;
static_assert(atomics_max < receives_max / 2);
static_assert(sizeof(AtomicCall) + 2 * atomic_bytes_max <= inject_max);

/// What a peer may say of one that it did not carry out.
bool is_answer(std::uint32_t error) {
    return error == 0 || error == FI_EACCES || error == FI_EINVAL;
}

std::byte* append(std::byte* to, const std::byte* bytes, std::size_t length) {
    return bytes != nullptr ? static_cast<std::byte*>(std::memcpy(to, bytes, length)) + length : to;
}

}  // namespace

// Asking ----------------------------------------------------------------------------------------

ssize_t Endpoint::atomic(const Atomic& atomic) {
    Peer* const peer = peer_at(atomic.with);
    if (peer == nullptr) return no_peer(atomic.with);
    if (peer->connection != nullptr) return ask_for(*peer->connection, atomic);
    if (!peer->is_self) return not_connected(*peer);
    if (!reserve_send()) return -FI_EAGAIN;
    const int error = carry_out_here(atomic.call, atomic.values);
    tell_done(atomic.context, atomic.flags(), atomic.told, error);
    look_in_turn();
    return 0;
}

ssize_t Endpoint::ask_for(Connection& connection, const Atomic& atomic) {
    if (!reserve_send()) return -FI_EAGAIN;
    VIP_RETURN code = VIP_ERROR_RESOURCE;
    Send* const send = connection.atomics < atomics_max ? room_for(connection) : nullptr;
    Outgoing* const outgoing =
        send != nullptr ? take_outgoing(atomic.context, atomic.flags(), atomic.told) : nullptr;
    if (outgoing != nullptr) {
        const AtomicValues& values = atomic.values;
        const std::size_t length = atomic.call.count * atomic_size(atomic.call.datatype);
        outgoing->connection = &connection;
        outgoing->is_atomic = true;
        outgoing->results = values.results;
        outgoing->results_length = values.results != nullptr ? length : 0;
        send->kind = Send::Kind::copied;
        send->header = {outgoing->cookie(), 0, Kind::atomic, 0, 0};
        std::memcpy(send->copy, &atomic.call, sizeof atomic.call);
        std::byte* end = send->copy + sizeof atomic.call;
        end = append(append(end, values.operands, length), values.compares, length);
        code = connection.post(*send, static_cast<std::size_t>(end - send->copy) + sizeof(Header));
        if (code == VIP_SUCCESS) {
            ++connection.atomics;
            return 0;
        }
        put_back(*outgoing);
    }
    give_back_send();
    return why_not_posted(connection, code);
}

void Endpoint::arrived_answer(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    Outgoing* const outgoing = find_outgoing(connection, header.tag, true);
    if (outgoing == nullptr || !is_answer(header.data) ||
        length != (header.data == 0 ? outgoing->results_length : 0))
        return arrived_wrong(connection);
    append(outgoing->results, length != 0 ? slot.bytes + sizeof header : nullptr, length);
    finish(*outgoing, static_cast<int>(header.data));
    connection.release(slot);
}

// Carrying out ----------------------------------------------------------------------------------

/// 0; FI_EACCES: the program does not allow it; FI_EINVAL: such a value cannot lie there.
int Endpoint::carry_out_here(const AtomicCall& call, const AtomicValues& values) {
    const std::size_t length = call.count * atomic_size(call.datatype);
    const bool writes = call.operation != FI_ATOMIC_READ;
    const bool reads = static_cast<Form>(call.form) != Form::plain;
    if (call.address % atomic_alignment(call.datatype) != 0) return FI_EINVAL;
    return domain_.regions().use({call.address, length, call.key, writes, reads},
                                 [&](std::byte* there) {
                                     carry_out({call.datatype, call.operation, call.count, there,
                                                values.operands, values.compares, values.results});
                                 });
}

/// What a peer asks for may be anything.
bool Endpoint::is_call(const AtomicCall& call, std::size_t length) {
    if (call.form > static_cast<std::uint8_t>(Form::compare) || call.zero != 0 ||
        !is_atomic(static_cast<Form>(call.form), call.datatype, call.operation))
        return false;
    const std::size_t size = atomic_size(call.datatype);
    if (call.count == 0 || call.count > atomic_bytes_max / size) return false;
    const std::size_t values = (call.operation != FI_ATOMIC_READ ? 1U : 0U) +
                               (static_cast<Form>(call.form) == Form::compare ? 1U : 0U);
    return length == sizeof call + values * call.count * size;
}

/// The answer lies where the question came, and waits there if it must.
void Endpoint::arrived_atomic(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    AtomicCall call{};
    std::byte* const bytes = slot.bytes + sizeof header;
    if (length >= sizeof call) std::memcpy(&call, bytes, sizeof call);
    if (!takes_atomics_ || length < sizeof call || !is_call(call, length))
        return arrived_wrong(connection);
    const std::size_t size = call.count * atomic_size(call.datatype);
    const bool fetches = static_cast<Form>(call.form) != Form::plain;
    std::byte results[atomic_bytes_max];
    const std::byte* const operands = bytes + sizeof call;
    const int error = carry_out_here(
        call, {call.operation != FI_ATOMIC_READ ? operands : nullptr,
               static_cast<Form>(call.form) == Form::compare ? operands + size : nullptr,
               fetches ? results : nullptr});
    if (connection.has_ended) return;  // it was sent before the end, and nobody waits
    Message& answer = *new (&slot.message) Message;
    answer.header = {header.tag, static_cast<std::uint32_t>(error), Kind::answer, 0, 0};
    answer.slot = &slot;
    answer.bytes = bytes;
    if (fetches && error == 0) {
        answer.length = size;
        std::memcpy(bytes, results, size);
    }
    connection.answers.push(answer);
    send_answers(connection);
    if (!connection.answers.empty()) watch(connection);
}

void Endpoint::send_answers(Connection& connection) {
    while (!connection.answers.empty() && !connection.has_ended) {
        Send* const send = connection.take();
        if (send == nullptr) return;
        const Message& answer = *connection.answers.first();
        send->kind = Send::Kind::copied;
        send->header = answer.header;
        std::memcpy(send->copy, answer.bytes, answer.length);
        const VIP_RETURN code = connection.post(*send, sizeof(Header) + answer.length);
        if (code != VIP_SUCCESS) {
            if (code != VIP_ERROR_RESOURCE) fail(connection);
            return;
        }
        connection.answers.take_first();
        connection.release(*answer.slot);
    }
}

}  // namespace via::fabric::rdm
