// A completion queue: the NIC pushes which queue of which VI completed a descriptor, the program
// pops. When it is full, further completions stay in their work queues and enter in order as
// entries are taken (VIPL 4.16).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/atomic.hpp"
#include "base/biased_lock.hpp"
#include "base/status.hpp"

namespace via::queue {

/// Names the work queue that completed: a number of the VI, and which of its queues.
struct Completion {
    std::uint64_t vi = 0;
    bool receive = false;
};

class CompletionQueue {
public:
    /// entries >= 1. False when there is no memory. Nobody may use the queue meanwhile.
    bool prepare(std::uint32_t entries);
    void reset();

    // NIC (the turn) ----------------------------------------------------------------------------
    /// `nth` is the work queue's count of completions, for telling what was taken without us.
    /// True when the queue became overrun by this push.
    bool push(Completion completion, std::uint32_t nth) {
        return !push_at_once(completion, nth) && push_behind({completion, nth});
    }
    /// The common case. False: others wait or there is no room, and push() sees to it.
    [[gnu::always_inline]] bool push_at_once(Completion completion, std::uint32_t nth) {
        if (overrun() || full()) [[unlikely]]
            return false;
        enter({completion, nth});
        return true;
    }
    bool overrun() const { return !waiting_.empty(); }
    /// Lets waiting completions enter.
    void pump();
    /// Waiting completions whose descriptor was taken already need not enter; called when many
    /// wait. `taken(completion)` is how many descriptors were taken off that work queue.
    template <class TakenCount>
    void drop_taken(TakenCount taken) {
        std::erase_if(waiting_, [&](const Waiting& waiting) {
            return static_cast<std::int32_t>(taken(waiting.completion) - waiting.nth) >= 0;
        });
    }
    std::size_t waiting() const { return waiting_.size(); }
    /// Another size, keeping every entry: those for which there is no room wait, and nothing that
    /// waits enters before the next pump(). error_resource: no memory.
    Status resize(std::uint32_t entries);
    std::uint32_t entries() const { return capacity_; }

    /// Somebody outside wants to hear of entries; from now on.
    void watch() { watched_.store(true); }
    bool watched() const { return watched_.load(std::memory_order_relaxed); }

    // Program -----------------------------------------------------------------------------------
    /// `made_room`: completions wait for it. They enter with the next turn.
    bool pop(Completion& completion, bool& made_room);
    bool has_entry() const {
        return tail_.load(std::memory_order_acquire) != head_.load(std::memory_order_relaxed);
    }

private:
    struct Waiting {
        Completion completion;
        std::uint32_t nth;
    };
    bool full() const {
        return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) ==
               capacity_;
    }
    static constexpr std::uint64_t receive_bit = 1ULL << 63;
    struct Entry {
        std::uint64_t vi_and_queue;
        std::uint32_t nth;
        Completion completion() const {
            return {vi_and_queue & ~receive_bit, (vi_and_queue & receive_bit) != 0};
        }
    };
    [[gnu::always_inline]] void enter(const Waiting& waiting) {
        const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
        const Completion& completion = waiting.completion;
        ring_[tail & mask_] = {completion.vi | (completion.receive ? receive_bit : 0), waiting.nth};
        tail_.store(tail + 1, std::memory_order_release);
    }
    [[gnu::noinline]] bool push_behind(const Waiting& waiting);

    std::uint32_t capacity_ = 0;
    std::uint32_t mask_ = 0;
    std::unique_ptr<Entry[]> ring_;
    std::deque<Waiting> waiting_;
    bool is_waited_for_ = false;  ///< somebody waits for room; pop_lock_ guards it
    Atomic<bool> watched_{false};
    alignas(64) Atomic<std::uint32_t> tail_{0};
    using Lock = BiasedLock<>;
    alignas(64) Atomic<std::uint32_t> head_{0};
    Lock pop_lock_;  // begins with what its owner needs
};

}  // namespace via::queue
