// What is wrong with a descriptor, found when it is posted (VIPL 4.7, 4.9, 4.10).
#pragma once

#include <cstdint>

#include "memory/table.hpp"
#include "queue/descriptor.hpp"

namespace via::engine {

/// What the check must know of the VI.
struct CheckContext {
    const memory::MemoryTable& memory;
    memory::ProtectionTag tag;
    std::uint32_t transfer_length_max;  ///< bytes, for sends
    bool rdma_read_allowed;             ///< the VI is reliable
};

/// Status bits of the first fault of a send descriptor, or 0. `segments` holds
/// control.segment_count entries.
std::uint32_t check_send(const CheckContext& context, const queue::ControlSegment& control,
                         const queue::Segment* segments);

/// The same for a receive descriptor; `capacity` becomes the sum of its segments, at most 2^32-1.
std::uint32_t check_receive(const CheckContext& context, const queue::ControlSegment& control,
                            const queue::Segment* segments, std::uint32_t& capacity);

}  // namespace via::engine
