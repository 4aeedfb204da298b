// The sending end of a channel: a ring of slots and an arena for larger payloads, both in memory
// that only we write. One thread at a time; the other end is a RingReader in the peer.
//
// Room comes back through the peer's head (how many slots it gave back). What the arena owes to
// each slot is remembered in `shadow`, private memory, never read back from the shared one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "base/atomic.hpp"
#include "base/prefetch.hpp"
#include "device/device.hpp"
#include "device/shm/layout.hpp"
#include "device/shm/peer_load.hpp"

namespace via::device::shm {

/// Orders streaming (non-temporal) stores before what follows; release stores alone do not.
inline void streaming_store_fence() {
#if defined(__x86_64__) && !defined(VIA_MODEL)
    __builtin_ia32_sfence();
#else
    atomic_fence(memory_order_seq_cst);
#endif
}

class RingWriter {
public:
    enum class Refresh : std::uint8_t {
        same,   ///< the peer gave nothing back
        moved,  ///< it did
        lie,    ///< it claims to have given back what was never sent
    };

    /// `slots` and `arena_bytes` are powers of two; `shadow` has `slots` entries. All stay the
    /// caller's and outlive the writer. Tests may begin with another position than 0, at both ends.
    void attach(Slot* ring, std::uint32_t slots, std::byte* arena, std::uint32_t arena_bytes,
                std::uint64_t* shadow, const Atomic<std::uint32_t>* peer_head,
                std::uint32_t first_position = 0) {
        reserved_ = published_ = head_ = claimed_ = first_position;
        ring_ = ring;
        slots_ = slots;
        arena_ = arena;
        arena_bytes_ = arena_bytes;
        shadow_ = shadow;
        peer_head_ = peer_head;
    }

    /// Lends room for one frame out of what is known to be free; false: refresh() and try again.
    bool reserve(std::uint32_t header_length, std::uint32_t payload_length, FrameSlot& slot) {
        if (reserve_in_slot(header_length, payload_length, slot)) return true;
        return header_length + payload_length > slot_room && reserved_ - head_ < slots_ &&
               reserve_arena(reserved_ & (slots_ - 1), header_length, payload_length, slot);
    }
    /// The same for frames that a slot holds; false also for the others.
    [[gnu::always_inline]] bool reserve_in_slot(std::uint32_t header_length,
                                                std::uint32_t payload_length, FrameSlot& slot) {
        const std::uint32_t length = header_length + payload_length;
        if (reserved_ - head_ >= slots_ || length > slot_room) return false;
        const std::uint32_t index = reserved_ & (slots_ - 1);
        shadow_[index] = shadow_entry(arena_tail_, length);
        ++reserved_;
        slot.header = reinterpret_cast<std::byte*>(&ring_[index].words[1]);
        slot.payload = slot.header + header_length;
        return true;
    }

    /// A reserved payload will be filled with streaming stores.
    void will_stream() {
        streamed_ = true;
        cold_ = 0;
    }

    /// Are there lines to warm()?
    bool cold() const { return cold_ != 0; }
    /// Takes lines that the next payloads will be stored to away from the reader's processor, as
    /// many as were stored to since the last time: it read them a lap ago, and a store waits for
    /// them longer than for anything else. For a moment when there is nothing else to do.
    void warm() {
        const std::uint32_t bytes = cold_ < warm_max ? cold_ : warm_max;
        cold_ = 0;
        const std::uint32_t offset = arena_tail_ & (arena_bytes_ - 1);
        // Not what the reader may be reading still, as far as we know, nor beyond the end.
        if (arena_tail_ + bytes - arena_head_ > arena_bytes_ || bytes > arena_bytes_ - offset)
            return;
        for (std::uint32_t at = 0; at < bytes; at += sizeof(Slot))
            bring_to_write(arena_ + offset + at);
    }

    /// A frame came from the peer: as a rule we answer, and until then there is time to bring the
    /// line. Earlier the peer, who polls it, would take it back.
    void expect_answer() {
        answering_ = true;
        bring_to_write(&ring_[reserved_ & (slots_ - 1)]);
    }
    /// The next transmit() is the first since a frame came.
    bool answering() const { return answering_; }

    /// A frame came from the peer, and the answer is not to be here.
    void came() { answering_ = true; }
    /// Nothing is reserved that is not published.
    bool all_published() const { return reserved_ == published_; }

    /// Publishes all reserved frames in order. Returns false when there were none.
    bool transmit() {
        if (kept_ != 0) [[unlikely]]
            publish_kept();
        std::uint32_t position = published_;
        const std::uint32_t end = reserved_;
        if (position == end) return false;
        if (referring_ != nullptr) end_payloads();
        Slot* const ring = ring_;
        const std::uint64_t* const shadow = shadow_;
        const std::uint32_t mask = slots_ - 1;
        do {
            const std::uint32_t index = position & mask;
            ++position;
            // lengths in the upper half, the stamp (position + 1) in the lower
            const std::uint64_t lengths = shadow[index] & ~std::uint64_t{0xFFFFFFFF};
            ring[index].words[0].store(lengths | position, memory_order_release);
        } while (position != end);
        published_ = position;
        look_ahead(ring, position, mask);
        return true;
    }

    /// One frame with a header of two words, reserved, filled and published. False: there is no
    /// room that we know of, or others are reserved.
    bool put(std::uint64_t low, std::uint64_t high, const std::byte* payload,
             std::uint32_t length) {
        if (!can_put(length)) return false;
        if (kept_ != 0) [[unlikely]]
            publish_kept();
        const std::uint32_t position = published_;
        const std::uint32_t mask = slots_ - 1;
        Slot* const ring = ring_;
        Slot& slot = ring[position & mask];
        shadow_[position & mask] = shadow_entry(arena_tail_, 0);
        slot.words[1].store(low, memory_order_relaxed);
        slot.words[2].store(high, memory_order_relaxed);
        if (length == sizeof(std::uint64_t)) [[likely]] {
            std::uint64_t word;
            std::memcpy(&word, payload, sizeof word);
            slot.words[3].store(word, memory_order_relaxed);
        } else if (length != 0) {
            fill(static_cast<void*>(&slot.words[3]), payload, length);
        }
        slot.words[0].store(std::uint64_t{16 + length} << 32 | (position + 1),
                            memory_order_release);
        reserved_ = published_ = position + 1;
        look_ahead(ring, position + 1, mask);
        return true;
    }

    /// The same for one of several: published with the next put(), transmit() or publish_kept(), or
    /// once there are kept_max. Meanwhile it lies in private memory. A store to a line that the
    /// reader's cache has waits for it, and other stores wait behind it; those of several frames
    /// wait together when there is nothing between them.
    bool keep(std::uint64_t low, std::uint64_t high, const std::byte* payload,
              std::uint32_t length) {
        if (!can_put(length)) return false;
        std::uint64_t* const words = kept_words_[kept_];
        words[0] = std::uint64_t{16 + length} << 32;
        words[1] = low;
        words[2] = high;
        if (length == sizeof(std::uint64_t)) [[likely]] {
            std::memcpy(&words[3], payload, sizeof(std::uint64_t));
        } else if (length != 0) {
            fill(&words[3], payload, length);
        }
        shadow_[reserved_ & (slots_ - 1)] = shadow_entry(arena_tail_, 0);
        ++reserved_;
        if (++kept_ == kept_max) publish_kept();
        return true;
    }
    void publish_kept() {
        const std::uint32_t count = kept_;
        if (count == 0) return;
        std::uint32_t position = published_;
        const std::uint32_t mask = slots_ - 1;
        for (std::uint32_t n = 0; n < count; ++n) {
            const std::uint64_t* const words = kept_words_[n];
            Slot& slot = ring_[position & mask];
            slot.words[1].store(words[1], memory_order_relaxed);
            slot.words[2].store(words[2], memory_order_relaxed);
            slot.words[3].store(words[3], memory_order_relaxed);
            if (words[0] > std::uint64_t{24} << 32) [[unlikely]] {
                for (std::uint32_t i = 4; i < Slot::words_count; ++i)
                    slot.words[i].store(words[i], memory_order_relaxed);
            }
            slot.words[0].store(words[0] | ++position, memory_order_release);
        }
        published_ = position;
        kept_ = 0;
        answering_ = false;
    }

    /// Reads how much the peer has given back.
    Refresh refresh() {
        if (closed_) return Refresh::same;
        peer_decision();
        // Acquire: our next stores into the room follow the peer's last loads from it.
        const std::uint32_t head = peer_load(*peer_head_, memory_order_acquire);
        if (head == head_) return Refresh::same;
        if (head - head_ > published_ - head_) return Refresh::lie;
        VIA_ASSERT(published_ - head <= reserved_ - head && reserved_ - head <= slots_);
        // A frame may be older than the arena's last arena_given_back(), which went further.
        const auto end = static_cast<std::uint32_t>(shadow_[(head - 1) & (slots_ - 1)]);
        if (static_cast<std::int32_t>(end - arena_head_) > 0) arena_head_ = end;
        head_ = head;
        return Refresh::moved;
    }

    /// True when refresh() would not return `same`.
    bool room_came() const {
        if (closed_) return false;
        peer_decision();
        return peer_load(*peer_head_, memory_order_acquire) != head_;
    }

    /// The peer's head now; one that refresh() would call a lie counts as no change.
    std::uint32_t peer_head() const {
        peer_decision();
        const std::uint32_t head = peer_load(*peer_head_, memory_order_acquire);
        return head - head_ > published_ - head_ ? head_ : head;
    }

    /// No more room from now on: the peer is gone.
    void close() {
        closed_ = true;
        head_ = reserved_ - slots_;
    }

    /// Frames published so far, modulo 2^32.
    std::uint32_t published() const { return published_; }
    /// True when pages of the arena may be occupied.
    bool arena_used() const { return arena_used_; }
    /// True when nobody needs a byte of the arena: nothing in flight, nothing reserved there.
    bool arena_idle() const { return arena_head_ == arena_tail_; }
    /// The caller gave the arena's pages back to the system while it was idle.
    void arena_given_back() {
        arena_used_ = false;
        const std::uint32_t offset = arena_tail_ & (arena_bytes_ - 1);
        if (offset != 0) arena_tail_ += arena_bytes_ - offset;
        arena_head_ = arena_tail_;
        reached_ = brought_ = 0;
    }
    /// A reserved payload lies where the arena's pages may not be there.
    bool lacks_pages() const { return reached_ > brought_; }
    /// Pages that the caller shall bring, or they come one by one. Until none are lacking.
    std::span<std::byte> lacking_pages() {
        const std::uint32_t offset = brought_;
        brought_ += std::min(arena_bytes_ - offset, pages_at_once);
        return {arena_ + offset, brought_ - offset};
    }

private:
    static constexpr std::uint32_t kept_max = 8;
    static constexpr std::uint32_t claimed_at_once = 8;    ///< slots
    static constexpr std::uint32_t pages_at_once = 65536;  ///< bytes
    /// Small payloads go round in as many bytes as the slots can refer to with them, from these on,
    /// as long as they find room there: fewer of them meet lines that nobody touched before. Large
    /// ones are slower (measured: 1.1 to 1.3 of the time) where they meet lines that the reader's
    /// cache still has, and StoreChoice needs two parts of the arena.
    static constexpr std::uint32_t small_length_max = 1024;
    static constexpr std::uint32_t lap_least = 1U << 18;
    static constexpr std::uint32_t warm_max =
        32768;  ///< bytes; more do not fit the time of an answer

    [[gnu::noinline]] static void fill(void* at, const std::byte* payload, std::uint32_t length) {
        std::memcpy(at, payload, length);
    }

    [[gnu::always_inline]] bool can_put(std::uint32_t length) const {
        return reserved_ - published_ == kept_ && reserved_ - head_ < slots_ &&
               length <= slot_room - 16;
    }

    /// After frames were published, up to `position`.
    [[gnu::always_inline]] void look_ahead(Slot* ring, std::uint32_t position, std::uint32_t mask) {
        // The next frame's line is not in this cache any more. Only to be read: asked for to be
        // written, it would take the line beside it, which the peer is about to read.
        __builtin_prefetch(&ring[position & mask]);
        // Who sends without waiting for answers stores to the lines behind it soon, too.
        if (!answering_ && static_cast<std::int32_t>(claimed_ - position) <= 1)
            claim(ring, position + 1, mask);
        answering_ = false;
    }

    /// Takes the lines of the next slots away from the reader's cache, which has them since a lap
    /// ago, if they are free: all at once, since a store to each of them would wait for its own. By
    /// a store, since prefetchw does nothing for a line that both have. They are beyond where the
    /// peer polls.
    [[gnu::noinline]] void claim(Slot* ring, std::uint32_t position, std::uint32_t mask) {
        const std::uint32_t end = position + claimed_at_once;
        if (end - head_ > slots_) return;
        for (; position != end; ++position)
            ring[position & mask].words[Slot::words_count - 1].store(0, memory_order_relaxed);
        claimed_ = end;
    }

    static constexpr std::uint64_t shadow_entry(std::uint32_t arena_end, std::uint32_t lengths) {
        return std::uint64_t{lengths} << 32 | arena_end;
    }

    /// Stores the reference of the last payload into its slot. Not before the payload is filled:
    /// who polls the slot would take its line away, and the stamp would wait for it once more.
    void refer() {
        referring_->words[arena_word].store(reference_, memory_order_relaxed);
        referring_ = nullptr;
    }

    /// Before frames with payloads in the arena are published.
    [[gnu::noinline]] void end_payloads() {
        refer();
        if (!streamed_) return;
        streaming_store_fence();
        streamed_ = false;
    }

    bool reserve_arena(std::uint32_t index, std::uint32_t header_length,
                       std::uint32_t payload_length, FrameSlot& slot) {
        VIA_ASSERT(header_length <= header_max && payload_length <= payload_max);
        VIA_ASSERT(payload_length > 0);
        const std::uint32_t need =
            (payload_length + arena_granularity - 1) & ~(arena_granularity - 1);
        std::uint32_t start = arena_tail_;
        std::uint32_t offset = start & (arena_bytes_ - 1);
        // A payload is contiguous, and a lap is over early where the peer keeps up: skip the rest.
        if (need > arena_bytes_ - offset || (need <= small_length_max && is_lap_over(offset, need)))
            [[unlikely]] {
            start += arena_bytes_ - offset;
            offset = 0;
        }
        if (start + need - arena_head_ > arena_bytes_) return false;
        if (referring_ != nullptr) refer();
        Slot& entry = ring_[index];
        referring_ = &entry;
        reference_ = std::uint64_t{payload_length} << 32 | offset;
        arena_tail_ = start + need;
        reached_ = std::max(reached_, offset + need);
        cold_ += need;
        arena_used_ = true;
        shadow_[index] = shadow_entry(arena_tail_, header_length << 16 | arena_marker);
        ++reserved_;
        slot.header = reinterpret_cast<std::byte*>(&entry.words[1]);
        slot.payload = arena_ + offset;
        return true;
    }

    /// Does a small payload begin at the end of a lap, or go beyond it, and did the peer give half
    /// of the lap back? What is skipped counts as taken, too.
    bool is_lap_over(std::uint32_t offset, std::uint32_t need) {
        const std::uint32_t crossed = offset == 0 ? 0 : (offset - 1) ^ (offset + need - 1);
        if (crossed < lap_least) [[likely]]
            return false;
        const std::uint32_t lap = std::max(std::bit_ceil(need) * slots_, lap_least);
        if (crossed < lap) return false;
        refresh();  // a lie is told when room is looked for
        return arena_tail_ - arena_head_ + lap / 2 <= offset;
    }

    // One cache line; positions count from 0 modulo 2^32.
    Slot* ring_ = nullptr;
    std::uint64_t* shadow_ = nullptr;  ///< per slot: lengths word, arena end after it
    std::byte* arena_ = nullptr;
    const Atomic<std::uint32_t>* peer_head_ = nullptr;
    std::uint32_t slots_ = 0;
    std::uint32_t reserved_ = 0;
    std::uint32_t published_ = 0;
    std::uint32_t head_ = 0;  ///< the peer's, as last read
    std::uint32_t arena_bytes_ = 0;
    std::uint32_t arena_tail_ = 0;  ///< bytes ever taken, skipped ones included, modulo 2^32
    std::uint32_t arena_head_ = 0;  ///< of those, given back
    std::uint32_t reached_ = 0;     ///< bytes that the arena begins with: payloads were there
    std::uint32_t brought_ = 0;     ///< bytes that the arena begins with: their pages were brought
    std::uint32_t cold_ = 0;        ///< bytes of it stored to since the last warm(), or more
    bool streamed_ = false;         ///< a reserved payload may be filled with streaming stores
    bool arena_used_ = false;
    bool closed_ = false;
    bool answering_ = false;     ///< a frame came since the last transmit()
    Slot* referring_ = nullptr;  ///< the last one reserved whose reference is not stored yet
    std::uint64_t reference_ = 0;
    std::uint32_t kept_ = 0;     ///< frames behind the published ones that keep() has put by
    std::uint32_t claimed_ = 0;  ///< the first position that claim() has not come to
    // rarely needed
    std::uint64_t kept_words_[kept_max][Slot::words_count]{};
};

}  // namespace via::device::shm
