// Shared receive queues: their calls.
#include <array>

#include "engine/check.hpp"
#include "nic/nic.hpp"

namespace via::nic {

Result<std::uint64_t> Nic::create_shared_receives(const engine::SharedShape& shape) {
    return holding_turn([&]() -> Result<std::uint64_t> {
        if (shape.tag != memory::no_tag && !memory_.is_tag(shape.tag))
            return std::unexpected(Status::invalid_ptag);
        return engine_.shared_receives().open(shape);
    });
}

Status Nic::destroy_shared_receives(std::uint64_t name) {
    return holding_turn([&] { return engine_.shared_receives().close(name); });
}

namespace {

/// As Nic::post_shared_locked(), of any descriptor that lies in `region`, of which `control` was
/// read.
[[gnu::noinline]] Status post_any_shared(const memory::MemoryTable& memory, const NicLimits& limits,
                                         engine::SharedReceiveQueue& to,
                                         queue::Descriptor* descriptor,
                                         const memory::Region& region,
                                         queue::ControlSegment control) {
    const memory::ProtectionTag tag = to.shape.tag;
    const std::uint32_t count = control.segment_count;
    queue::Segment segments[queue::segments_max];  // touched as far as there are some
    std::uint32_t fault = queue::status::format_error;
    if (count <= limits.segments_per_descriptor_max) {
        if (!region.allows(reinterpret_cast<std::uint64_t>(descriptor),
                           queue::descriptor_length(count), tag, memory::Access::local))
            return Status::invalid_parameter;
        for (std::uint32_t n = 0; n < count; ++n)
            segments[n] = queue::read(descriptor->segments[n]);
        // The VIs' limit on transfers is none of receives, nor is their level.
        const engine::CheckContext context{memory, region, tag, limits.transfer_length_max, true};
        fault = engine::check_receive(context, control, segments, control.length);
    }
    if (fault == 0)
        return to.work.post(descriptor, region.handle, control, segments, 0,
                            to.shape.descriptors_max);
    descriptor->control.status = fault | queue::status::done | queue::status::operation_receive;
    return Status::descriptor_error;
}

}  // namespace

/// With the queue's post_lock() held; the common descriptor at once. One with a fault is an answer
/// here, and nothing that some VI would complete.
[[gnu::always_inline]] inline Status Nic::post_shared_locked(engine::SharedReceiveQueue& to,
                                                             void* address,
                                                             memory::MemoryHandle handle) {
    const memory::Region region = memory_.look(handle);
    if (!engine::is_descriptor_in(region, address, to.shape.tag)) [[unlikely]]
        return Status::invalid_parameter;
    auto* const descriptor = static_cast<queue::Descriptor*>(address);
    queue::ControlSegment control = queue::read(descriptor->control);
    if (control.segment_count == 1) [[likely]] {
        const std::array segments{queue::read(descriptor->segments[0])};
        control.length = segments[0].length;
        if (engine::is_common_receive(region, control, segments[0]) &&
            to.work.post_common(descriptor, handle, control, segments, to.shape.descriptors_max))
            [[likely]]
            return Status::success;
    }
    return post_any_shared(memory_, limits_, to, descriptor, region, control);
}

Status Nic::post_shared_receive(std::uint64_t name, void* descriptor, memory::MemoryHandle handle) {
    engine::SharedReceives& queues = engine_.shared_receives();
    engine::SharedReceiveQueue* const to = queues.find(name);
    if (to == nullptr) return Status::invalid_parameter;
    const auto post = [&]() __attribute__((always_inline)) {
        const queue::WorkQueue::Lock::Guard guard(to->work.post_lock());
        // Another one may be in its place by now.
        return queues.find(name) == to ? post_shared_locked(*to, descriptor, handle)
                                       : Status::invalid_parameter;
    };
    Status status = post();
    // While a region's rights change it looks as if it were not there.
    if (status == Status::invalid_parameter || status == Status::descriptor_error) [[unlikely]]
        status = holding_turn(post);
    if (status != Status::success) return status;
    engine::Vi* const waits = to->rings.load(std::memory_order_acquire);
    if (waits != nullptr) [[unlikely]] {  // for credits, it or another VI
        doorbells_.ring(*waits);
        poll();
    }
    return status;
}

Status Nic::arm_shared_receives(std::uint64_t name, std::uint32_t limit) {
    return with_turn([&] {
        engine::SharedReceiveQueue* const queue = engine_.shared_receives().find(name);
        if (queue == nullptr) return Status::invalid_parameter;
        engine_.shared_receives().arm(*queue, limit);
        return Status::success;
    });
}

Status Nic::take_limit(std::uint64_t name) {
    return with_turn([&] {
        engine::SharedReceiveQueue* const queue = engine_.shared_receives().find(name);
        if (queue == nullptr) return Status::invalid_state;
        if (!queue->reached.load(std::memory_order_relaxed)) return Status::not_done;
        queue->reached.store(false, std::memory_order_relaxed);
        return Status::success;
    });
}

}  // namespace via::nic
