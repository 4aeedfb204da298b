// One line in which two sides send each other small frames in turn: who has just got one may send
// the next one there, and all else goes through the rings. A request and its reply move this line
// once each way, where a ring moves a line of each side and takes it back a lap later: half the
// time or less. Only who is next writes, and only who waits reads.
//
// A payload that the line does not hold lies beside it, in a room that goes to and fro with it:
// what its reader has just had is at hand when he answers, and no line is touched but those in use.
//
// The two are the one memory that both write. A peer that writes when it is not its turn damages
// its own frames, or sends more of them; what we sent is nobody's but the peer's.
//
// Frames of both ways of going arrive in the order in which they were sent: each one here says how
// many of the ring's went before it, and who finds some in the ring looks here once more, since the
// one here was stored before any that follow it.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/atomic.hpp"
#include "device/device.hpp"
#include "device/shm/layout.hpp"
#include "device/shm/peer_load.hpp"

namespace via::device::shm {

class Mailbox {
public:
    /// `line` and `room`, of payload_max bytes, stay the caller's. One side of the two begins.
    void attach(Slot* line, std::byte* room, bool begins) {
        line_ = line;
        room_ = room;
        ours_ = begins;
    }

    /// We may send the next one.
    bool ours() const { return ours_; }
    /// Frames that went through here, both ways, modulo 2^32.
    std::uint32_t count() const { return next_ - 1; }

    /// One frame with a header of two words, behind all that is published in our ring, whose
    /// position that is. ours() only; `length` up to payload_max.
    [[gnu::always_inline]] void put(std::uint64_t low, std::uint64_t high, const std::byte* payload,
                                    std::uint32_t length, std::uint32_t position) {
        Slot& line = *line_;
        line.words[1].store(low, memory_order_relaxed);
        line.words[2].store(high, memory_order_relaxed);
        if (length > slot_room - header_length) [[unlikely]] {
            std::memcpy(room_, payload, length);
        } else if (length % sizeof(std::uint64_t) == 0) [[likely]] {
            for (std::uint32_t i = 0; i * sizeof(std::uint64_t) < length; ++i) {
                std::uint64_t word;
                std::memcpy(&word, payload + i * sizeof word, sizeof word);
                line.words[3 + i].store(word, memory_order_relaxed);
            }
        } else {
            fill(payload, length);
        }
        publish(length, position);
    }
    /// The same for a payload of two pieces.
    void put_pieces(std::uint64_t low, std::uint64_t high, const SmallSends::Pieces& payload,
                    std::uint32_t position) {
        const std::uint32_t length = payload.first_length + payload.second_length;
        line_->words[1].store(low, memory_order_relaxed);
        line_->words[2].store(high, memory_order_relaxed);
        std::byte few[slot_room - header_length];
        std::byte* const to = length > sizeof few ? room_ : few;
        std::memcpy(to, payload.first, payload.first_length);
        std::memcpy(to + payload.first_length, payload.second, payload.second_length);
        if (length <= sizeof few) fill(few, length);
        publish(length, position);
    }

    /// Nobody has looked for an answer yet.
    bool just_sent() const { return just_sent_; }
    void forget() { just_sent_ = false; }
    /// For the first look after put(). A look takes the line from a peer that is about to answer,
    /// whose store then has to take it back: better a little too late than too early. Waits about
    /// as long as answers took lately; not where they take longer than some hundred nanoseconds.
    void await_answer() {
        just_sent_ = false;
        for (std::uint32_t n = patience(); n != 0; --n) asm volatile("");
    }
    std::uint32_t patience() const { return unhurried_ == 0 ? patience_ : 0; }
    /// More looks, in one go, if the first one was too early. The line is with us by now, so they
    /// cost the peer nothing, and see an answer sooner than one for each poll of the program.
    std::uint32_t looks_more() const { return unhurried_ == 0 ? looks_more_max : 0; }
    /// Was there one, by that look?
    void judge(bool answered) {
        if (unhurried_ != 0) {
            --unhurried_;
        } else if (answered) {
            if (patience_ >= step_down) patience_ -= step_down;
        } else if ((patience_ += step_up) > patience_max) {
            patience_ = patience_first;
            unhurried_ = unhurried_for;
        }
    }

    /// What is there, by one look.
    struct Look {
        std::uint64_t word;
        bool is_there;

        /// So many frames of the ring come first, of which `position` were taken; not positive:
        /// none. What a liar says delays its own frame at most.
        std::int32_t behind(std::uint32_t position) const {
            const auto distance = static_cast<std::uint32_t>(word >> position_shift) - position;
            return static_cast<std::int32_t>(distance << (32 - position_bits)) >>
                   (32 - position_bits);
        }
    };
    [[gnu::always_inline]] Look look() const {
        peer_decision();
        const std::uint64_t word = peer_load(line_->words[0], memory_order_acquire);
        return {word, static_cast<std::uint32_t>(word) == next_};
    }

    /// Takes the frame that was looked at. A payload in the room stays there until we put the next
    /// one. False: it lies about its length; nothing was taken.
    [[gnu::always_inline]] bool take(Look look, Frame& frame) {
        const std::uint32_t length = static_cast<std::uint32_t>(look.word >> 32) & length_mask;
        copy(frame, 1, few_words);
        if (length > slot_room) [[unlikely]] {
            if (length > header_length + payload_max) return false;
            frame.payload = room_;
            frame.payload_length = length - header_length;
            frame.length = header_length;
        } else {
            if (length > (few_words - 1) * sizeof(std::uint64_t)) [[unlikely]]
                copy_rest(frame);
            frame.payload = nullptr;
            frame.payload_length = 0;
            frame.length = length;
        }
        ++next_;
        ours_ = true;
        return true;
    }

private:
    // words[0]: the frame's number, the bytes of the frame, and the ring's position.
    static constexpr std::uint32_t length_bits = 14;
    static constexpr std::uint32_t length_mask = (1U << length_bits) - 1;
    static constexpr std::uint32_t position_shift = 32 + length_bits;
    static constexpr std::uint32_t position_bits = 64 - position_shift;
    static_assert(1U << (position_bits - 1) > Layout::ring_slots_max);
    static constexpr std::uint32_t header_length = 16;
    static_assert(header_length + payload_max <= length_mask);
    /// Words of a frame with a header and 8 bytes, the first one included.
    static constexpr std::uint32_t few_words = 4;

    [[gnu::always_inline]] void copy(Frame& frame, std::uint32_t from, std::uint32_t end) const {
#pragma GCC unroll 8
        for (std::uint32_t i = from; i < end; ++i) {
            const std::uint64_t word = peer_load(line_->words[i], memory_order_relaxed);
            std::memcpy(frame.bytes + (i - 1) * sizeof word, &word, sizeof word);
        }
    }
    [[gnu::always_inline]] void publish(std::uint32_t length, std::uint32_t position) {
        line_->words[0].store(std::uint64_t{position} << position_shift |
                                  std::uint64_t{header_length + length} << 32 | next_,
                              memory_order_release);
        ++next_;
        ours_ = false;
        just_sent_ = true;
    }
    [[gnu::noinline]] void copy_rest(Frame& frame) const {
        copy(frame, few_words, Slot::words_count);
    }
    [[gnu::noinline]] void fill(const std::byte* payload, std::uint32_t length) {
        std::uint64_t words[Slot::words_count - 3] = {};
        std::memcpy(words, payload, length);
        for (std::uint32_t i = 0; i * sizeof(std::uint64_t) < length; ++i)
            line_->words[3 + i].store(words[i], memory_order_relaxed);
    }

    // Rounds of an empty loop, about a processor cycle each. Four of five looks shall find it.
    static constexpr std::uint32_t patience_first = 256, patience_max = 1024;
    static constexpr std::uint32_t step_up = 32, step_down = 8;
    static constexpr std::uint32_t looks_more_max = 512;
    /// Frames after which a peer that was too slow to wait for is tried again.
    static constexpr std::uint32_t unhurried_for = 1024;

    Slot* line_ = nullptr;
    std::byte* room_ = nullptr;
    std::uint32_t next_ = 1;  ///< number of the next frame, ours or the peer's
    bool ours_ = false;
    bool just_sent_ = false;
    std::uint32_t patience_ = patience_first;
    std::uint32_t unhurried_ = 0;
};

}  // namespace via::device::shm
