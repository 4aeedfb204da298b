// SPDX-License-Identifier: Apache-2.0
#include "rdm/completions.hpp"

namespace via::fabric::rdm {

int Completions::bind_queue(Queue& queue, std::uint64_t flags) {
    if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EINVAL;
    const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
    if (((flags & FI_TRANSMIT) != 0 && sends_ != nullptr) ||
        ((flags & FI_RECV) != 0 && receives_ != nullptr))
        return -FI_EINVAL;
    if ((flags & FI_TRANSMIT) != 0) {
        sends_ = &queue;
        selective_sends_ = selective;
        queue.users.add();
    }
    if ((flags & FI_RECV) != 0) {
        receives_ = &queue;
        selective_receives_ = selective;
        queue.users.add();
    }
    return 0;
}

int Completions::bind_counter(Counter& counter, std::uint64_t flags, bool of_peers) {
    constexpr std::uint64_t kinds[] = {FI_SEND,  FI_RECV,        FI_READ,
                                       FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
    constexpr std::uint64_t by_peers = FI_REMOTE_READ | FI_REMOTE_WRITE;
    if ((flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE | by_peers)) != 0) return -FI_ENOSYS;
    if ((flags & by_peers) != 0 && !of_peers) return -FI_ENOSYS;
    if (flags == 0) return -FI_EINVAL;
    return counter.bind(kinds, counters_, flags);
}

void Completions::end() {
    while (promised_sends_ != 0) give_back_send();
    while (promised_receives_ != 0) give_back_receive();
    for (Queue* queue : queues())
        if (queue != nullptr) queue->users.remove();
}

void Completions::tell_done(void* context, std::uint64_t flags, bool told, int error) {
    // What the peer's NIC did, too.
    Counter* const counter = counters_[(flags & FI_READ) != 0    ? 2
                                       : (flags & FI_WRITE) != 0 ? 3
                                                                 : 0];
    if (counter != nullptr) counter->count(error != 0);
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

bool Completions::tell_written(fi_addr_t source, std::uint64_t length, std::uint32_t data) {
    if (!reserve_receive()) return false;
    count_moved(false);
    tell_receive({.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                  .length = length,
                  .data = data,
                  .source = source});
    return true;
}

}  // namespace via::fabric::rdm
