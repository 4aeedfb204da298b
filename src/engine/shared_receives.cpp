#include "engine/shared_receives.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "base/assert.hpp"
#include "queue/descriptor.hpp"

namespace via::engine {

SharedReceives::SharedReceives(const NicLimits& limits, News& news, std::uint32_t first_generation)
    : max_(limits.shared_receive_queues_max),
      news_(news),
      slots_(std::make_unique<Slot[]>(limits.shared_receive_queues_max)) {
    for (std::uint32_t n = 0; n < max_; ++n)
        slots_[n].generation.store(first_generation & ~1U, std::memory_order_relaxed);
}

Result<std::uint64_t> SharedReceives::open(const SharedShape& shape) {
    if (free_.empty()) {
        if (made_ == max_) return std::unexpected(Status::error_resource);
        free_.push_back(made_);
        slots_[made_].queue = std::make_unique<SharedReceiveQueue>();
        ++made_;
    }
    const std::uint32_t index = free_.front();
    SharedReceiveQueue& queue = *slots_[index].queue;
    if (!queue.work.prepare()) return std::unexpected(Status::error_resource);
    queue.shape = shape;
    free_.pop_front();
    const std::uint32_t generation = slots_[index].generation.load() + 1;
    slots_[index].generation.store(generation, std::memory_order_release);
    return (std::uint64_t{generation} << 16) | index;
}

SharedReceiveQueue* SharedReceives::find(std::uint64_t name) const {
    const std::uint64_t index = name & 0xFFFF;
    if (index >= max_) return nullptr;
    const std::uint32_t generation = slots_[index].generation.load(std::memory_order_acquire);
    const bool alive = (generation & 1) != 0 && generation == name >> 16;
    return alive ? slots_[index].queue.get() : nullptr;
}

Status SharedReceives::close(std::uint64_t name) {
    SharedReceiveQueue* const queue = find(name);
    if (queue == nullptr) return Status::invalid_parameter;
    if (queue->vis != 0) return Status::error_resource;
    free_.push_back(static_cast<std::uint32_t>(name & 0xFFFF));  // first what needs memory
    Slot& slot = slots_[name & 0xFFFF];
    // A post is there before, or finds nothing.
    const queue::WorkQueue::Lock::Guard posters(queue->work.post_lock());
    slot.generation.store(slot.generation.load() + 1, std::memory_order_release);
    queue->work.reset();
    queue->use = {};
    queue->limit = 0;
    queue->rings.store(nullptr, std::memory_order_relaxed);
    queue->reached.store(false, std::memory_order_relaxed);
    news_.progressed();  // who waits for its limit waits no more
    return Status::success;
}

Status SharedReceives::attach(Vi& vi, SharedReceiveQueue* to) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    if (to != nullptr && to->shape.tag != vi.attributes.tag) return Status::invalid_ptag;
    VIA_ASSERT(!vi.awaits_receive);
    if (vi.shared != nullptr) --vi.shared->vis;
    vi.shared = to;
    if (to != nullptr) ++to->vis;
    return Status::success;
}

void SharedReceives::arm(SharedReceiveQueue& queue, std::uint32_t limit) {
    queue.limit = limit;
    queue.reached.store(false, std::memory_order_relaxed);
    note_limit(queue);
}

void SharedReceives::note_limit(SharedReceiveQueue& queue) {
    if (queue.limit == 0 || queue.left() >= queue.limit) return;
    queue.limit = 0;
    queue.reached.store(true, std::memory_order_release);
    news_.progressed();
}

namespace {

/// Copies the entry at `from` to the end of `to`, whose post_lock() is held. False: there is no
/// room.
[[gnu::noinline]] bool copy_entry(queue::Cursor& from, queue::WorkQueue& to, std::uint32_t quota) {
    const queue::WorkEntry& entry = from.cell();
    queue::ControlSegment control{};
    control.segment_count = entry.segment_count;
    control.control = entry.control;
    control.immediate_data = entry.immediate_data;
    control.length = entry.length;
    std::array<queue::Segment, queue::segments_max> segments;  // touched as far as there are some
    queue::SegmentWalk walk(from);
    std::generate_n(segments.begin(), entry.segment_count, [&walk] { return walk.next(); });
    return to.post(entry.descriptor, entry.handle, control, segments.data(), 0, quota) ==
           Status::success;
}

/// The common entry, in place of copy_entry().
[[gnu::always_inline]] inline bool copy_common(const queue::WorkEntry& entry, queue::WorkQueue& to,
                                               std::uint32_t quota) {
    queue::ControlSegment control;
    control.control = entry.control;
    control.immediate_data = entry.immediate_data;
    control.length = entry.length;
    return to.post_common(entry.descriptor, entry.handle, control, std::array{entry.segments[0]},
                          quota);
}

/// The oldest entry of the queue goes to the end of the VI's own. False: as SharedReceives::give().
[[gnu::always_inline]] inline bool pass_on(SharedReceiveQueue& from, queue::WorkQueue& to) {
    if (!from.work.has_current()) return false;
    const queue::WorkEntry& entry = from.work.current().cell();
    bool passed = false;
    {
        // Programs may post to the VI, too.
        const queue::WorkQueue::Lock::Guard guard(to.post_lock());
        passed = entry.segment_count == 1 && copy_common(entry, to, from.shape.quota);
        if (!passed && !copy_entry(from.work.current(), to, from.shape.quota)) return false;
    }
    ++from.given;
    if (passed) [[likely]] {
        from.work.pass_on_current();
        return true;
    }
    from.work.start_next();
    from.work.complete_oldest();
    queue::Taken taken;
    from.work.take(taken);
    return true;
}

}  // namespace

bool SharedReceives::give(Vi& vi) {
    if (!pass_on(*vi.shared, vi.receive.work)) return false;
    note_limit(*vi.shared);
    return true;
}

queue::WorkEntry* SharedReceives::oldest_for(Vi& vi) {
    SharedReceiveQueue* const from = vi.shared;
    queue::WorkQueue& work = vi.receive.work;
    if (from == nullptr || work.has_current() || !pass_on(*from, work)) return nullptr;
    if (from->limit != 0) [[unlikely]]
        note_limit(*from);
    return work.has_started() ? nullptr : &work.current().cell();
}

void SharedReceives::fill(Vi& vi) {
    const SharedReceiveQueue& from = *vi.shared;
    const queue::WorkQueue& work = vi.receive.work;
    const std::uint32_t share = std::max(1U, from.left() / from.vis);
    std::uint32_t there = work.posted_count() - work.completed_count();
    while (there < share && give(vi)) ++there;
    if (there != 0 || vi.awaits_receive) return;
    vi.awaits_receive = true;
    vi.next_awaiting = nullptr;
    SharedReceiveQueue& queue = *vi.shared;
    (queue.first_waiting == nullptr ? queue.first_waiting : queue.last_waiting->next_awaiting) =
        &vi;
    queue.last_waiting = &vi;
    ++queue.waiting;
    ++waiting_;
    news_.chore_came();
}

Vi& SharedReceives::next_waiting(SharedReceiveQueue& queue) {
    Vi& vi = *queue.first_waiting;
    forget(vi);
    return vi;
}

void SharedReceives::forget(Vi& vi) {
    if (!vi.awaits_receive) return;
    SharedReceiveQueue& queue = *vi.shared;
    Vi* before = nullptr;
    for (Vi* at = queue.first_waiting; at != &vi; at = at->next_awaiting) before = at;
    (before == nullptr ? queue.first_waiting : before->next_awaiting) = vi.next_awaiting;
    if (queue.last_waiting == &vi) queue.last_waiting = before;
    vi.awaits_receive = false;
    --queue.waiting;
    --waiting_;
}

std::uint32_t SharedReceives::with_tag(memory::ProtectionTag tag) const {
    std::uint32_t count = 0;
    for (std::uint32_t index = 0; index < made_; ++index)
        if (exists(index) && slots_[index].queue->shape.tag == tag) ++count;
    return count;
}

bool SharedReceives::uses(memory::MemoryHandle handle, bool suspended, bool& fenced,
                          std::uint64_t& looked_at) {
    for (std::uint32_t index = 0; index < made_; ++index) {
        if (!exists(index)) continue;
        SharedReceiveQueue& queue = *slots_[index].queue;
        if (suspended) queue.work.wait_for_posters(fenced);
        if (queue.use.uses(queue.work, handle, false, queue.given, looked_at)) return true;
    }
    return false;
}

}  // namespace via::engine
