// The data path: posts and done, from any thread.
#include <algorithm>
#include <array>
#include <cstring>

#include "engine/check.hpp"
#include "engine/fast_path.hpp"
#include "engine/mutation.hpp"
#include "nic/nic.hpp"
#include "wire/frame.hpp"

namespace via::nic {

using engine::mutated;
using engine::Mutation;

namespace {

/// Posts in one go with the queue's lock held.
constexpr std::size_t posts_locked_max = 64;

/// Of a descriptor that was posted without a fault: success, or not_done if the NIC has to complete
/// it at once. Read under post_lock(): a VI that breaks now waits for us and flushes what we
/// posted.
template <bool receive>
[[gnu::always_inline]] inline Status posted(const engine::Vi& vi) {
    const engine::ViState state = vi.state.load(std::memory_order_relaxed);
    const bool at_once =
        receive ? state == engine::ViState::error : state != engine::ViState::connected;
    return at_once ? Status::not_done : Status::success;
}

}  // namespace

/// With the queue's post_lock() held: posts the common descriptor, of one segment in `region`,
/// which the VI may use, or an RDMA write of one. False: it is none.
template <bool receive, std::size_t count>
[[gnu::always_inline]] inline bool Nic::post_common(
    engine::Vi& vi, queue::Descriptor* descriptor, memory::MemoryHandle handle,
    queue::ControlSegment control, const std::array<queue::Segment, count>& segments,
    const memory::Region& region) {
    const std::uint32_t length_max = vi.attributes.transfer_length_max;
    bool plain = false;
    if constexpr (receive) {
        control.length = segments[0].length;
        plain = engine::is_common_receive(region, control, segments[0]);
    } else if constexpr (count == 2) {
        plain = engine::is_common_write(region, control, segments[1], length_max);
    } else {
        plain = engine::is_common_send(region, control, segments[0], length_max);
    }
    queue::WorkQueue& work = receive ? vi.receive.work : vi.send.work;
    return plain && work.post_common(descriptor, handle, control, segments,
                                     limits_.descriptors_per_queue_max);
}

/// By the holder of the turn: whoever wrote a descriptor that has a fault may want to know more.
template <bool receive>
[[gnu::noinline]] void Nic::note_refused(engine::Vi& vi, const queue::ControlSegment& control,
                                         const queue::Segment* segments) noexcept {
    const std::uint32_t operation = control.control & queue::control::operation_mask;
    const bool writes = receive || operation == queue::control::rdma_read;
    const bool remote = !receive && operation != queue::control::send_receive;
    for (std::uint32_t n = remote ? 1 : 0; n < control.segment_count; ++n)
        engine_.news().note_refused(segments[n].handle, segments[n].address, segments[n].length,
                                    vi.attributes.tag,
                                    writes ? memory::Access::local_write : memory::Access::local);
}

/// With the queue's post_lock() held. success: posted. not_done: posted, and the NIC has to
/// complete it at once, for its fault or the VI's state. Else why it was not posted;
/// invalid_parameter for a fault, too, unless regions are settled. `region` holds the descriptor as
/// far as all have it, and `control` is what was read of it.
template <bool receive>
[[gnu::noinline]] Status Nic::post_any(engine::Vi& vi, void* address, memory::MemoryHandle handle,
                                       const memory::Region& region, queue::ControlSegment control,
                                       bool settled) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    auto* descriptor = static_cast<queue::Descriptor*>(address);
    const memory::ProtectionTag tag = vi.attributes.tag;
    const std::uint32_t count = control.segment_count;
    queue::Segment few[2];
    queue::Segment many[queue::segments_max];  // touched only by descriptors that need it
    const queue::Segment* segments = few;
    if (count > 2) [[unlikely]] {
        if (count > limits_.segments_per_descriptor_max) {
            segments = nullptr;
        } else if (region.allows(at, queue::descriptor_length(count), tag, memory::Access::local)) {
            segments = std::copy_n(descriptor->segments, count, many) - count;
        } else {
            return Status::invalid_parameter;
        }
    } else {
        for (std::uint32_t n = 0; n < count; ++n) few[n] = queue::read(descriptor->segments[n]);
    }
    // Libraries above VIA have their users' buffers in other regions than their descriptors.
    if (count == 1 && few[0].handle != handle) {
        const memory::Region of_buffer = memory_.look(few[0].handle);
        const std::array<queue::Segment, 1> one{few[0]};
        constexpr auto access = receive ? memory::Access::local_write : memory::Access::local;
        if (of_buffer.serves(tag) && of_buffer.grants(access) &&
            post_common<receive>(vi, descriptor, handle, control, one, of_buffer)) [[likely]]
            return posted<receive>(vi);
    }
    const engine::CheckContext context{memory_, region, tag, vi.attributes.transfer_length_max,
                                       vi.reliable()};
    std::uint32_t fault = queue::status::format_error;
    if (segments != nullptr)
        fault = receive ? engine::check_receive(context, control, segments, control.length)
                        : engine::check_send(context, control, segments);
    if (fault != 0 && !settled) [[unlikely]]
        return Status::invalid_parameter;
    if (fault != 0) [[unlikely]] {
        if (fault == queue::status::protection_error) note_refused<receive>(vi, control, segments);
        if (receive) vi.receive_faults.fetch_add(1, std::memory_order_relaxed);
    }
    queue::WorkQueue& work = receive ? vi.receive.work : vi.send.work;
    const Status status =
        work.post(descriptor, handle, control, segments, fault, limits_.descriptors_per_queue_max);
    if (status == Status::success) [[likely]]
        return fault != 0 ? Status::not_done : posted<receive>(vi);
    if (receive && fault != 0) vi.receive_faults.fetch_sub(1, std::memory_order_relaxed);
    return status;
}

/// The same, at once where it is a common descriptor.
template <bool receive>
[[gnu::always_inline]] inline Status Nic::post_locked(engine::Vi& vi, void* address,
                                                      memory::MemoryHandle handle, bool settled) {
    const memory::Region region = memory_.look(handle);
    if (!engine::is_descriptor_in(region, address, vi.attributes.tag)) [[unlikely]]
        return Status::invalid_parameter;
    auto* descriptor = static_cast<queue::Descriptor*>(address);
    const queue::ControlSegment control = queue::read(descriptor->control);
    if (control.segment_count == 1) [[likely]] {
        const std::array segments{queue::read(descriptor->segments[0])};
        if (post_common<receive>(vi, descriptor, handle, control, segments, region)) [[likely]]
            return posted<receive>(vi);
    } else if (!receive && control.control == queue::control::rdma_write &&
               control.segment_count == 2) {
        const std::array segments{queue::read(descriptor->segments[0]),
                                  queue::read(descriptor->segments[1])};
        if (post_common<receive>(vi, descriptor, handle, control, segments, region)) [[likely]]
            return posted<receive>(vi);
    }
    return post_any<receive>(vi, address, handle, region, control, settled);
}

/// Calls `locked`, which posts, by the holder of the turn, whom nobody changes or ends regions
/// without.
template <bool receive, class Locked>
[[gnu::noinline]] Status Nic::post_settled(engine::Vi& vi, void* address,
                                           memory::MemoryHandle handle, Locked locked) {
    return holding_turn([&] {
        const queue::WorkQueue::Lock::Guard guard(
            (receive ? vi.receive : vi.send).work.post_lock());
        const Status status = locked();
        if (status == Status::invalid_parameter)
            engine_.news().note_refused(handle, reinterpret_cast<std::uint64_t>(address),
                                        sizeof(queue::Descriptor), vi.attributes.tag,
                                        memory::Access::local_write);
        return status;
    });
}

template <bool receive>
[[gnu::always_inline]] inline Status Nic::post(engine::Vi& vi, void* address,
                                               memory::MemoryHandle handle) {
    Status status;
    {
        const queue::WorkQueue::Lock::Guard guard(
            (receive ? vi.receive : vi.send).work.post_lock());
        status = post_locked<receive>(vi, address, handle, false);
    }
    if (status == Status::invalid_parameter) [[unlikely]]
        return post_settled<receive>(vi, address, handle, [this, &vi, address, handle] {
            return post_locked<receive>(vi, address, handle, true);
        });
    return status;
}

/// The common message of some words, where the device takes it in one call. False: send_common().
[[gnu::always_inline]] inline bool Nic::send_small(engine::Vi& vi) {
    if (!engine_.next_is_small(vi)) [[unlikely]]
        return false;
    const queue::WorkEntry& entry = engine_.small_entry();
    const Path& path = paths_[vi.path];
    const bool alone =
        !published_ && vi.send.work.is_last_posted() && !mutated(Mutation::send_small_unpublished);
    const std::uint32_t calls = path.small_sends->send_small(
        path.local, wire::whole_send_low(vi.remote_number), wire::whole_send_high(vi.next_message),
        reinterpret_cast<const std::byte*>(entry.segments[0].address),
        entry.length - (mutated(Mutation::send_small_too_little) && entry.length != 0 ? 1 : 0),
        alone);
    if (calls != 0) [[unlikely]] {
        if (calls == device::SmallSends::not_sent) return false;
        counters_.add(Counter::peers_woken, calls);
    }
    if (!alone && !mutated(Mutation::send_small_unpublished)) published_ = true;
    engine_.small_sent(vi);
    return true;
}

/// The same of two pieces, as of libraries that put something in front of their users' bytes.
inline bool Nic::send_pieces(engine::Vi& vi) {
    if (published_ || !engine_.next_is_small<true>(vi) || !vi.send.work.is_last_posted())
        return false;
    const queue::WorkEntry& entry = engine_.small_entry();
    const queue::Segment* const segments = entry.segments;
    const queue::Segment& first = segments[mutated(Mutation::swap_pieces) ? 1 : 0];
    const queue::Segment& second = segments[mutated(Mutation::swap_pieces) ? 0 : 1];
    const Path& path = paths_[vi.path];
    const std::uint32_t calls = path.small_sends->send_pieces(
        path.local, wire::whole_send_low(vi.remote_number), wire::whole_send_high(vi.next_message),
        {reinterpret_cast<const std::byte*>(first.address), first.length,
         reinterpret_cast<const std::byte*>(second.address), second.length});
    if (calls == device::SmallSends::not_sent) return false;
    if (calls != 0) counters_.add(Counter::peers_woken, calls);
    engine_.small_sent(vi);
    return true;
}

/// The common message, posted where nobody waits. False: it goes the general way.
[[gnu::noinline]] bool Nic::send_common(engine::Vi& vi) {
    engine::FrameShape shape;
    if (!engine_.next_is_common(vi, shape)) return send_pieces(vi);
    const Path& path = paths_[vi.path];
    device::Device& device = *path.device;
    if (shape.header_length == 0) {
        if (published_) device.transmit(path.local);  // it must not overtake small ones (VIPL 4.15)
        engine_.carry_out_common(vi);
        return true;
    }
    device::FrameSlot slot;
    slot.must_arrive = shape.must_arrive;
    if (!device.reserve(path.local, shape.header_length, shape.payload_length, slot)) return false;
    engine_.emit_common(vi, {slot.header, slot.payload, slot.stream, slot.number, slot.reference});
    device.transmit(path.local);
    // A datagram leaves with that call: while it travels, we see to what is left.
    if (devices_.drops(vi.path >> paths_per_device_bits))
        counters_.add(Counter::peers_woken, device.notify());
    else
        published_ = true;
    engine_.common_transmitted(vi);
    return true;
}

/// What a post needs of a turn, by its poster.
void Nic::answer_post(engine::Vi& vi) {
    Turn turn;
    if (!mutated(Mutation::answer_post_unheard)) engine_.on_doorbell(vi);
    if (vi.path != engine::no_path) send_on(vi.path, turn);
    if (turn.more) work_left_ = true;
}

/// After posts that the NIC has to look at: takes a turn if nobody else has it.
[[gnu::always_inline]] inline void Nic::begin_sends(engine::Vi& vi) {
    if (!lock_.try_take()) [[unlikely]]
        return leave_to_holder(vi);
    std::uint32_t left = limits_.turn_frames_max;
    do {
        if (left-- == 0 || !(send_small(vi) || send_common(vi))) [[unlikely]] {
            answer_post(vi);
            break;
        }
    } while (vi.send.work.has_current());
    end_turn();
}

/// Another one has the turn: it hears of the posts, or has let it go meanwhile.
[[gnu::noinline]] void Nic::leave_to_holder(engine::Vi& vi) {
    doorbells_.ring(vi);
    if (!lock_.try_take()) return;
    turn(now_if_needed());
    end_turn();
}

/// A post that must complete at once.
[[gnu::noinline]] void Nic::complete_post(engine::Vi& vi) {
    doorbells_.ring(vi);
    poll_surely();
}

/// What a post to the send queue leaves to do.
[[gnu::always_inline]] inline Status Nic::end_post(engine::Vi& vi, Status status) {
    if (status == Status::success) [[likely]] {
        begin_sends(vi);
        return status;
    }
    if (status != Status::not_done) return status;
    complete_post(vi);
    return Status::success;
}

Status Nic::post_send(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle) {
    return end_post(vi, post<false>(vi, descriptor, handle));
}

/// As post_locked(), of an atomic operation.
Status Nic::post_atomic_locked(engine::Vi& vi, void* address, memory::MemoryHandle handle,
                               const memory::WordChange& change, bool settled) {
    const memory::Region region = memory_.look(handle);
    const memory::ProtectionTag tag = vi.attributes.tag;
    if (!engine::is_descriptor_in(region, address, tag)) return Status::invalid_parameter;
    auto* descriptor = static_cast<queue::Descriptor*>(address);
    queue::ControlSegment control = queue::read(descriptor->control);
    queue::Segment segments[3] = {queue::read(descriptor->segments[0]),
                                  queue::read(descriptor->segments[1])};
    static_assert(sizeof(queue::Segment) == 2 * sizeof(std::uint64_t));
    const std::uint64_t words[2] = {change.operand, change.desired};
    std::memcpy(&segments[2], words, sizeof words);
    const engine::CheckContext context{memory_, region, tag, vi.attributes.transfer_length_max,
                                       vi.reliable()};
    if (vi.state.load() == engine::ViState::connected &&
        !vi.peer_knows_atomics.load(std::memory_order_relaxed))
        return Status::error_not_supported;
    const std::uint32_t fault = engine::check_atomic(context, control, segments);
    if (fault != 0 && !settled) return Status::invalid_parameter;
    if (fault == queue::status::protection_error)
        engine_.news().note_refused(segments[1].handle, segments[1].address, segments[1].length,
                                    tag, memory::Access::local_write);
    const bool two = control.segment_count == 2;
    control.segment_count = 3;
    control.control = static_cast<std::uint16_t>((control.control & queue::control::queue_fence) |
                                                 queue::control::atomic |
                                                 (change.adds ? queue::control::adds : 0));
    const Status status = vi.send.work.post(descriptor, handle, control, two ? segments : nullptr,
                                            fault, limits_.descriptors_per_queue_max);
    if (status != Status::success) return status;
    return fault != 0 ? Status::not_done : posted<false>(vi);
}

Status Nic::post_atomic(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle,
                        const memory::WordChange& change) {
    Status status;
    {
        const queue::WorkQueue::Lock::Guard guard(vi.send.work.post_lock());
        status = post_atomic_locked(vi, descriptor, handle, change, false);
    }
    if (status == Status::invalid_parameter)
        status = post_settled<false>(vi, descriptor, handle, [&] {
            return post_atomic_locked(vi, descriptor, handle, change, true);
        });
    return end_post(vi, status);
}

Status Nic::post_receive(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle) {
    const Status status = post<true>(vi, descriptor, handle);
    if (status == Status::not_done) [[unlikely]] {
        complete_post(vi);
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
        Status status = Status::success;
        {
            // Who changes a region or a state waits for the lock: not for long.
            const queue::WorkQueue::Lock::Guard guard(
                (receive ? vi.receive : vi.send).work.post_lock());
            const std::size_t end = std::min(descriptors.size(), posted + posts_locked_max);
            for (; posted < end; ++posted) {
                status = post_locked<receive>(vi, descriptors[posted], handles[posted], false);
                if (status == Status::not_done)
                    result = status;
                else if (status != Status::success)
                    break;
            }
            if (posted == end) continue;
        }
        if (status == Status::invalid_parameter)
            status = post_settled<receive>(vi, descriptors[posted], handles[posted], [&] {
                return post_locked<receive>(vi, descriptors[posted], handles[posted], true);
            });
        if (status == Status::not_done)
            result = status;
        else if (status != Status::success)
            return status;
        ++posted;
    }
    return result;
}

Status Nic::post_many(engine::Vi& vi, bool receive, std::span<void* const> descriptors,
                      const memory::MemoryHandle* handles, std::uint32_t& posted) {
    const Status status = receive ? post_all<true>(vi, descriptors, handles, posted)
                                  : post_all<false>(vi, descriptors, handles, posted);
    // One that must be completed at once may stand before one that was refused.
    if (status != Status::success && posted != 0) {
        complete_post(vi);
    } else if (posted != 0 && !receive) {
        begin_sends(vi);
    } else if (posted != 0 && vi.credits_agreed.load(std::memory_order_relaxed)) {
        tell_of_receives(vi);
    }
    return status == Status::not_done ? Status::success : status;
}

/// One look at the devices, since nothing was done.
[[gnu::always_inline]] inline void Nic::look_for_done(engine::ViQueue& queue) {
    queue::WorkQueue& work = queue.work;
    const bool had_turn = try_poll() != Polled::not_at_all;
    // Who had the turn saw all that was completed before. Else another thread may be between
    // the two steps of completing what the program has seen done already.
    if (!work.has_done() && !had_turn && work.head_is_written()) poll_surely();
}

[[gnu::noinline]] Nic::Done Nic::done_after_poll(engine::ViQueue& queue) {
    if (queue.expects_nothing()) return {nullptr, Status::descriptor_error};
    look_for_done(queue);
    queue::WorkQueue& work = queue.work;
    queue::Taken taken;
    if (work.has_done() && work.take(taken)) return done_of(taken);
    return {nullptr, queue.expects_nothing() ? Status::descriptor_error : Status::not_done};
}

Status Nic::done_many(engine::ViQueue& queue, std::span<void*> descriptors, std::uint32_t& taken) {
    queue::WorkQueue& work = queue.work;
    taken = 0;
    if (!work.has_done()) {
        if (queue.expects_nothing()) return Status::descriptor_error;
        look_for_done(queue);
    }
    bool failed = false;
    taken = work.has_done() ? work.take(descriptors, failed) : 0;
    if (taken == 0) return queue.expects_nothing() ? Status::descriptor_error : Status::not_done;
    return failed ? Status::descriptor_error : Status::success;
}

Status Nic::completion_done(queue::CompletionQueue& queue, queue::Completion& completion) {
    bool made_room = false;
    for (int tries = 0;;) {
        while (queue.pop(completion, made_room)) {
            // The program may sleep now, where no turn comes by.
            if (made_room && !queue.has_entry()) [[unlikely]]
                poll_surely();
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
