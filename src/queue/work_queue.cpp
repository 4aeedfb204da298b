#include "queue/work_queue.hpp"

#include <cstring>
#include <mutex>
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
    std::lock_guard guard(take_lock_);  // a late taker finds all or nothing
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

WorkEntry& WorkQueue::next_cell() {
    WorkEntry& cell = tail_.cell();
    tail_.advance();
    return cell;
}

Status WorkQueue::post(Descriptor* descriptor, memory::MemoryHandle handle,
                       const ControlSegment& control, const Segment* segments, std::uint32_t fault,
                       std::uint32_t descriptors_max) {
    if (tail_.cell_ == nullptr) return Status::invalid_parameter;  // the VI went meanwhile
    // A descriptor that names more segments than can be is kept for its fault only.
    const std::uint32_t count = segments == nullptr ? 0 : control.segment_count;
    const std::uint32_t cells = cells_of(count);
    const std::uint32_t posted_before = posted_count_.load(std::memory_order_relaxed);
    if (posted_before - taken_count_.load(std::memory_order_acquire) >= descriptors_max)
        return Status::error_resource;
    if (tail_.chunk()->end - tail_.position() < cells && !make_room(cells))
        return Status::error_resource;

    WorkEntry& entry = next_cell();
    entry.descriptor = descriptor;
    entry.handle = handle;
    entry.segment_count = static_cast<std::uint16_t>(count);
    entry.control = control.control;
    entry.length = control.length;
    entry.immediate_data = control.immediate_data;
    entry.status = fault;
    if (count > 0) entry.segments[0] = segments[0];
    if (count > 1) entry.segments[1] = segments[1];
    for (std::uint32_t index = 2; index < count; index += segments_per_cell) {
        const std::uint32_t here =
            count - index < segments_per_cell ? count - index : segments_per_cell;
        std::memcpy(static_cast<void*>(&next_cell()), segments + index, here * sizeof(Segment));
    }
    descriptor->control.status = 0;  // an old DONE must not be taken for ours (VIPL 4.9)
    posted_.store(tail_.position(), std::memory_order_release);
    posted_count_.store(posted_before + 1, std::memory_order_release);
    return Status::success;
}

void WorkQueue::complete_oldest() {
    VIA_ASSERT(has_started());
    oldest_.pass();
    completed_count_.store(completed_count_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
    completed_.store(oldest_.position(), std::memory_order_release);
}

bool WorkQueue::take(Taken& taken, bool& empty) {
    std::lock_guard guard(take_lock_);
    const std::uint32_t at = head_.position();
    if (completed_.load(std::memory_order_acquire) == at) {
        empty = posted_.load(std::memory_order_acquire) == at;
        return false;
    }
    const WorkEntry& entry = head_.cell();
    taken.descriptor = entry.descriptor;
    taken.status = entry.status;
    head_.pass();
    taken_count_.store(taken_count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    taken_.store(head_.position(), std::memory_order_release);
    return true;
}

bool WorkQueue::head_is_written() {
    std::lock_guard guard(take_lock_);
    return posted_.load(std::memory_order_acquire) != head_.position() &&
           (__atomic_load_n(&head_.cell().descriptor->control.status, __ATOMIC_ACQUIRE) &
            status::done) != 0;
}

}  // namespace via::queue
