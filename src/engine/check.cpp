#include "engine/check.hpp"

#include <algorithm>

#include "wire/frame.hpp"

namespace via::engine {

namespace {

/// The regions of a descriptor's segments, each looked up once while it is the same.
class Regions {
public:
    explicit Regions(const CheckContext& context) : context_(context) {}
    const memory::Region& of(const queue::Segment& segment) {
        if (segment.handle == context_.region.handle) return context_.region;
        if (segment.handle != other_.handle) other_ = context_.memory.look(segment.handle);
        return other_;
    }
    bool allow(const queue::Segment& segment, std::uint64_t length, memory::Access access) {
        return of(segment).allows(segment.address, length, context_.tag, access);
    }

private:
    const CheckContext& context_;
    memory::Region other_;
};

/// Sums the data segments from `first` on; a protection fault when one may not be touched so.
std::uint32_t check_segments(const CheckContext& context, const queue::ControlSegment& control,
                             const queue::Segment* segments, std::uint32_t first,
                             memory::Access access, std::uint64_t& sum) {
    sum = 0;
    Regions regions(context);
    for (std::uint32_t index = first; index < control.segment_count; ++index) {
        const queue::Segment& segment = segments[index];
        sum += segment.length;
        if (segment.length != 0 && !regions.allow(segment, segment.length, access))
            return queue::status::protection_error;
    }
    return 0;
}

}  // namespace

std::uint32_t check_any_send(const CheckContext& context, const queue::ControlSegment& control,
                             const queue::Segment* segments) {
    const std::uint16_t operation = control.control & queue::control::operation_mask;
    const bool remote = operation != queue::control::send_receive;
    if ((control.control & queue::control::reserved) != 0 ||
        operation == queue::control::operation_mask || control.reserved != 0 ||
        (remote && control.segment_count == 0))
        return queue::status::format_error;
    if (operation == queue::control::rdma_read &&
        (!context.rdma_read_allowed || (control.control & queue::control::immediate) != 0))
        return queue::status::format_error;
    const memory::Access access = operation == queue::control::rdma_read
                                      ? memory::Access::local_write
                                      : memory::Access::local;
    std::uint64_t sum = 0;
    if (const std::uint32_t fault =
            check_segments(context, control, segments, remote ? 1 : 0, access, sum))
        return fault;
    if (sum != control.length || sum > context.transfer_length_max)
        return queue::status::length_error;
    return 0;
}

std::uint32_t check_atomic(const CheckContext& context, const queue::ControlSegment& control,
                           const queue::Segment* segments) {
    if ((control.control & ~queue::control::queue_fence) != 0 || control.reserved != 0 ||
        control.segment_count != 2 || !context.rdma_read_allowed)
        return queue::status::format_error;
    std::uint64_t sum = 0;
    if (const std::uint32_t fault =
            check_segments(context, control, segments, 1, memory::Access::local_write, sum))
        return fault;
    const bool whole = sum == wire::atomic_length && control.length == wire::atomic_length;
    return whole && sum <= context.transfer_length_max ? 0 : queue::status::length_error;
}

std::uint32_t check_any_receive(const CheckContext& context, const queue::ControlSegment& control,
                                const queue::Segment* segments, std::uint32_t& capacity) {
    const std::uint16_t bits =
        control.control & static_cast<std::uint16_t>(~queue::control::immediate);
    capacity = 0;
    if (bits != 0 || control.reserved != 0) return queue::status::format_error;
    std::uint64_t sum = 0;
    bool whole = true;  // so far
    Regions regions(context);
    for (std::uint32_t index = 0; index < control.segment_count; ++index) {
        const queue::Segment& segment = segments[index];
        if (segment.length == 0) continue;  // touches nothing
        if (!regions.allow(segment, 0, memory::Access::local_write))
            return queue::status::protection_error;
        const std::uint64_t registered = regions.of(segment).end - segment.address;
        if (whole) sum += std::min<std::uint64_t>(segment.length, registered);
        whole = whole && segment.length <= registered;
    }
    capacity = sum > 0xFFFFFFFFU ? 0xFFFFFFFFU : static_cast<std::uint32_t>(sum);
    return 0;
}

}  // namespace via::engine
