#include "queue/completion_queue.hpp"

#include <bit>
#include <new>
#include <vector>

#include "base/assert.hpp"

namespace via::queue {

bool CompletionQueue::prepare(std::uint32_t entries) {
    const std::uint32_t slots = std::bit_ceil(entries);
    ring_.reset(new (std::nothrow) Entry[slots]);
    if (!ring_) return false;
    capacity_ = entries;
    mask_ = slots - 1;
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
    waiting_.clear();
    is_waited_for_ = false;
    return true;
}

void CompletionQueue::reset() {
    const Lock::Guard guard(pop_lock_);
    ring_.reset();
    waiting_.clear();
    waiting_.shrink_to_fit();
    is_waited_for_ = false;
    watched_.store(false);
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_relaxed);
}

/// One that cannot enter as it comes.
bool CompletionQueue::push_behind(const Waiting& waiting) {
    pump();
    const bool waited = overrun();
    waiting_.push_back(waiting);
    pump();
    return !waited && overrun();
}

/// Under the lock: who makes room finds that it is waited for, or we find the room.
void CompletionQueue::pump() {
    const Lock::Guard guard(pop_lock_);
    VIA_ASSERT(tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed) <=
               capacity_);
    std::size_t entered = 0;
    while (entered < waiting_.size() && !full()) enter(waiting_[entered++]);
    if (entered != 0)
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(entered));
    is_waited_for_ = overrun();
}

Status CompletionQueue::resize(std::uint32_t entries) {
    const std::uint32_t slots = std::bit_ceil(entries);
    std::unique_ptr<Entry[]> ring(new (std::nothrow) Entry[slots]);
    if (!ring) return Status::error_resource;
    const Lock::Guard guard(pop_lock_);
    // What does not fit into a smaller queue waits, before what waited already.
    std::vector<Waiting> displaced;
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    std::uint32_t at = head_.load(std::memory_order_relaxed);
    VIA_ASSERT(tail - at <= capacity_);
    std::uint32_t kept = 0;
    for (; at != tail; ++at) {
        const Entry entry = ring_[at & mask_];
        if (kept < entries) {
            ring[kept++] = entry;
        } else {
            displaced.push_back({entry.completion(), entry.nth});
        }
    }
    waiting_.insert(waiting_.begin(), displaced.begin(), displaced.end());
    ring_ = std::move(ring);
    capacity_ = entries;
    mask_ = slots - 1;
    head_.store(0, std::memory_order_relaxed);
    tail_.store(kept, std::memory_order_release);
    return Status::success;
}

bool CompletionQueue::pop(Completion& completion, bool& made_room) {
    if (!has_entry()) return false;
    const Lock::Guard guard(pop_lock_);
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (tail_.load(std::memory_order_acquire) == head) return false;
    const Entry entry = ring_[head & mask_];
    head_.store(head + 1, std::memory_order_release);
    completion = entry.completion();
    made_room = is_waited_for_;
    return true;
}

}  // namespace via::queue
