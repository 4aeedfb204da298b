#include "engine/engine.hpp"

#include "base/assert.hpp"
#include "engine/mutation.hpp"

namespace via::engine {

Engine::Engine(const NicLimits& limits, memory::MemoryTable& memory, Counters& counters,
               std::uint32_t first_generation)
    : limits_(limits),
      memory_(memory),
      counters_(counters),
      news_(memory),
      vis_(limits.vis_max, first_generation),
      paths_(limits.connections_waiting_max, counters),
      refusals_(counters),
      requests_(limits_, paths_, news_, refusals_),
      short_ways_(!mutating()) {
    VIA_ASSERT(limits.reads_in_flight_max <= Vi::reads_max);
    emitted_.reserve(limits.turn_frames_max);
}

Result<Vi*> Engine::create_vi(const ViAttributes& attributes, queue::CompletionQueue* send_queue,
                              queue::CompletionQueue* receive_queue) {
    Vi* const free = vis_.next_free();
    if (free == nullptr) return std::unexpected(Status::error_resource);
    attempts_.make_room(vis_.made());
    Vi& vi = *free;
    if (!vi.send.work.prepare() || !vi.receive.work.prepare())
        return std::unexpected(Status::error_resource);
    vi.attributes = attributes;
    vi.send.completions = send_queue;
    vi.receive.completions = receive_queue;
    vi.connect_status = Status::success;
    vi.state.store(ViState::idle, std::memory_order_relaxed);
    vis_.open(vi);
    counters_.add(Counter::vis_open);
    return &vi;
}

Status Engine::destroy_vi(Vi& vi) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    // A post is there before, or finds nothing.
    const queue::WorkQueue::Lock::Guard senders(vi.send.work.post_lock());
    const queue::WorkQueue::Lock::Guard receivers(vi.receive.work.post_lock());
    if (!vi.send.work.empty() || !vi.receive.work.empty()) return Status::error_resource;
    vis_.close(vi);
    News::forget(vi);
    vi.attach.reset();
    // What it asked for and was told is not the next one's in its place.
    vi.peer = vi.wants_credits = false;
    vi.user_data.store(nullptr, std::memory_order_relaxed);
    vi.own_data.reset();
    vi.remote_data.reset();
    vi.send.work.reset();
    vi.receive.work.reset();
    vi.send_use = vi.receive_use = {};
    counters_.subtract(Counter::vis_open);
    news_.progressed();
    return Status::success;
}

namespace {

/// May a VI with that tag use what the posted receives name (VIPL 4.7)?
bool may_use_posted(const memory::MemoryTable& memory, memory::ProtectionTag tag,
                    queue::WorkQueue& work) {
    if (tag == memory::no_tag) return true;
    for (queue::Cursor at = work.oldest(); at.position() != work.posted(); at.pass()) {
        const queue::WorkEntry& entry = at.cell();
        if ((entry.status & queue::status::error_mask) != 0) continue;  // uses nothing
        if (!memory.look(entry.handle).serves(tag)) return false;
        for (queue::SegmentWalk walk(at); !walk.done();) {
            const queue::Segment& segment = walk.next();
            if (segment.length != 0 && !memory.look(segment.handle).serves(tag)) return false;
        }
    }
    return true;
}

}  // namespace

Status Engine::set_attributes(Vi& vi, const ViAttributes& attributes) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    const queue::WorkQueue::Lock::Guard senders(vi.send.work.post_lock());
    const queue::WorkQueue::Lock::Guard receivers(vi.receive.work.post_lock());
    // What is posted was checked against the old tag. Sends of an idle VI touch nothing any more.
    if (attributes.tag != vi.attributes.tag &&
        !may_use_posted(memory_, attributes.tag, vi.receive.work))
        return Status::error_resource;
    vi.attributes = attributes;
    return Status::success;
}

std::uint32_t Engine::vis_with_tag(memory::ProtectionTag tag) const {
    std::uint32_t count = 0;
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        const Vi& vi = vis_[index];
        if (ViTable::exists(vi) && vi.attributes.tag == tag) ++count;
    }
    return count;
}

bool Engine::is_bound(const queue::CompletionQueue& queue) const {
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        const Vi& vi = vis_[index];
        if (ViTable::exists(vi) &&
            (vi.send.completions == &queue || vi.receive.completions == &queue))
            return true;
    }
    return false;
}

bool Engine::uses_region(memory::MemoryHandle handle) {
    const bool suspended = !memory_.live(handle);
    bool fenced = false;
    for (std::uint32_t index = 0; index < vis_.made(); ++index) {
        Vi& vi = vis_[index];
        if (!ViTable::exists(vi)) continue;
        if (suspended) {  // a post that found it is there now
            vi.send.work.wait_for_posters(fenced);
            vi.receive.work.wait_for_posters(fenced);
        }
        if (vi.send_use.uses(vi.send.work, handle, true, news_.progress(), looked_at_) ||
            vi.receive_use.uses(vi.receive.work, handle, false, news_.progress(), looked_at_))
            return true;
    }
    return false;
}

bool Engine::reach_segments(queue::ByteWalk walk, std::uint64_t length) {
    bool reached = true;
    walk.take(length, [&](const std::byte* piece, std::size_t bytes) {
        reached = reached && translations_->reach(walk.handle(),
                                                  reinterpret_cast<std::uint64_t>(piece), bytes);
    });
    return reached;
}

}  // namespace via::engine
