#include "nic/nic.hpp"

#include <algorithm>
#include <mutex>

#include "base/assert.hpp"
#include "engine/check.hpp"

namespace via::nic {

namespace {

/// Segments that a post can read, VIPL's least (1.9).
constexpr std::uint32_t segments_read_max = 252;
/// Posts in one go with the queue's lock held.
constexpr std::size_t posts_locked_max = 64;

}  // namespace

Nic::Nic(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
         std::uint32_t first_generation)
    : name_(std::move(name)),
      limits_(limits),
      counters_(counters),
      attendant_(attendant),
      memory_(limits.regions_max, limits.protection_tags_max),
      engine_(limits, memory_, counters, first_generation),
      completion_queues_(std::make_unique<CompletionQueueSlot[]>(limits.completion_queues_max)) {
    for (std::uint32_t n = 0; n < limits.completion_queues_max; ++n)
        completion_queues_[n].generation.store(first_generation & ~1U, std::memory_order_relaxed);
    VIA_ASSERT(limits.paths_max <= 1U << paths_per_device_bits);
    VIA_ASSERT(limits.segments_per_descriptor_max <= segments_read_max);
}

Nic::~Nic() = default;

void Nic::add_device(std::unique_ptr<device::Device> device) {
    silent_ = silent_ || device->capabilities().silent;
    retransmitting_.push_back(device->capabilities().retransmits);
    devices_.push_back(std::move(device));
}

void Nic::cache_translations(const memory::CacheShape& shape, memory::LineLoader& loader) {
    VIA_ASSERT(devices_.empty() && translations_ == nullptr);
    translations_ = std::make_unique<memory::TranslationCache>(shape, memory_, counters_, loader);
    engine_.set_translations(*translations_);
}

// The turn ----------------------------------------------------------------------------------------

[[gnu::noinline]] void Nic::take(std::size_t index, device::PathEvent& event) {
    device::Device& device = *devices_[index];
    const engine::PathId id = path_id(index, event.path);
    if (event.kind == device::PathEventKind::down) {
        engine_.on_path_down(id);
        if (id < paths_.size()) paths_[id] = {};
        std::erase_if(found_, [id](const Found& found) { return found.path == id; });
        for (Segment& segment : segments_)
            std::erase_if(segment.grants, [id](const Grant& grant) { return grant.path == id; });
        return;
    }
    if (event.kind == device::PathEventKind::attached) {
        engine_.on_attached(id, event.cookie, std::move(event.attachment));
        return;
    }
    if (event.kind == device::PathEventKind::changed) {
        engine_.on_path_changed(id, event.payload_max);
        return;
    }
    if (event.kind != device::PathEventKind::unresolved &&
        (id >= paths_.size() || paths_[id].device == nullptr)) {
        if (id >= paths_.size()) paths_.resize(id + 1);
        paths_[id] = {&device, event.path, false, false};
        engine_.on_path_up(
            id, event.payload_max != 0 ? event.payload_max : device.capabilities().payload_max,
            device.peer_address(event.path), device.capabilities().retransmits);
    }
    if (event.kind == device::PathEventKind::up) return;
    const engine::PathId found = index == 0 ? take_found(event.cookie) : engine::no_path;
    engine::Vi* vi = engine_.vi_at(static_cast<std::uint32_t>(event.cookie & 0xFFFF));
    if (vi == nullptr || vi->number() != event.cookie) return;  // it gave up meanwhile
    if (event.kind == device::PathEventKind::resolved && index == 0) {
        engine_.connect_on(*vi, id);
    } else if (event.kind == device::PathEventKind::resolved) {
        found_.push_back({event.cookie, id});
        devices_.front()->resolve(vi->remote_address, event.cookie);
    } else if (found != engine::no_path) {
        engine_.connect_on(*vi, found);
    } else if (index + 1 < devices_.size()) {
        devices_[index + 1]->resolve(vi->remote_address, event.cookie);
    } else {
        engine_.not_found(*vi, event.status);
    }
}

/// What a later device found for that VI, while the first one was asked once more.
engine::PathId Nic::take_found(std::uint64_t cookie) {
    const auto at = std::find_if(found_.begin(), found_.end(),
                                 [=](const Found& found) { return found.cookie == cookie; });
    if (at == found_.end()) return engine::no_path;
    const engine::PathId path = at->path;
    found_.erase(at);
    return path;
}

/// What came of the frames that a lossy medium carried.
void Nic::reap_from(std::size_t index) {
    std::size_t count = 0;
    do {
        count = devices_[index]->reap(reaped_);
        for (std::size_t n = 0; n < count; ++n)
            engine_.on_reaped(path_id(index, reaped_[n].path), reaped_[n].number, reaped_[n].lost);
    } while (count == reaped_.size());
}

inline void Nic::receive_from(device::Device& device, std::size_t index, Turn& turn) {
    std::uint32_t bytes = 0;
    while (turn.frames < limits_.turn_frames_max && bytes < limits_.turn_bytes_max) {
        const std::size_t count = device.receive(frames_);
        if (retransmitting_[index]) reap_from(index);  // first, or a peer that leaves overtakes it
        if (count == 0) return;
        std::uint32_t taken = 0;
        for (std::size_t n = 0; n < count; ++n) {
            const device::Frame& frame = frames_[n];
            const engine::PathId id = path_id(index, frame.path);
            const std::uint32_t several = frame.count;
            taken += several;
            if (several != 1) frames_[n].count = 1;  // most devices leave it alone
            if (id >= paths_.size() || paths_[id].condemned) continue;
            bytes += (frame.length + frame.payload_length) * several;
            const engine::FrameVerdict verdict =
                engine_.on_frame(id, {frame.bytes, frame.length, frame.payload,
                                      frame.payload_length, several, frame.payloads});
            if (verdict == engine::FrameVerdict::refused)
                attendant_.refused(engine_.last_refusal());
            if (verdict == engine::FrameVerdict::fetched ||
                verdict == engine::FrameVerdict::not_fetched)
                device.transferred(frame.path, verdict == engine::FrameVerdict::fetched);
            if (verdict != engine::FrameVerdict::hostile) continue;
            paths_[id].condemned = true;
            device.condemn(frame.path, engine_.last_refusal());
        }
        if (device.release()) published_ = true;  // a peer may wait for the room
        turn.frames += taken;
        if (taken < frames_.size()) return;
    }
    turn.more = true;
}

void Nic::send_on(engine::PathId id, Turn& turn) {
    Path& path = paths_[id];
    device::Device& device = *path.device;
    const std::uint32_t large_min = device.capabilities().large_length_min;
    const bool lossless = device.capabilities().lossless;
    engine::FrameShape shape;
    std::uint32_t bytes = 0;
    std::uint32_t unpublished = 0;
    bool sent = false;
    const auto publish = [&] {
        if (unpublished != 0) device.transmit(path.local);
        unpublished = 0;
    };
    while (engine_.next_frame(id, shape)) {
        // A long message goes on in the next turn rather than in half a burst.
        if (turn.frames >= limits_.turn_frames_max || bytes >= limits_.turn_bytes_max ||
            (sent && shape.count > limits_.turn_frames_max - turn.frames)) {
            turn.more = true;
            break;
        }
        if (shape.fetchable != 0 && device.prefers_transfer(path.local, shape.fetchable))
            engine_.let_fetch(id, shape);
        if (engine_.goes_direct()) publish();  // it must not overtake them (VIPL 4.15)
        if (shape.header_length == 0) {
            engine_.carry_out(id);
            ++turn.frames;
            continue;
        }
        device::FrameSlot slot;
        slot.must_arrive = shape.must_arrive;
        slot.again = shape.again;
        slot.number = shape.number;
        if (shape.count > 1)
            slot.wanted = std::min({shape.count, limits_.turn_frames_max - turn.frames,
                                    1 + (limits_.turn_bytes_max - bytes) / shape.payload_length});
        if (!device.reserve(path.local, shape.header_length, shape.payload_length, slot)) {
            counters_.add(Counter::back_pressure);
            device.set_waiting_for_room(path.local);
            break;
        }
        engine_.emit(id, {slot.header, slot.payload, slot.stream, slot.number, slot.reference,
                          slot.count, slot.stride});
        turn.frames += slot.count;
        bytes += slot.count * shape.payload_length;
        ++unpublished;
        // The first goes at once, and large payloads one by one: the peer takes one while we fill
        // the next. Where frames share packets, the device decides.
        if ((!sent && lossless) || shape.payload_length >= large_min || slot.count > 1 ||
            unpublished == frames_.size())
            publish();
        sent = true;
    }
    publish();
    if (!sent) return;
    published_ = true;
    engine_.on_transmitted();
}

/// Messages that peers left in their memory for us.
[[gnu::noinline]] void Nic::fetch(Turn& turn) {
    std::uint64_t left = limits_.turn_bytes_max;
    while (engine::Vi* vi = left == 0 ? nullptr : engine_.next_fetch()) {
        const Path& path = paths_[vi->path];
        engine::FetchPiece piece;
        if (!engine_.next_piece(*vi, left, piece)) continue;
        const Status status =
            path.device->transfer(path.local, std::span(piece.remote).first(piece.remote_count),
                                  std::span(piece.local).first(piece.local_count));
        engine_.piece_ended(*vi, piece, status);
        left -= piece.bytes;
        ++turn.frames;
    }
    if (engine_.has_fetches()) turn.more = true;
}

const Turn& Nic::turn(Time now) {
    Turn& turn = turn_;
    turn = {};
    doorbells_.answer([this](engine::Vi& vi) { engine_.on_doorbell(vi); });
    for (std::size_t index = 0; index < devices_.size(); ++index) {
        device::Device& device = *devices_[index];
        while (device.next_event(event_)) [[unlikely]]
            take(index, event_);
        receive_from(device, index, turn);
    }
    if (engine_.has_fetches()) [[unlikely]]
        fetch(turn);
    if (engine_.has_questions()) [[unlikely]]
        answer_questions();
    engine_.on_time(now);
    if (engine_.has_searches(now)) [[unlikely]]
        look_for_peers(now);
    engine_.pump();
    for (engine::PathId id = engine_.first_sending(); id != engine::no_path;) {
        const engine::PathId next = engine_.next_sending(id);
        send_on(id, turn);
        id = next;
    }
    deadline_ = engine_.next_deadline();  // frames and devices may bring one, too
    work_left_ = turn.more;
    turn.progress = engine_.progress() != progress_seen_;
    return turn;
}

[[gnu::noinline]] void Nic::report_events() {
    engine::ErrorEvent event;
    while (attendant_.wants_reports() && engine_.next_event(event)) {
        if (event.completion_queue != nullptr)
            event.completion_queue_name = completion_queue_name(*event.completion_queue);
        attendant_.report(event);
    }
}

void Nic::end_turn(bool polling) {
    for (;;) {
        if (engine_.has_event()) [[unlikely]]
            report_events();
        if (published_) {
            published_ = false;
            for (auto& device : devices_)
                if (const std::uint32_t calls = device->notify())
                    counters_.add(Counter::peers_woken, calls);
        }
        while (queue::CompletionQueue* queue = engine_.next_signal()) attendant_.entry_came(*queue);
        const bool progress = engine_.progress() != progress_seen_;
        progress_seen_ = engine_.progress();
        bool left = false;
        if (work_left_ || silent_ || armed_ != device::Sleep::awake) [[unlikely]]
            left = (work_left_ && !polling) || (silent_ && has_work()) || sleeper_is_late();
        lock_.release();  // a full fence: who waits now sees our progress, or we see the waiting
        const std::uint32_t attention = attention_.load(std::memory_order_relaxed);
        if ((polling && (attention & agent_sleeps) != 0) ||
            (progress && (attention & somebody_waits) != 0))
            attendant_.attend();
        if (left) attendant_.work_is_left();
        if (!doorbells_.any() || !lock_.try_take()) return;
        turn(now_if_needed());
    }
}

/// A deadline came up, of a packet that was sent for instance, before the one that somebody sleeps
/// for. True once.
bool Nic::sleeper_is_late() {
    if (armed_ == device::Sleep::awake) return false;
    const Time due = next_deadline();
    if (due >= sleep_until_) return false;
    sleep_until_ = due;
    return true;
}

inline Nic::Polled Nic::try_poll() {
    if (!lock_.try_take()) return Polled::not_at_all;
    counters_.add(Counter::polls);
    const bool progress = turn(now_if_needed()).progress;
    end_turn(true);
    return progress ? Polled::with_progress : Polled::in_vain;
}

bool Nic::poll() { return try_poll() == Polled::with_progress; }

void Nic::poll_surely() {
    lock_.take();
    counters_.add(Counter::polls);
    turn(now_if_needed());
    end_turn();
}

Time Nic::next_deadline() const {
    Time deadline = engine_.next_deadline();
    for (const auto& device : devices_) deadline = earlier(deadline, device->next_deadline());
    return deadline;
}

bool Nic::has_work() {
    if (doorbells_.any() || work_left_) return true;
    return std::any_of(devices_.begin(), devices_.end(),
                       [](auto& device) { return device->has_work(); });
}

void Nic::arm(device::Sleep sleep) {
    for (auto& device : devices_) device->arm(sleep);
    armed_ = sleep;
    sleep_until_ = {};
}

void Nic::service(Time now) {
    for (auto& device : devices_) device->service(now);
}

void Nic::close() {
    lock_.take();
    engine_.disconnect_all();
    turn(now_if_needed());
    end_turn();
    lock_.take();
    for (engine::PathId id = 0; id < paths_.size(); ++id)
        if (paths_[id].device != nullptr) engine_.on_path_down(id);
    paths_.clear();
    devices_.clear();
    imports_.clear();
    segments_.clear();
    lock_.release();
}

void Nic::leave() {
    lock_.take();
    devices_.clear();
}

// Data path ---------------------------------------------------------------------------------------

/// With the queue's post_lock() held. success: posted. not_done: posted, and the NIC has to
/// complete it at once, for its fault or the VI's state. Else why it was not posted.
template <bool receive>
[[gnu::always_inline]] inline Status Nic::post_locked(engine::Vi& vi, void* address,
                                                      memory::MemoryHandle handle) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    auto* descriptor = static_cast<queue::Descriptor*>(address);
    const memory::ProtectionTag tag = vi.attributes.tag;
    queue::WorkQueue& work = receive ? vi.receive.work : vi.send.work;
    if (address == nullptr || at % queue::descriptor_alignment != 0)
        return Status::invalid_parameter;
    const memory::Region region = memory_.look(handle);
    if (!region.allows(at, sizeof(queue::Descriptor), tag, memory::Access::local))
        return Status::invalid_parameter;
    queue::Descriptor copy = queue::read(*descriptor);
    const queue::Segment* segments = copy.segments;
    queue::Segment many[segments_read_max];  // touched only by descriptors that need it
    if (copy.control.segment_count > 2) [[unlikely]] {
        const std::uint32_t count = copy.control.segment_count;
        if (count > limits_.segments_per_descriptor_max) {
            segments = nullptr;
        } else if (region.allows(at, queue::descriptor_length(count), tag, memory::Access::local)) {
            segments = std::copy_n(descriptor->segments, count, many) - count;
        } else {
            return Status::invalid_parameter;
        }
    }
    const engine::CheckContext context{memory_, region, tag, vi.attributes.transfer_length_max,
                                       vi.reliable()};
    std::uint32_t fault = queue::status::format_error;
    if (segments != nullptr)
        fault = receive
                    ? engine::check_receive(context, copy.control, segments, copy.control.length)
                    : engine::check_send(context, copy.control, segments);
    if (receive && fault != 0) [[unlikely]]
        vi.receive_faults.fetch_add(1, std::memory_order_relaxed);
    const Status status = work.post(descriptor, handle, copy.control, segments, fault,
                                    limits_.descriptors_per_queue_max);
    if (status == Status::success) [[likely]] {
        // Read under post_lock(): a VI that breaks now waits for us and flushes what we posted.
        const engine::ViState state = vi.state.load(std::memory_order_relaxed);
        const bool at_once =
            receive ? state == engine::ViState::error : state != engine::ViState::connected;
        return fault != 0 || at_once ? Status::not_done : Status::success;
    }
    if (receive && fault != 0) vi.receive_faults.fetch_sub(1, std::memory_order_relaxed);
    return status;
}

template <bool receive>
Status Nic::post(engine::Vi& vi, void* address, memory::MemoryHandle handle) {
    std::lock_guard guard((receive ? vi.receive : vi.send).work.post_lock());
    return post_locked<receive>(vi, address, handle);
}

/// The common message, posted where nobody waits. False: it goes the general way.
inline bool Nic::send_plain(engine::Vi& vi) {
    engine::FrameShape shape;
    if (!engine_.next_is_plain(vi, shape)) return false;
    if (shape.header_length == 0) {
        engine_.carry_out_plain(vi);
        return true;
    }
    const Path& path = paths_[vi.path];
    device::Device& device = *path.device;
    device::FrameSlot slot;
    slot.must_arrive = shape.must_arrive;
    if (!device.reserve(path.local, shape.header_length, shape.payload_length, slot)) return false;
    engine_.emit_plain(vi, {slot.header, slot.payload, slot.stream, slot.number, slot.reference});
    device.transmit(path.local);
    published_ = true;
    engine_.plain_transmitted(vi);
    return true;
}

/// What a post needs of a turn, by its poster.
void Nic::answer_post(engine::Vi& vi) {
    Turn turn;
    engine_.on_doorbell(vi);
    if (vi.path != engine::no_path) send_on(vi.path, turn);
    if (turn.more) work_left_ = true;
}

/// After posts that the NIC has to look at: takes a turn if nobody else has it.
void Nic::begin_sends(engine::Vi& vi) {
    if (lock_.try_take()) {
        for (std::uint32_t left = limits_.turn_frames_max; left != 0 && send_plain(vi); --left)
            if (!vi.send.work.has_current()) return end_turn();
        answer_post(vi);
        end_turn();
        return;
    }
    doorbells_.ring(vi);
    if (lock_.try_take()) {
        turn(now_if_needed());
        end_turn();
    }
}

Status Nic::post_send(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle) {
    const Status status = post<false>(vi, descriptor, handle);
    if (status == Status::success) {
        begin_sends(vi);
        return status;
    }
    if (status != Status::not_done) return status;
    doorbells_.ring(vi);
    poll_surely();
    return Status::success;
}

Status Nic::post_receive(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle) {
    const Status status = post<true>(vi, descriptor, handle);
    if (status == Status::not_done) {
        doorbells_.ring(vi);
        poll_surely();
        return Status::success;
    }
    if (status == Status::success && vi.credits_agreed.load(std::memory_order_relaxed))
        tell_of_receives(vi);
    return status;
}

/// The peer may wait for them. Most need no word, so this looks at nothing else: a look at the
/// devices is a system call on a network, and sends an acknowledgement that the answer would take
/// along.
void Nic::tell_of_receives(engine::Vi& vi) {
    if (lock_.try_take()) {
        answer_post(vi);
        end_turn();
        return;
    }
    doorbells_.ring(vi);
    poll();
}

/// Posts up to the first that is refused. not_done: all, and one of them as post_locked() says.
template <bool receive>
Status Nic::post_all(engine::Vi& vi, std::span<void* const> descriptors,
                     const memory::MemoryHandle* handles, std::uint32_t& posted) {
    Status result = Status::success;
    for (posted = 0; posted < descriptors.size();) {
        // Who changes a region or a state waits for the lock: not for long.
        std::lock_guard guard((receive ? vi.receive : vi.send).work.post_lock());
        const std::size_t end = std::min(descriptors.size(), posted + posts_locked_max);
        for (; posted < end; ++posted) {
            const Status status = post_locked<receive>(vi, descriptors[posted], handles[posted]);
            if (status == Status::not_done) {
                result = status;
            } else if (status != Status::success) {
                return status;
            }
        }
    }
    return result;
}

Status Nic::post_many(engine::Vi& vi, bool receive, std::span<void* const> descriptors,
                      const memory::MemoryHandle* handles, std::uint32_t& posted) {
    const Status status = receive ? post_all<true>(vi, descriptors, handles, posted)
                                  : post_all<false>(vi, descriptors, handles, posted);
    // One that must be completed at once may stand before one that was refused.
    if (status != Status::success && posted != 0) {
        doorbells_.ring(vi);
        poll_surely();
    } else if (posted != 0 && !receive) {
        begin_sends(vi);
    } else if (posted != 0 && vi.credits_agreed.load(std::memory_order_relaxed)) {
        tell_of_receives(vi);
    }
    return status == Status::not_done ? Status::success : status;
}

Status Nic::done(engine::ViQueue& queue, void*& descriptor) {
    queue::WorkQueue& work = queue.work;
    const auto nothing = [&] {
        descriptor = nullptr;
        return work.empty() ? Status::descriptor_error : Status::not_done;
    };
    if (!work.has_done()) {
        if (work.empty()) return nothing();
        const bool had_turn = try_poll() != Polled::not_at_all;
        if (!work.has_done()) {
            // Who had the turn saw all that was completed before. Else another thread may be
            // between the two steps of completing what the program has seen done already.
            if (had_turn || !work.head_is_written()) return nothing();
            poll_surely();
        }
    }
    queue::Taken taken;
    if (!work.take(taken)) return nothing();
    descriptor = taken.descriptor;
    return (taken.status & queue::status::error_mask) != 0 ? Status::descriptor_error
                                                           : Status::success;
}

Status Nic::done_many(engine::ViQueue& queue, std::span<void*> descriptors, std::uint32_t& taken) {
    const Status status = done(queue, descriptors.front());
    taken = descriptors.front() == nullptr ? 0 : 1;
    if (status != Status::success) return status;
    bool failed = false;
    taken += queue.work.take(descriptors.subspan(1), failed);
    return failed ? Status::descriptor_error : Status::success;
}

Status Nic::completion_done(queue::CompletionQueue& queue, queue::Completion& completion) {
    for (int tries = 0;;) {
        while (queue.pop(completion)) {
            const engine::Vi* vi =
                engine_.vi_at(static_cast<std::uint32_t>(completion.vi & 0xFFFF));
            // Entries of a destroyed VI are gone (VIPL 4.16).
            if (vi != nullptr &&
                vi->generation.load(std::memory_order_acquire) == completion.vi >> 16)
                return Status::success;
            tries = 0;  // others may have entered in its place
        }
        if (++tries == 2) return Status::not_done;
        poll();
    }
}

}  // namespace via::nic
