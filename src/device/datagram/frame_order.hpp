// The receiver's side: frames are handed up in the order of their numbers, each once. What comes
// before its turn waits in the buffer that it came in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "device/datagram/constants.hpp"
#include "device/datagram/parts.hpp"

namespace via::device::datagram {

struct Share;

class FrameOrder {
public:
    struct Held {
        const std::byte* bytes = nullptr;  ///< nullptr: nothing is here
        std::uint32_t length = 0;
        std::uint32_t buffer = 0;  ///< no_buffer: a copy; spare_copy: one that is not charged
        Share* share = nullptr;    ///< whose; nullptr: it was not kept, and goes with release()
    };
    static constexpr std::uint32_t no_buffer = ~0U;
    static constexpr std::uint32_t spare_copy = no_buffer - 1;      ///< of one that comes
    static constexpr std::uint32_t spare_copy_out = no_buffer - 2;  ///< of one that leaves
    enum class Place : std::uint8_t { next, ahead, duplicate, too_far };

    std::uint32_t next() const { return next_; }
    std::uint32_t held() const { return held_; }
    /// It is its turn, and no other's behind it.
    bool is_next(std::uint32_t number) const { return number == next_ && held_ == 0; }

    /// Where a frame stands, if `next` is the next one.
    Place place(std::uint32_t number, std::uint32_t next) const {
        const std::uint32_t distance = number - next;
        if (distance == 0) return Place::next;
        if (distance >= 1U << 31) return Place::duplicate;
        if (number - next_ >= reach()) return Place::too_far;
        return is_held(number) ? Place::duplicate : Place::ahead;
    }
    bool is_held(std::uint32_t number) const {
        return held_ != 0 && number - next_ < frames_.size() &&
               frames_[slot(number)].bytes != nullptr;
    }
    /// make_place() made its place.
    void hold(std::uint32_t number, const Held& frame) {
        VIA_ASSERT(number - next_ < frames_.size() && !is_held(number));
        frames_[slot(number)] = frame;
        ++held_;
    }
    /// By how many bytes the table grows, beyond what it has in any case, to hold that one.
    std::size_t cost_of_place(std::uint32_t number) const {
        if (number - next_ < frames_.size()) return 0;
        return (size_for(number - next_) - std::max(frames_.size(), least)) * sizeof(Held);
    }
    /// Until give_memory_back().
    void make_place(std::uint32_t number) {
        if (number - next_ >= frames_.size()) widen(number - next_);
    }
    std::size_t bytes_charged() const {
        return (std::max(frames_.size(), least) - least) * sizeof(Held);
    }
    /// The next frames were handed up.
    void advance(std::uint32_t count = 1) { next_ += count; }
    /// Takes the next frame if it is here.
    bool take(Held& frame) {
        if (!is_held(next_)) return false;
        frame = frames_[slot(next_)];
        frames_[slot(next_)] = {};
        --held_;
        ++next_;
        return true;
    }
    /// Of the next frame, which counts as held; nullptr: none came.
    PartsHere* parts() { return parts_.get(); }
    std::uint32_t parts_length() const { return parts_frame_.length; }
    /// `frame` is to be filled at `bytes`.
    void begin_parts(const Held& frame, std::byte* bytes) {
        VIA_ASSERT(parts_ == nullptr);
        parts_frame_ = frame;
        parts_ = std::make_unique<PartsHere>(bytes, frame.length);
        ++held_;
    }
    /// The frame is whole, came otherwise, or is given up.
    Held end_parts() {
        VIA_ASSERT(parts_ != nullptr && held_ != 0);
        parts_.reset();
        --held_;
        return std::exchange(parts_frame_, {});
    }
    /// Lets all go: calls `let_go(held)` for each.
    template <class LetGo>
    void clear(LetGo let_go) {
        if (parts_ != nullptr) let_go(end_parts());
        for (std::uint32_t n = next_; held_ != 0; ++n) {
            if (frames_[slot(n)].bytes == nullptr) continue;
            let_go(frames_[slot(n)]);
            frames_[slot(n)] = {};
            --held_;
        }
        std::vector<Held>().swap(frames_);
    }

    /// Nothing is held, and the table is longer than it need be.
    bool has_memory_to_give() const { return held_ == 0 && frames_.size() > least; }
    void give_memory_back() { std::vector<Held>().swap(frames_); }

private:
    /// What comes so far ahead has no place. It grows by one with each frame held, so that nobody
    /// gets a long table for one frame. As frames are taken it shrinks by no more than we advance:
    /// what was found to have its place, seen from here, still has it then.
    std::uint32_t reach() const { return std::min(frames_ahead_least + held_, frames_ahead_max); }
    std::uint32_t slot(std::uint32_t number) const {
        return number & (static_cast<std::uint32_t>(frames_.size()) - 1);
    }
    static constexpr std::size_t least = frames_held_least;
    std::size_t size_for(std::uint32_t distance) const {
        std::size_t size = std::max(frames_.size(), least);
        while (size <= distance) size *= 2;
        return size;
    }
    void widen(std::uint32_t distance) {
        const std::size_t size = size_for(distance);
        std::vector<Held> wider(size);
        for (std::uint32_t n = 0; n < frames_.size(); ++n)
            wider[(next_ + n) & (size - 1)] = frames_[slot(next_ + n)];
        frames_ = std::move(wider);
    }
    std::vector<Held> frames_;  ///< a power of two; none until something comes too early
    std::uint32_t next_ = 0;
    std::uint32_t held_ = 0;
    std::unique_ptr<PartsHere> parts_;
    Held parts_frame_;
};

}  // namespace via::device::datagram
