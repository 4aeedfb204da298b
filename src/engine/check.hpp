// What is wrong with a descriptor, found when it is posted (VIPL 4.7, 4.9, 4.10).
#pragma once

#include <cstdint>

#include "engine/mutation.hpp"
#include "memory/table.hpp"
#include "queue/descriptor.hpp"

namespace via::engine {

/// What the check must know of the VI.
struct CheckContext {
    const memory::MemoryTable& memory;
    const memory::Region&
        region;  ///< of the descriptor, so writable; that of its segments as a rule
    memory::ProtectionTag tag;
    std::uint32_t transfer_length_max;  ///< bytes, for sends
    bool rdma_read_allowed;             ///< the VI is reliable
};

/// What each descriptor has lies in `region`, and a VI with that tag may write there.
[[gnu::always_inline]] inline bool is_descriptor_in(const memory::Region& region,
                                                    const void* address,
                                                    memory::ProtectionTag tag) {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    return address != nullptr && at % queue::descriptor_alignment == 0 &&
           region.allows(at, sizeof(queue::Descriptor), tag, memory::Access::local_write);
}

std::uint32_t check_any_send(const CheckContext& context, const queue::ControlSegment& control,
                             const queue::Segment* segments);
std::uint32_t check_any_receive(const CheckContext& context, const queue::ControlSegment& control,
                                const queue::Segment* segments, std::uint32_t& capacity);

/// Of the one segment of a common descriptor, so that its region need not be looked for.
[[gnu::always_inline]] inline bool is_covered(const memory::Region& region,
                                              const queue::Segment& segment) {
    return region.covers(segment.address, segment.length) ||
           mutated(Mutation::post_common_beyond_region);
}

/// Of an atomic operation: a remote address and eight bytes for what was there.
std::uint32_t check_atomic(const CheckContext& context, const queue::ControlSegment& control,
                           const queue::Segment* segments);

/// What most descriptors are: one segment, in `region`, and no bits but
/// IMMEDIATE, which may be left over from a receive's former use (VIPL 4.9), and of sends the
/// fence. Nothing is wrong with the segment, if the VI may use the region, and for a receive write
/// there: as it may where a descriptor is.
[[gnu::always_inline]] inline bool is_common_send(const memory::Region& region,
                                                  const queue::ControlSegment& control,
                                                  const queue::Segment& segment,
                                                  std::uint32_t transfer_length_max) {
    constexpr std::uint16_t allowed = queue::control::immediate | queue::control::queue_fence;
    return control.segment_count == 1 && (control.control & ~allowed) == 0 &&
           control.reserved == 0 && segment.handle == region.handle &&
           segment.length == control.length && control.length <= transfer_length_max &&
           is_covered(region, segment);
}
[[gnu::always_inline]] inline bool is_common_receive(const memory::Region& region,
                                                     const queue::ControlSegment& control,
                                                     const queue::Segment& segment) {
    return control.segment_count == 1 && (control.control & ~queue::control::immediate) == 0 &&
           control.reserved == 0 && segment.handle == region.handle && is_covered(region, segment);
}

/// The same for an RDMA write of one segment: the first one names the peer's memory, for the peer
/// to judge.
[[gnu::always_inline]] inline bool is_common_write(const memory::Region& region,
                                                   const queue::ControlSegment& control,
                                                   const queue::Segment& segment,
                                                   std::uint32_t transfer_length_max) {
    return control.segment_count == 2 && control.control == queue::control::rdma_write &&
           control.reserved == 0 && segment.handle == region.handle &&
           segment.length == control.length && control.length <= transfer_length_max &&
           is_covered(region, segment);
}

/// Status bits of the first fault of a send descriptor, or 0. `segments` holds
/// control.segment_count entries.
[[gnu::always_inline]] inline std::uint32_t check_send(const CheckContext& context,
                                                       const queue::ControlSegment& control,
                                                       const queue::Segment* segments) {
    const std::uint32_t length_max = context.transfer_length_max;
    if (context.region.serves(context.tag) &&
        (is_common_send(context.region, control, segments[0], length_max) ||
         is_common_write(context.region, control, segments[1], length_max))) [[likely]]
        return 0;
    return check_any_send(context, control, segments);
}

/// The same for a receive descriptor. A segment that begins in its region and ends beyond it is no
/// fault (VIPL 4.12): `capacity` becomes the bytes that may be placed, from the first on to where
/// one would lie outside, at most 2^32-1.
[[gnu::always_inline]] inline std::uint32_t check_receive(const CheckContext& context,
                                                          const queue::ControlSegment& control,
                                                          const queue::Segment* segments,
                                                          std::uint32_t& capacity) {
    if (context.region.serves(context.tag) &&
        is_common_receive(context.region, control, segments[0])) [[likely]] {
        capacity = segments[0].length;
        return 0;
    }
    return check_any_receive(context, control, segments, capacity);
}

}  // namespace via::engine
