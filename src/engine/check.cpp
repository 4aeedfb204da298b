#include "engine/check.hpp"

namespace via::engine {

namespace {

/// Sums the data segments from `first` on; a protection fault when one may not be touched.
std::uint32_t check_segments(const CheckContext& context, const queue::ControlSegment& control,
                             const queue::Segment* segments, std::uint32_t first,
                             std::uint64_t& sum) {
    sum = 0;
    memory::Region other;
    for (std::uint32_t index = first; index < control.segment_count; ++index) {
        const queue::Segment& segment = segments[index];
        sum += segment.length;
        if (segment.length == 0) continue;  // touches nothing
        const memory::Region* region = &context.region;
        if (segment.handle != region->handle) {
            if (segment.handle != other.handle) other = context.memory.look(segment.handle);
            region = &other;
        }
        if (!region->allows(segment.address, segment.length, context.tag, memory::Access::local))
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
    std::uint64_t sum = 0;
    if (const std::uint32_t fault = check_segments(context, control, segments, remote ? 1 : 0, sum))
        return fault;
    if (sum != control.length || sum > context.transfer_length_max)
        return queue::status::length_error;
    return 0;
}

std::uint32_t check_any_receive(const CheckContext& context, const queue::ControlSegment& control,
                                const queue::Segment* segments, std::uint32_t& capacity) {
    const std::uint16_t bits =
        control.control & static_cast<std::uint16_t>(~queue::control::immediate);
    capacity = 0;
    if (bits != 0 || control.reserved != 0) return queue::status::format_error;
    std::uint64_t sum = 0;
    const std::uint32_t fault = check_segments(context, control, segments, 0, sum);
    capacity = sum > 0xFFFFFFFFU ? 0xFFFFFFFFU : static_cast<std::uint32_t>(sum);
    return fault;
}

}  // namespace via::engine
