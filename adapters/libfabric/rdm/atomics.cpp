// SPDX-License-Identifier: Apache-2.0
#include "rdm/atomics.hpp"

#include <cstring>

#include "rdm/arithmetic.hpp"

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

VIP_RETURN Atomics::ask(Connection& connection, const Atomic& atomic) {
    if (connection.atomics >= atomics_max) return VIP_ERROR_RESOURCE;
    Send* const send = connection.take();
    Outgoing* const outgoing =
        send != nullptr ? long_messages_.take(atomic.context, atomic.flags(), atomic.told)
                        : nullptr;
    if (outgoing == nullptr) return VIP_ERROR_RESOURCE;
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
    const VIP_RETURN code =
        connection.post(*send, static_cast<std::size_t>(end - send->copy) + sizeof(Header));
    if (code == VIP_SUCCESS)
        ++connection.atomics;
    else
        long_messages_.put_back(*outgoing);
    return code;
}

void Atomics::answer_arrived(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    Outgoing* const outgoing = long_messages_.find(connection, header.tag, true);
    if (outgoing == nullptr || !is_answer(header.data) ||
        length != (header.data == 0 ? outgoing->results_length : 0))
        return connections_.fail_wrong(connection);
    append(outgoing->results, length != 0 ? slot.bytes + sizeof header : nullptr, length);
    long_messages_.finish(*outgoing, static_cast<int>(header.data));
    connection.release(slot);
}

// Carrying out ----------------------------------------------------------------------------------

int Atomics::carry_out_here(const AtomicCall& call, const AtomicValues& values) {
    const std::size_t length = call.count * atomic_size(call.datatype);
    const bool writes = call.operation != FI_ATOMIC_READ;
    const bool reads = static_cast<Form>(call.form) != Form::plain;
    if (call.address % atomic_alignment(call.datatype) != 0) return FI_EINVAL;
    const int error =
        regions_.use({call.address, length, call.key, writes, reads}, [&](std::byte* there) {
            carry_out({call.datatype, call.operation, call.count, there, values.operands,
                       values.compares, values.results});
        });
    if (error == 0) completions_.count_moved(reads);
    return error;
}

/// The answer lies where the question came, and waits there if it must.
void Atomics::arrived(Slot& slot, const Header& header, std::size_t length) {
    Connection& connection = *slot.connection;
    AtomicCall call{};
    std::byte* const bytes = slot.bytes + sizeof header;
    if (length >= sizeof call) std::memcpy(&call, bytes, sizeof call);
    if (!takes_ || length < sizeof call || !is_call(call, length))
        return connections_.fail_wrong(connection);
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
    if (!connection.answers.empty()) connections_.watch(connection);
}

void Atomics::send_answers(Connection& connection) {
    while (!connection.answers.empty() && !connection.has_ended) {
        Send* const send = connection.take();
        if (send == nullptr) return;
        const Message& answer = *connection.answers.first();
        send->kind = Send::Kind::copied;
        send->header = answer.header;
        std::memcpy(send->copy, answer.bytes, answer.length);
        const VIP_RETURN code = connection.post(*send, sizeof(Header) + answer.length);
        if (code != VIP_SUCCESS) {
            if (code != VIP_ERROR_RESOURCE) connections_.fail(connection);
            return;
        }
        connection.answers.take_first();
        connection.release(*answer.slot);
    }
}

}  // namespace via::fabric::rdm
