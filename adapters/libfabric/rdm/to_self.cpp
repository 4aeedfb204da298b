// SPDX-License-Identifier: Apache-2.0
#include "rdm/to_self.hpp"

#include <cstdlib>
#include <cstring>

namespace via::fabric::rdm {

/// Until its receive: a copy, or the program's memory. False: no memory.
bool ToSelf::wait_for_receive(Peer& self, const Sending& sending, bool copies) {
    const std::size_t copied = copies ? sending.length : 0;
    Outgoing* sender = nullptr;
    if (!copies) {
        sender = long_messages_.take(sending.context, kind_of(sending.flags), sending.told);
        if (sender == nullptr) return false;
    }
    void* const memory = std::malloc(message_memory(copied));
    if (memory == nullptr) {
        if (sender != nullptr) long_messages_.put_back(*sender);
        return false;
    }
    Message& message = *new (memory) Message;
    message.peer = &self;
    message.header = header_of(Kind::eager, sending);
    message.length = sending.length;
    message.sender = sender;
    message.bytes = static_cast<const std::byte*>(sending.bytes);
    if (copies) {
        if (copied != 0) std::memcpy(&message + 1, sending.bytes, copied);
        message.bytes = reinterpret_cast<std::byte*>(&message + 1);
    }
    unexpected_.add(message);
    return true;
}

ssize_t ToSelf::send(Peer& self, const Sending& sending) {
    // Done without its receive where one to another endpoint would be.
    const bool copies = sending.length <= copied_max_;
    const bool reserved = sending.told || !copies;
    if (reserved && !completions_.reserve_send()) return -FI_EAGAIN;
    Receive* receive = receives_.take((sending.flags & flag::tagged) != 0, &self, sending.tag);
    const bool is_met = receive != nullptr;
    if (is_met && receive->takes_many) receive = receives_.part_of(*receive, sending.length);
    if (is_met ? receive == nullptr : !wait_for_receive(self, sending, copies)) {
        if (reserved) completions_.give_back_send();
        return -FI_EAGAIN;
    }
    if (is_met)
        receives_.deliver(completions_, *receive, self, header_of(Kind::eager, sending),
                          static_cast<const std::byte*>(sending.bytes), sending.length);
    else if (!copies)
        return 0;
    completions_.count_send(false);
    if (sending.told)
        completions_.tell_send(sent(sending));
    else if (reserved)
        completions_.give_back_send();
    ++done_at_once_;
    return 0;
}

ssize_t ToSelf::move(Peer& self, const Moving& moving) {
    if (!completions_.reserve_send()) return -FI_EAGAIN;
    const int error =
        regions_.use({moving.address, moving.length, moving.key, !moving.reads, moving.reads},
                     [&](std::byte* there) {
                         if (moving.length == 0) return;
                         std::memmove(moving.reads ? moving.bytes : there,
                                      moving.reads ? there : moving.bytes, moving.length);
                     });
    if (error == 0 && moving.has_data &&
        !completions_.tell_written(peers_.number_of(self), moving.length,
                                   static_cast<std::uint32_t>(moving.data))) {
        completions_.give_back_send();
        return -FI_EAGAIN;
    }
    if (error == 0 && !moving.has_data) completions_.count_moved(moving.reads);
    completions_.tell_done(moving.context, moving.flags(), moving.told, error);
    ++done_at_once_;
    return 0;
}

ssize_t ToSelf::atomic(const Atomic& atomic) {
    if (!completions_.reserve_send()) return -FI_EAGAIN;
    const int error = atomics_.carry_out_here(atomic.call, atomic.values);
    completions_.tell_done(atomic.context, atomic.flags(), atomic.told, error);
    ++done_at_once_;
    return 0;
}

}  // namespace via::fabric::rdm
