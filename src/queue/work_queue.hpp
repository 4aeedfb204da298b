// The send or receive queue of a VI: what the program and the NIC share.
//
// Three parties, each with its own end:
//   poster  any thread, one at a time (post_lock_): copies a descriptor in and publishes it;
//   NIC     the holder of the turn: reads posted entries, finishes them in order;
//   taker   any thread, one at a time (take_lock_): takes finished descriptors off.
// Entries live in a ring of chunks that grows by need and is reused, so that memory follows the
// deepest use and not the limit. A descriptor with more than two segments takes several cells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/atomic.hpp"
#include "base/biased_lock.hpp"
#include "base/status.hpp"
#include "memory/handle.hpp"
#include "queue/descriptor.hpp"

namespace via::queue {

/// The library's own copy of a posted descriptor; the program's may change, this does not.
struct alignas(64) WorkEntry {
    Descriptor* descriptor;       ///< the program's, for writing the outcome back
    memory::MemoryHandle handle;  ///< region that holds it
    std::uint16_t segment_count;
    std::uint16_t control;
    std::uint32_t length;
    std::uint32_t immediate_data;
    std::uint32_t status;   ///< fault found by the post; later the final status
    std::uint32_t message;  ///< message number, once the NIC has started it
    Segment segments[2];    ///< the others are in the cells that follow
};
static_assert(sizeof(WorkEntry) == 64);

/// Of a descriptor: VIPL's least (1.9).
constexpr std::uint32_t segments_max = 252;
constexpr std::uint32_t segments_per_cell = 4;

/// Cells that a descriptor with that many segments occupies.
constexpr std::uint32_t cells_of(std::uint32_t segments) {
    return segments <= 2 ? 1 : 1 + (segments - 2 + segments_per_cell - 1) / segments_per_cell;
}

/// Cells in a row. Aligned to its size: a cell's address tells its chunk and whether it is the end.
struct alignas(1024) Chunk {
    static constexpr std::uint32_t cell_count = 15;
    WorkEntry cells[cell_count];
    Chunk* next = nullptr;
    std::uint32_t end = 0;  ///< position behind the last cell; the poster's
};
static_assert(sizeof(Chunk) == 1024 && offsetof(Chunk, next) == 960);

/// A place in the ring. Moves only over cells that were posted.
class Cursor {
public:
    Cursor() = default;
    explicit Cursor(Chunk* chunk) : cell_(chunk->cells) {}

    std::uint32_t position() const { return position_; }
    /// The cell here; only valid while position() != the queue's posted position.
    WorkEntry& cell() {
        settle();
        return *cell_;
    }
    void advance() {
        settle();
        ++cell_;
        ++position_;
    }
    /// Goes behind the entry here.
    void pass() {
        const std::uint32_t segments = cell().segment_count;
        ++cell_;
        ++position_;
        if (segments > 2) [[unlikely]]
            pass_rest(segments);
    }

private:
    friend class WorkQueue;
    Chunk* chunk() const {
        return reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(cell_) &
                                        ~(sizeof(Chunk) - 1));
    }
    [[gnu::noinline]] void pass_rest(std::uint32_t segments) {
        for (std::uint32_t cells = cells_of(segments); cells != 1; --cells) advance();
    }
    bool is_behind_chunk() const {
        return reinterpret_cast<std::uintptr_t>(cell_) % sizeof(Chunk) == offsetof(Chunk, next);
    }
    /// From behind a chunk's last cell to the next chunk, which is linked before anything in it is
    /// posted.
    void settle() {
        if (is_behind_chunk()) [[unlikely]]
            cell_ = chunk()->next->cells;
    }
    /// Goes behind an entry of one cell, which cell() returned.
    void pass_cell() {
        ++cell_;
        ++position_;
    }
    WorkEntry* cell_ = nullptr;
    std::uint32_t position_ = 0;
};

/// Walks the segments of one entry, first and following cells, from segment `first` on.
class SegmentWalk {
public:
    SegmentWalk() = default;
    explicit SegmentWalk(const Cursor& at, std::uint32_t first = 0) : at_(at) {
        count_ = at_.cell().segment_count;
        index_ = first < count_ ? first : count_;  // first is 0 or 1: never beyond the first cell
    }

    bool done() const { return index_ == count_; }
    const Segment& next() {
        const std::uint32_t index = index_++;
        if (index < 2) return at_.cell().segments[index];
        const std::uint32_t place = (index - 2) % segments_per_cell;
        if (place == 0) at_.advance();
        return reinterpret_cast<const Segment*>(&at_.cell())[place];
    }
    /// What next() returned.
    const Segment& latest() {
        const std::uint32_t index = index_ - 1;
        if (index < 2) return at_.cell().segments[index];
        return reinterpret_cast<const Segment*>(&at_.cell())[(index - 2) % segments_per_cell];
    }

private:
    Cursor at_;
    std::uint32_t count_ = 0;
    std::uint32_t index_ = 0;
};

/// What the taker gets.
struct Taken {
    Descriptor* descriptor = nullptr;
    std::uint32_t status = 0;
};

class WorkQueue {
public:
    WorkQueue() = default;
    ~WorkQueue();
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    /// Brings the first storage; false when there is no memory. Idempotent.
    bool prepare();
    /// Frees all storage. The NIC's end is not in use, and no post: the caller holds post_lock(),
    /// or nobody posts. A late taker finds an empty queue.
    void reset();

    // Poster ------------------------------------------------------------------------------------
    /// Held from the check of a descriptor to its post.
    using Lock = BiasedLock<>;
    Lock& post_lock() { return post_lock_; }
    /// Whoever changed what posters look at (a region, the VI's state) calls this and then sees
    /// every post that did not see the change. `fenced`: see BiasedLock::wait_for_holder().
    void wait_for_posters(bool& fenced) { post_lock_.wait_for_holder(fenced); }
    /// Copies a descriptor into an entry and publishes it; the caller holds post_lock(). `fault` is
    /// stored for the NIC to complete with; segments == nullptr: none. error_resource:
    /// `descriptors_max` are outstanding, or no memory. invalid_parameter: it was reset.
    Status post(Descriptor* descriptor, memory::MemoryHandle handle, const ControlSegment& control,
                const Segment* segments, std::uint32_t fault, std::uint32_t descriptors_max);
    /// The same for what most descriptors are, of one or two segments and without a fault. False:
    /// nothing was done, and post() says why it cannot be, or does it.
    template <std::size_t count>
    bool post_common(Descriptor* descriptor, memory::MemoryHandle handle,
                     const ControlSegment& control, const std::array<Segment, count>& segments,
                     std::uint32_t descriptors_max);

    // NIC ---------------------------------------------------------------------------------------
    /// First entry not completed, and the next one to work on (never behind it).
    Cursor& oldest() { return oldest_; }
    Cursor& current() { return current_; }
    bool has_current() const {
        return current_.position() != posted_.load(std::memory_order_acquire);
    }
    bool has_outstanding() const {
        return oldest_.position() != posted_.load(std::memory_order_acquire);
    }
    bool has_started() const { return oldest_.position() != current_.position(); }
    /// Nothing is posted behind current(), an entry of one cell.
    [[gnu::always_inline]] bool is_last_posted() const {
        return current_.position() + 1 == posted_.load(std::memory_order_acquire);
    }
    /// The entry at current() if there is one, and nothing before it is outstanding.
    [[gnu::always_inline]] WorkEntry* oldest_current() {
        const std::uint32_t position = current_.position();
        if (position == posted_.load(std::memory_order_acquire) || position != oldest_.position())
            return nullptr;
        return &current_.cell();
    }
    /// Lets current() go to the next entry.
    void start_next() { current_.pass(); }
    /// taken <= completed <= current <= posted, and what is not completed fits the positions; for
    /// the NIC. Posters and takers may be at work.
    bool is_in_order() const {
        const std::uint32_t taken = taken_.load(std::memory_order_acquire);
        const std::uint32_t completed = completed_.load(std::memory_order_relaxed);
        const std::uint32_t current = current_.position();
        const std::uint32_t posted = posted_.load(std::memory_order_acquire);
        return completed == oldest_.position() && completed - taken <= posted - taken &&
               current - completed <= posted - completed;
    }
    /// Completes oldest(): the outcome was written back. A started entry only.
    void complete_oldest();
    /// Starts and completes current(), an entry of one cell: the outcome was written back, and
    /// nothing before it is outstanding.
    [[gnu::always_inline]] void complete_current() {
        Cursor behind = current_;
        behind.pass_cell();
        current_ = oldest_ = behind;
        count_completed(behind.position());
    }

    /// The same, and takes it off: of a queue whose taker is the NIC, too.
    [[gnu::always_inline]] void pass_on_current() {
        complete_current();
        head_ = current_;
        taken_count_.store(taken_count_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
        taken_.store(head_.position(), std::memory_order_release);
    }

    // Taker -------------------------------------------------------------------------------------
    bool has_done() const {
        return completed_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed);
    }
    /// Takes the head off if it is done.
    bool take(Taken& taken);
    /// Takes the oldest off that are done, up to and with the first that has error bits, in which
    /// case `failed` is set. How many.
    std::uint32_t take(std::span<void*> descriptors, bool& failed);
    /// The NIC has written the head's status but not counted it yet: one look later it is done.
    bool head_is_written();
    /// Neither posted nor completed descriptors are left.
    bool empty() const {
        const std::uint32_t taken = taken_.load(std::memory_order_acquire);  // never beyond posted
        return posted_.load(std::memory_order_acquire) == taken;
    }

    /// Descriptors posted so far; each that is counted is there.
    std::uint32_t posted_count() const { return posted_count_.load(std::memory_order_acquire); }
    /// Descriptors completed and taken so far, for the completion queue's book-keeping.
    std::uint32_t completed_count() const {
        return completed_count_.load(std::memory_order_acquire);
    }
    std::uint32_t taken_count() const { return taken_count_.load(std::memory_order_acquire); }
    /// Posted position; an entry walk from oldest() ends here (deregistration looks for users).
    std::uint32_t posted() const { return posted_.load(std::memory_order_acquire); }

private:
    [[gnu::noinline]] bool make_room(std::uint32_t cells);
    [[gnu::always_inline]] void count_completed(std::uint32_t position) {
        completed_count_.store(completed_count_.load(std::memory_order_relaxed) + 1,
                               std::memory_order_relaxed);
        completed_.store(position, std::memory_order_release);
    }
    void fill_cells(const Segment* segments, std::uint32_t count);

    // The program's lines, one for each end: its lock begins with what its owner needs.
    alignas(64) Cursor tail_;
    Atomic<std::uint32_t> posted_count_{0};
    Atomic<std::uint32_t> posted_{0};
    Lock post_lock_;
    alignas(64) Cursor head_;
    Atomic<std::uint32_t> taken_{0};
    Atomic<std::uint32_t> taken_count_{0};
    Lock take_lock_;
    // The NIC's line
    alignas(64) Cursor oldest_;
    Cursor current_;
    Atomic<std::uint32_t> completed_{0};
    Atomic<std::uint32_t> completed_count_{0};
};

template <std::size_t count>
[[gnu::always_inline]] inline bool WorkQueue::post_common(
    Descriptor* descriptor, memory::MemoryHandle handle, const ControlSegment& control,
    const std::array<Segment, count>& segments, std::uint32_t descriptors_max) {
    static_assert(cells_of(count) == 1);
    // Behind a chunk's last cell post() may have to link another one.
    WorkEntry* const entry = tail_.cell_;
    const std::uint32_t posted_before = posted_count_.load(std::memory_order_relaxed);
    if (entry == nullptr || tail_.is_behind_chunk() ||
        posted_before - taken_count_.load(std::memory_order_acquire) >= descriptors_max)
        [[unlikely]]
        return false;
    tail_.pass_cell();
    entry->descriptor = descriptor;
    entry->handle = handle;
    entry->segment_count = count;
    entry->control = control.control;
    entry->length = control.length;
    entry->immediate_data = control.immediate_data;
    entry->status = 0;
    for (std::size_t n = 0; n < count; ++n) {
        entry->segments[n].address = segments[n].address;
        entry->segments[n].handle = segments[n].handle;
        entry->segments[n].length = segments[n].length;
    }
    descriptor->control.status = 0;  // an old DONE must not be taken for ours (VIPL 4.9)
    posted_.store(tail_.position(), std::memory_order_release);
    posted_count_.store(posted_before + 1, std::memory_order_release);
    return true;
}

[[gnu::always_inline]] inline bool WorkQueue::take(Taken& taken) {
    const Lock::Guard guard(take_lock_);
    // Not a cursor as a whole: loaded as one, it would wait for the stores of its two parts.
    const std::uint32_t position = head_.position();
    const bool is_there = completed_.load(std::memory_order_acquire) != position;
    if (is_there) [[likely]] {
        const WorkEntry& entry = head_.cell();
        taken.descriptor = entry.descriptor;
        taken.status = entry.status;
        const std::uint32_t count = taken_count_.load(std::memory_order_relaxed);
        if (entry.segment_count <= 2) [[likely]] {
            head_.pass_cell();
            taken_count_.store(count + 1, std::memory_order_relaxed);
            taken_.store(position + 1, std::memory_order_release);
        } else {
            head_.pass();
            taken_count_.store(count + 1, std::memory_order_relaxed);
            taken_.store(head_.position(), std::memory_order_release);
        }
    }
    return is_there;
}

[[gnu::always_inline]] inline Status WorkQueue::post(Descriptor* descriptor,
                                                     memory::MemoryHandle handle,
                                                     const ControlSegment& control,
                                                     const Segment* segments, std::uint32_t fault,
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

    WorkEntry& entry = tail_.cell();
    tail_.advance();
    entry.descriptor = descriptor;
    entry.handle = handle;
    entry.segment_count = static_cast<std::uint16_t>(count);
    entry.control = control.control;
    entry.length = control.length;
    entry.immediate_data = control.immediate_data;
    entry.status = fault;
    // Member by member, as read() reads them: see there.
    for (std::uint32_t n = 0; n < 2 && n < count; ++n) {
        entry.segments[n].address = segments[n].address;
        entry.segments[n].handle = segments[n].handle;
        entry.segments[n].length = segments[n].length;
    }
    if (count > 2) [[unlikely]]
        fill_cells(segments, count);
    descriptor->control.status = 0;  // an old DONE must not be taken for ours (VIPL 4.9)
    posted_.store(tail_.position(), std::memory_order_release);
    posted_count_.store(posted_before + 1, std::memory_order_release);
    return Status::success;
}

}  // namespace via::queue
