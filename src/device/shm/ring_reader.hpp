// The receiving end of a channel: reads a ring and an arena that a hostile peer writes. One thread
// at a time; the other end is a RingWriter in the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "device/device.hpp"
#include "device/shm/layout.hpp"
#include "device/shm/peer_load.hpp"

namespace via::device::shm {

class RingReader {
public:
    enum class Take : std::uint8_t {
        empty,
        frame,
        lie,  ///< lengths or offset out of bounds; nothing was taken
    };

    /// `slots` and `arena_bytes` are powers of two. All memory stays the caller's.
    void attach(const Slot* ring, std::uint32_t slots, const std::byte* arena,
                std::uint32_t arena_bytes, Atomic<std::uint32_t>* own_head,
                std::uint32_t first_position = 0) {
        position_ = released_ = announced_ = first_position;
        ring_ = ring;
        slots_ = slots;
        arena_ = arena;
        arena_bytes_ = arena_bytes;
        own_head_ = own_head;
    }

    /// Takes the next frame (all but frame.path). What it refers to stays valid until release().
    Take take(Frame& frame) {
        const Take result = take_at(ring_, position_, slots_ - 1, frame);
        if (result == Take::frame) ++position_;
        return result;
    }
    /// Takes what is there, as far as it fits; `count`: so many. Why there are no more, or `frame`.
    Take take(std::span<Frame> frames, PathId path, std::size_t& count) {
        const Slot* const ring = ring_;
        const std::uint32_t first = position_;
        const std::uint32_t mask = slots_ - 1;
        Take result = Take::frame;
        std::uint32_t position = first;
        for (Frame& frame : frames) {
            result = take_at(ring, position, mask, frame);
            if (result != Take::frame) break;
            frame.path = path;
            ++position;
        }
        position_ = position;
        count = position - first;
        return result;
    }

    /// Takes back the last `count` of those just taken.
    void untake(std::uint32_t count) {
        VIA_ASSERT(count <= position_ - released_);
        position_ -= count;
    }

    /// True when take() would not return `empty`.
    bool pending() const {
        peer_decision();
        const Slot& slot = ring_[position_ & (slots_ - 1)];
        return static_cast<std::uint32_t>(peer_load(slot.words[0], memory_order_acquire)) ==
               position_ + 1;
    }

    /// All frames taken so far may be overwritten, once announced.
    void release() { released_ = position_; }

    /// True when the peer would run out of room if we kept the news to ourselves much longer.
    bool announce_due() const {
        return released_ - announced_ >= slots_ / 4 || arena_taken_ >= arena_bytes_ / 4;
    }
    bool unannounced() const { return released_ != announced_; }

    /// Tells the peer what was released. Release order: our loads from the room come first.
    void announce() {
        announced_ = released_;
        arena_taken_ = 0;
        own_head_->store(released_, memory_order_release);
    }

    /// Frames taken so far, modulo 2^32.
    std::uint32_t position() const { return position_; }
    /// Frames the peer may have published beyond what it knows to be given back.
    std::uint32_t slots() const { return slots_; }

private:
    [[gnu::always_inline]] Take take_at(const Slot* ring, std::uint32_t position,
                                        std::uint32_t mask, Frame& frame) {
        peer_decision();
        const Slot& slot = ring[position & mask];
        const std::uint64_t first = peer_load(slot.words[0], memory_order_acquire);
        if (static_cast<std::uint32_t>(first) != position + 1) return Take::empty;
        const auto copy = [&](std::uint32_t from, std::uint32_t end) {
#pragma GCC unroll 8
            for (std::uint32_t i = from; i < end; ++i) {
                const std::uint64_t word = peer_load(slot.words[i], memory_order_relaxed);
                std::memcpy(frame.bytes + (i - 1) * 8, &word, 8);
            }
        };
        const std::uint32_t lengths = static_cast<std::uint32_t>(first >> 32);
        copy(1, few_words);
        frame.payload = nullptr;
        frame.payload_length = 0;
        frame.length = lengths;
        if (lengths <= (few_words - 1) * 8) [[likely]]
            return Take::frame;
        copy(few_words, Slot::words_count);
        return lengths <= slot_room || take_arena(lengths, frame) ? Take::frame : Take::lie;
    }
    /// Words of a frame with a header and 8 bytes, the first one included.
    static constexpr std::uint32_t few_words = 4;

    [[gnu::noinline]] bool take_arena(std::uint32_t lengths, Frame& frame) {
        const std::uint32_t header_length = lengths >> 16;
        if ((lengths & 0xFFFF) != arena_marker || header_length > header_max) return false;
        std::uint64_t reference;  // from our copy: the slot is not read again
        std::memcpy(&reference, frame.bytes + (arena_word - 1) * 8, 8);
        const std::uint32_t offset = static_cast<std::uint32_t>(reference);
        const std::uint32_t length = static_cast<std::uint32_t>(reference >> 32);
        if (length == 0 || length > payload_max || offset % arena_granularity != 0 ||
            offset > arena_bytes_ - length) {
            return false;
        }
        arena_taken_ += length;
        frame.length = header_length;
        frame.payload = arena_ + offset;
        ahead(frame.payload, length);
        frame.payload_length = length;
        return true;
    }

    /// Has the first lines of a payload brought while others still look at its header.
    static void ahead(const std::byte* payload, std::uint32_t length) {
        const std::uint32_t end = length < ahead_max ? length : ahead_max;
        for (std::uint32_t at = 0; at < end; at += sizeof(Slot))
            __builtin_prefetch(payload + at, 0, 2);
    }
    static constexpr std::uint32_t ahead_max = 1024;  ///< bytes

    const Slot* ring_ = nullptr;
    const std::byte* arena_ = nullptr;
    Atomic<std::uint32_t>* own_head_ = nullptr;
    std::uint32_t slots_ = 0;
    std::uint32_t position_ = 0;   ///< taken
    std::uint32_t released_ = 0;   ///< of those, released
    std::uint32_t announced_ = 0;  ///< of those, announced to the peer
    std::uint32_t arena_bytes_ = 0;
    std::uint32_t arena_taken_ = 0;  ///< payload bytes taken since the last announcement
};

}  // namespace via::device::shm
