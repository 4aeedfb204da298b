// Handles of regions and tags: an index and a generation, never a pointer (VIPL 1.11).
#pragma once

#include <cstdint>

namespace via::memory {

/// Handle of a registered region. 20 bits of index, 11 of generation, bit 31 zero; 0 is no region.
using MemoryHandle = std::uint32_t;

constexpr std::uint32_t handle_index_bits = 20;
constexpr std::uint32_t handle_generation_max = (1U << 11) - 1;

constexpr MemoryHandle make_handle(std::uint32_t index, std::uint32_t generation) {
    return (generation << handle_index_bits) | index;
}
constexpr std::uint32_t handle_index(MemoryHandle handle) {
    return handle & ((1U << handle_index_bits) - 1);
}

/// Handle of a memory window: the same with bit 31 set, so that no region's handle is one.
constexpr std::uint32_t window_bit = 1U << 31;
constexpr MemoryHandle make_window_handle(std::uint32_t index, std::uint32_t generation) {
    return window_bit | make_handle(index, generation);
}
constexpr bool is_window(MemoryHandle handle) { return (handle & window_bit) != 0; }

/// Handle of a protection tag; 0 is "no tag". 20 bits of index, 28 of generation: what is left for
/// it in a handle of the C API.
using ProtectionTag = std::uint64_t;
constexpr ProtectionTag no_tag = 0;

constexpr std::uint32_t tag_index_bits = 20;
constexpr std::uint64_t tag_generation_max = (1U << 28) - 1;

}  // namespace via::memory
