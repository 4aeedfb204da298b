#include "queue/work_queue.hpp"

#include <cstring>
#include <new>

#include "base/assert.hpp"

namespace via::queue {

WorkQueue::~WorkQueue() { reset(); }

bool WorkQueue::prepare() {
    if (tail_.cell_ != nullptr) return true;
    auto* chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) return false;
    chunk->next = chunk;
    chunk->end = Chunk::cell_count;
    tail_ = oldest_ = current_ = head_ = Cursor(chunk);
    return true;
}

void WorkQueue::reset() {
    const Lock::Guard guard(take_lock_);  // a late taker finds all or nothing
    if (tail_.cell_ == nullptr) return;
    Chunk* first = tail_.chunk();
    for (Chunk* chunk = first->next; chunk != first;) {
        Chunk* next = chunk->next;
        delete chunk;
        chunk = next;
    }
    delete first;
    tail_ = oldest_ = current_ = head_ = Cursor();
    posted_count_.store(0, std::memory_order_relaxed);
    for (auto* count : {&posted_, &completed_, &completed_count_, &taken_, &taken_count_})
        count->store(0, std::memory_order_relaxed);
}

/// Links chunks so that `cells` further cells fit. A chunk is reused only when the taker stands
/// beyond its end, strictly: nobody then still looks at its `next`, which may change.
bool WorkQueue::make_room(std::uint32_t cells) {
    const std::uint32_t taken = taken_.load(std::memory_order_acquire);
    Chunk* const tail = tail_.chunk();
    VIA_ASSERT(tail->end - tail_.position() <= Chunk::cell_count &&
               static_cast<std::int32_t>(tail_.position() - taken) >= 0);
    Chunk* chunk = tail;
    for (std::uint32_t end = chunk->end; end - tail_.position() < cells; end += Chunk::cell_count) {
        Chunk* next = chunk->next;
        const bool reusable = next != tail && static_cast<std::int32_t>(taken - next->end) > 0;
        // Chunks linked by an earlier, failed attempt were never filled: their end is still ahead.
        const bool fresh = next != tail && next->end == end + Chunk::cell_count;
        if (!reusable && !fresh) {
            auto* inserted = new (std::nothrow) Chunk;
            if (inserted == nullptr) return false;
            inserted->next = next;
            chunk->next = inserted;
            next = inserted;
        }
        next->end = end + Chunk::cell_count;
        chunk = next;
    }
    return true;
}

/// The segments behind the second lie in the cells behind the entry's.
void WorkQueue::fill_cells(const Segment* segments, std::uint32_t count) {
    for (std::uint32_t index = 2; index < count; index += segments_per_cell) {
        const std::uint32_t here =
            count - index < segments_per_cell ? count - index : segments_per_cell;
        WorkEntry& cell = tail_.cell();
        std::memcpy(static_cast<void*>(&cell), segments + index, here * sizeof(Segment));
        tail_.advance();
    }
}

void WorkQueue::complete_oldest() {
    VIA_ASSERT(has_started());
    oldest_.pass();
    count_completed(oldest_.position());
}

std::uint32_t WorkQueue::take(std::span<void*> descriptors, bool& failed) {
    const Lock::Guard guard(take_lock_);
    const std::uint32_t completed = completed_.load(std::memory_order_acquire);
    std::uint32_t count = 0;
    while (!failed && count < descriptors.size() && head_.position() != completed) {
        const WorkEntry& entry = head_.cell();
        descriptors[count++] = entry.descriptor;
        failed = (entry.status & status::error_mask) != 0;
        head_.pass();
    }
    taken_count_.store(taken_count_.load(std::memory_order_relaxed) + count,
                       std::memory_order_relaxed);
    taken_.store(head_.position(), std::memory_order_release);
    return count;
}

bool WorkQueue::head_is_written() {
    const Lock::Guard guard(take_lock_);
    return posted_.load(std::memory_order_acquire) != head_.position() &&
           (__atomic_load_n(&head_.cell().descriptor->control.status, __ATOMIC_ACQUIRE) &
            status::done) != 0;
}

}  // namespace via::queue
