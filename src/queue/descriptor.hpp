// The 64-byte descriptor as the program writes it (VIPL 1.2), in the library's own words. Only
// this room reads or writes a program's descriptor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace via::queue {

struct ControlSegment {
    std::uint64_t next;
    std::uint32_t next_handle;
    std::uint16_t segment_count;
    std::uint16_t control;
    std::uint32_t reserved;
    std::uint32_t immediate_data;
    std::uint32_t length;
    std::uint32_t status;
};

/// A data segment; as the first one of an RDMA descriptor, the remote address (length reserved).
struct Segment {
    std::uint64_t address;
    std::uint32_t handle;
    std::uint32_t length;
};

struct Descriptor {
    ControlSegment control;
    Segment segments[2];  ///< further ones follow contiguously
};

static_assert(sizeof(ControlSegment) == 32 && offsetof(ControlSegment, status) == 28);
static_assert(sizeof(Segment) == 16 && sizeof(Descriptor) == 64);

constexpr std::size_t descriptor_alignment = 64;

/// The one read of a program's descriptor, which other threads may write to, but for the segments
/// behind the second. Field by field: the program has just written them, and a load that is wider
/// than its store waits until the store has left the processor's buffer.
template <class T>
[[gnu::always_inline]] inline T read_field(const T& value) {
    return __atomic_load_n(&value, __ATOMIC_RELAXED);
}
[[gnu::always_inline]] inline ControlSegment read(const ControlSegment& from) {
    ControlSegment to;
    to.segment_count = read_field(from.segment_count);
    to.control = read_field(from.control);
    to.reserved = read_field(from.reserved);
    to.immediate_data = read_field(from.immediate_data);
    to.length = read_field(from.length);
    return to;
}
[[gnu::always_inline]] inline Segment read(const Segment& from) {
    return {read_field(from.address), read_field(from.handle), read_field(from.length)};
}

/// Bytes of a descriptor with that many segments.
constexpr std::uint64_t descriptor_length(std::uint32_t segments) {
    return segments <= 2 ? sizeof(Descriptor) : sizeof(ControlSegment) + segments * sizeof(Segment);
}

/// Control bits (VIPL 1.7).
namespace control {
constexpr std::uint16_t operation_mask = 3;
constexpr std::uint16_t send_receive = 0;
constexpr std::uint16_t rdma_write = 1;
constexpr std::uint16_t rdma_read = 2;
constexpr std::uint16_t immediate = 4;
constexpr std::uint16_t queue_fence = 8;
constexpr std::uint16_t reserved = 0xFFF0;
// Of entries only: no program's descriptor says so. The words that an atomic operation comes with
// are the bytes of the entry's third segment.
constexpr std::uint16_t atomic = 3;
constexpr std::uint16_t adds = 0x10;
}  // namespace control

/// Status bits (VIPL 1.7).
namespace status {
constexpr std::uint32_t done = 1;
constexpr std::uint32_t format_error = 2;
constexpr std::uint32_t protection_error = 4;
constexpr std::uint32_t length_error = 8;
constexpr std::uint32_t partial_error = 0x10;
constexpr std::uint32_t flushed = 0x20;
constexpr std::uint32_t transport_error = 0x40;
constexpr std::uint32_t rdma_protection_error = 0x80;
constexpr std::uint32_t remote_descriptor_error = 0x100;
constexpr std::uint32_t error_mask = 0x1FE;
constexpr std::uint32_t operation_send = 0;
constexpr std::uint32_t operation_receive = 0x10000;
constexpr std::uint32_t operation_rdma_write = 0x20000;
constexpr std::uint32_t operation_remote_rdma_write = 0x30000;
constexpr std::uint32_t operation_rdma_read = 0x40000;
constexpr std::uint32_t operation_compare_swap = 0x50000;
constexpr std::uint32_t operation_fetch_add = 0x60000;
constexpr std::uint32_t operation_mask = 0x70000;
constexpr std::uint32_t immediate = 0x80000;
}  // namespace status

}  // namespace via::queue
