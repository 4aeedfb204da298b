#include "engine/engine.hpp"

#include <new>

#include "base/assert.hpp"
#include "engine/mutation.hpp"

namespace via::engine {

Engine::Engine(const NicLimits& limits, memory::MemoryTable& memory, Counters& counters,
               std::uint32_t first_generation)
    : limits_(limits),
      memory_(memory),
      counters_(counters),
      first_generation_(first_generation & ~1U),
      vi_table_(
          std::make_unique<Atomic<Vi*>[]>((limits.vis_max + vis_per_chunk - 1) / vis_per_chunk)),
      short_ways_(!mutating()) {
    VIA_ASSERT(limits.vis_max <= 1U << 16);
    VIA_ASSERT(limits.reads_in_flight_max <= Vi::reads_max);
    emitted_.reserve(limits.turn_frames_max);
}

Engine::~Engine() {
    while (listeners_.pop_front() != nullptr) {
    }
    while (eventful_.pop_front() != nullptr) {
    }
    while (sending_.pop_front() != nullptr) {
    }
    for (auto& path : paths_)
        while (path->active.pop_front() != nullptr) {
        }
    for (std::uint32_t at = 0; at < vi_slots_made_; at += vis_per_chunk)
        delete[] vi_table_[at / vis_per_chunk].load(std::memory_order_relaxed);
}

Result<Vi*> Engine::create_vi(const ViAttributes& attributes, queue::CompletionQueue* send_queue,
                              queue::CompletionQueue* receive_queue) {
    if (free_vis_.empty()) {
        if (vi_slots_made_ == limits_.vis_max) return std::unexpected(Status::error_resource);
        // A VI that ends, or is pending, needs no memory.
        free_vis_.reserve(vi_slots_made_ + vis_per_chunk);
        deadlines_.reserve(vi_slots_made_ + vis_per_chunk);
        searches_.reserve(vi_slots_made_ + vis_per_chunk);
        expired_.reserve(vi_slots_made_ + vis_per_chunk);
        Vi* chunk = new (std::nothrow) Vi[vis_per_chunk];
        if (chunk == nullptr) return std::unexpected(Status::error_resource);
        vi_table_[vi_slots_made_ / vis_per_chunk].store(chunk, std::memory_order_release);
        for (std::uint32_t n = vis_per_chunk; n-- != 0;) {
            chunk[n].index = vi_slots_made_ + n;
            chunk[n].generation.store(first_generation_, std::memory_order_relaxed);
            free_vis_.push_back(vi_slots_made_ + n);
        }
        vi_slots_made_ += vis_per_chunk;
    }
    Vi& vi = vi_slot(free_vis_.back());
    if (!vi.send.work.prepare() || !vi.receive.work.prepare())
        return std::unexpected(Status::error_resource);
    free_vis_.pop_back();
    vi.attributes = attributes;
    vi.send.completions = send_queue;
    vi.receive.completions = receive_queue;
    vi.connect_status = Status::success;
    vi.state.store(ViState::idle, std::memory_order_relaxed);
    vi.generation.store(vi.generation.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
    ++vi_count_;
    counters_.add(Counter::vis_open);
    return &vi;
}

Status Engine::destroy_vi(Vi& vi) {
    if (vi.state_now() != ViState::idle) return Status::invalid_state;
    // A post is there before, or finds nothing.
    const queue::WorkQueue::Lock::Guard senders(vi.send.work.post_lock());
    const queue::WorkQueue::Lock::Guard receivers(vi.receive.work.post_lock());
    if (!vi.send.work.empty() || !vi.receive.work.empty()) return Status::error_resource;
    vi.generation.store(vi.generation.load(std::memory_order_relaxed) + 1,
                        std::memory_order_release);
    List<Vi, EventLink>::remove_if_linked(vi);
    vi.events = 0;
    vi.attach.reset();
    // What it asked for and was told is not the next one's in its place.
    vi.peer = vi.wants_credits = false;
    vi.user_data.store(nullptr, std::memory_order_relaxed);
    vi.own_data.reset();
    vi.remote_data.reset();
    vi.send.work.reset();
    vi.receive.work.reset();
    vi.send_use = vi.receive_use = {};
    free_vis_.insert(free_vis_.begin(), vi.index);  // last reused: stale handles stay stale longest
    --vi_count_;
    counters_.subtract(Counter::vis_open);
    progressed();
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
    for (std::uint32_t index = 0; index < vi_slots_made_; ++index) {
        const Vi& vi = *vi_at(index);
        if ((vi.generation.load(std::memory_order_relaxed) & 1) != 0 && vi.attributes.tag == tag)
            ++count;
    }
    return count;
}

bool Engine::is_bound(const queue::CompletionQueue& queue) const {
    for (std::uint32_t index = 0; index < vi_slots_made_; ++index) {
        const Vi& vi = *vi_at(index);
        if ((vi.generation.load(std::memory_order_relaxed) & 1) != 0 &&
            (vi.send.completions == &queue || vi.receive.completions == &queue))
            return true;
    }
    return false;
}

bool Engine::uses_region(memory::MemoryHandle handle) {
    const bool suspended = !memory_.live(handle);
    bool fenced = false;
    for (std::uint32_t index = 0; index < vi_slots_made_; ++index) {
        Vi& vi = vi_slot(index);
        if ((vi.generation.load(std::memory_order_relaxed) & 1) == 0) continue;
        if (suspended) {  // a post that found it is there now
            vi.send.work.wait_for_posters(fenced);
            vi.receive.work.wait_for_posters(fenced);
        }
        if (vi.send_use.uses(vi.send.work, handle, true, progress_, looked_at_) ||
            vi.receive_use.uses(vi.receive.work, handle, false, progress_, looked_at_))
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

bool Engine::next_event(ErrorEvent& event) {
    event = {};
    // Queues and VIs in turn: neither hides the other's.
    queue_told_ = !overrun_events_.empty() && (eventful_.empty() || !queue_told_);
    if (queue_told_) {
        event.code = ErrorCode::vi_overrun;
        OverrunEvents events = overrun_events_.front();
        overrun_events_.pop_front();
        event.completion_queue = events.queue;
        if (--events.count != 0) overrun_events_.push_back(events);
        return true;
    }
    Vi* vi = eventful_.front();
    if (vi == nullptr) return false;
    // A lost connection is told last: what led to it comes before (VIPL 4.18).
    constexpr std::uint32_t loss = (1U << static_cast<unsigned>(ErrorCode::connection_lost));
    std::uint32_t bits = vi->events & ~(loss | Vi::lost_descriptors);
    if (bits == 0) bits = vi->events;
    const auto code = static_cast<unsigned>(__builtin_ctz(bits));
    event.code = static_cast<ErrorCode>(code);
    if (event.code == ErrorCode::connection_lost)
        event.with_descriptors = std::exchange(vi->events, 0U) >> 31 != 0;
    vi->events &= ~(1U << code);
    event.vi = vi;
    event.vi_generation = vi->generation.load(std::memory_order_relaxed);
    if (vi->events == 0) List<Vi, EventLink>::remove(*vi);
    return true;
}

void Engine::report(Vi& vi, ErrorCode code) {
    vi.events |= 1U << static_cast<unsigned>(code);
    if (!static_cast<EventLink&>(vi).linked()) eventful_.push_back(vi);
    progressed();
}

}  // namespace via::engine
