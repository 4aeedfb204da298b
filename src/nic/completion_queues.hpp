// The NIC's completion queues, by name: index in the low 16 bits, generation above.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/atomic.hpp"
#include "base/status.hpp"
#include "queue/completion_queue.hpp"

namespace via::nic {

/// Owns the completion queues. Slots and queues live as long as the NIC: a late pop finds an empty
/// queue, not freed memory.
class CompletionQueues {
public:
    CompletionQueues(std::uint32_t queues_max, std::uint32_t first_generation);

    /// Its name. error_resource: there are as many as may be, or no memory.
    Result<std::uint64_t> open(std::uint32_t entries);
    /// nullptr: there is none of that name (any more). Any thread.
    queue::CompletionQueue* find(std::uint64_t name) const;
    std::uint64_t name_of(const queue::CompletionQueue& queue) const;
    /// Nobody finds it any more. The caller resets the queue.
    void close(std::uint64_t name);

private:
    struct Slot {
        Atomic<std::uint32_t> generation{0};  ///< odd: exists
        std::unique_ptr<queue::CompletionQueue> queue;
    };

    std::uint32_t max_;
    std::unique_ptr<Slot[]> slots_;
    std::uint32_t made_ = 0;
    std::deque<std::uint32_t> free_;
};

}  // namespace via::nic
