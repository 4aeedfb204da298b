// What is wrong with a descriptor, found when it is posted (VIPL 4.7, 4.9, 4.10).
#pragma once

#include <cstdint>

#include "memory/table.hpp"
#include "queue/descriptor.hpp"

namespace via::engine {

/// What the check must know of the VI.
struct CheckContext {
    const memory::MemoryTable& memory;
    const memory::Region& region;  ///< of the descriptor; that of its segments as a rule
    memory::ProtectionTag tag;
    std::uint32_t transfer_length_max;  ///< bytes, for sends
    bool rdma_read_allowed;             ///< the VI is reliable
};

std::uint32_t check_any_send(const CheckContext& context, const queue::ControlSegment& control,
                             const queue::Segment* segments);
std::uint32_t check_any_receive(const CheckContext& context, const queue::ControlSegment& control,
                                const queue::Segment* segments, std::uint32_t& capacity);

/// What most descriptors are: one segment in the region that holds the descriptor, and no bits but
/// `allowed`. Nothing is wrong with the segment.
[[gnu::always_inline]] inline bool is_plain(const CheckContext& context,
                                            const queue::ControlSegment& control,
                                            const queue::Segment& segment, std::uint16_t allowed) {
    return control.segment_count == 1 && (control.control & ~allowed) == 0 &&
           control.reserved == 0 && segment.handle == context.region.handle &&
           context.region.allows(segment.address, segment.length, context.tag,
                                 memory::Access::local);
}

/// Status bits of the first fault of a send descriptor, or 0. `segments` holds
/// control.segment_count entries.
[[gnu::always_inline]] inline std::uint32_t check_send(const CheckContext& context,
                                                       const queue::ControlSegment& control,
                                                       const queue::Segment* segments) {
    constexpr std::uint16_t allowed = queue::control::immediate | queue::control::queue_fence;
    if (is_plain(context, control, segments[0], allowed) && segments[0].length == control.length &&
        control.length <= context.transfer_length_max) [[likely]]
        return 0;
    // An RDMA write of one segment: the first one names the peer's memory, for the peer to judge.
    if (control.segment_count == 2 && control.control == queue::control::rdma_write &&
        control.reserved == 0 && segments[1].handle == context.region.handle &&
        segments[1].length == control.length && control.length <= context.transfer_length_max &&
        context.region.allows(segments[1].address, segments[1].length, context.tag,
                              memory::Access::local))
        return 0;
    return check_any_send(context, control, segments);
}

/// The same for a receive descriptor; `capacity` becomes the sum of its segments, at most 2^32-1.
[[gnu::always_inline]] inline std::uint32_t check_receive(const CheckContext& context,
                                                          const queue::ControlSegment& control,
                                                          const queue::Segment* segments,
                                                          std::uint32_t& capacity) {
    // IMMEDIATE may be left over from a former use (VIPL 4.9).
    if (is_plain(context, control, segments[0], queue::control::immediate)) [[likely]] {
        capacity = segments[0].length;
        return 0;
    }
    return check_any_receive(context, control, segments, capacity);
}

}  // namespace via::engine
