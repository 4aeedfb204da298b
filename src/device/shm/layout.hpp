// What lies where in the memory that one side of a channel creates. Only its creator writes it; the
// peer maps it read-only. The creator never reads it back: all it needs to know is kept in private
// memory, so whoever managed to write here would deceive nobody but the reading peer. The mailbox
// lies elsewhere: both write it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/atomic.hpp"
#include "device/device.hpp"

namespace via::device::shm {

constexpr std::uint64_t channel_magic = 0x314D48532D414956ULL;  // "VIA-SHM1", little endian
constexpr std::uint32_t channel_version = 5;
/// Features of a greeting. Asymmetric fences: its sender makes a heavy fence before each sleep, and
/// those of others reach it (base/asymmetric_fence.hpp). Where both have them, who publishes makes
/// a light one.
constexpr std::uint32_t feature_asymmetric_fences = 1;
/// Features we know, and those without which we do not talk.
constexpr std::uint32_t features_known = feature_asymmetric_fences;
constexpr std::uint32_t features_required = 0;

constexpr std::uint32_t header_max = 40;  ///< bytes of header beside a payload in the arena
/// Bytes; tunable, both sides must agree. 8 KiB with a header that a library above us puts before
/// them are one frame, so that they go by the mailbox, too.
constexpr std::uint32_t payload_max = 8192 + 64;
constexpr std::uint32_t large_length_min = 2048;  ///< bytes; from here perhaps past the cache

/// One frame. words[0]: stamp (low half), then 16 bits inline length or arena_marker, then 16 bits
/// header length (arena case only, else 0). words[1..7]: the frame's bytes; in the arena case
/// words[7] is offset (low half) and length (high half) of the payload in the arena.
/// The stamp is the slot's position in the endless sequence plus one, so that what an earlier lap
/// left behind never matches.
struct alignas(64) Slot {
    static constexpr std::uint32_t words_count = 8;
    Atomic<std::uint64_t> words[words_count];
};
constexpr std::uint32_t slot_room = 56;  ///< bytes of a frame that fit beside the stamp
constexpr std::uint32_t arena_marker = 0xFFFF;
constexpr std::uint32_t arena_granularity = 64;  ///< bytes
constexpr std::uint32_t arena_word = 7;          ///< the slot's word that refers to the arena

/// Grants that one peer may have at a time.
constexpr std::uint32_t grants_max = 896;

/// Lines are 128 bytes apart: processors fetch them in pairs.
struct Control {
    Atomic<std::uint64_t> magic;
    Atomic<std::uint32_t> version;
    Atomic<std::uint32_t> features;
    Atomic<std::uint32_t> ring_slots;
    Atomic<std::uint32_t> arena_bytes;
    alignas(128) Atomic<std::uint32_t> head;    ///< slots of the peer's ring that we gave back
    alignas(128) Atomic<std::uint32_t> asleep;  ///< a sleep word (wake.hpp)
    Atomic<std::uint32_t> waiting;              ///< 1: wake us when you have given back room
    alignas(128) Atomic<std::uint32_t> wakes;   ///< futex word, counts how often we woke the peer
    /// What the peer may use of our segments (grants.hpp).
    alignas(128) Atomic<std::uint32_t> grants[grants_max];
};

/// Sizes of one side's memory. The arena begins on 64 KiB so that it can be given back by pages
/// of any size; the gap before it costs no memory.
struct Layout {
    static constexpr std::uint32_t ring_slots_min = 4, ring_slots_max = 1U << 16;
    static constexpr std::uint32_t arena_bytes_min = 1U << 15, arena_bytes_max = 1U << 26;
    static constexpr std::size_t ring_offset = 4096;

    std::uint32_t ring_slots = 0;
    std::uint32_t arena_bytes = 0;

    constexpr bool valid() const {
        return std::has_single_bit(ring_slots) && ring_slots >= ring_slots_min &&
               ring_slots <= ring_slots_max && std::has_single_bit(arena_bytes) &&
               arena_bytes >= arena_bytes_min && arena_bytes <= arena_bytes_max;
    }
    constexpr std::size_t arena_offset() const {
        constexpr std::size_t unit = 65536;
        return (ring_offset + std::size_t{ring_slots} * sizeof(Slot) + unit - 1) / unit * unit;
    }
    constexpr std::size_t bytes() const { return arena_offset() + arena_bytes; }
};

/// The mailbox's memory: its line, and a frame's payload. Processors fetch lines in pairs: who
/// polls the line shall not take the payload's first one away while it is filled.
struct MailboxLayout {
    alignas(128) Slot line;
    alignas(128) std::byte room[payload_max];
};
constexpr std::size_t mailbox_bytes = sizeof(MailboxLayout);

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Slot) == 64 && alignof(Slot) == 64);
static_assert(slot_room == sizeof(Slot) - 8 && slot_room <= Frame::inline_max);
static_assert(header_max <= arena_word * 8 - 8, "header and arena reference share the slot");
static_assert(slot_room < arena_marker);
static_assert(offsetof(Control, magic) == 0 && offsetof(Control, version) == 8);
static_assert(offsetof(Control, features) == 12 && offsetof(Control, ring_slots) == 16);
static_assert(offsetof(Control, arena_bytes) == 20);
static_assert(offsetof(Control, head) == 128);
static_assert(offsetof(Control, asleep) == 256 && offsetof(Control, waiting) == 260);
static_assert(offsetof(Control, wakes) == 384 && offsetof(Control, grants) == 512);
static_assert(sizeof(Control) == Layout::ring_offset);
static_assert(Layout{1024, 1U << 20}.arena_offset() == 131072);
static_assert(payload_max % arena_granularity == 0);
static_assert(3 * payload_max <= Layout::arena_bytes_min, "one fits behind any gap");
static_assert(mailbox_bytes <= 3 * 4096, "pages of each pair");

}  // namespace via::device::shm
