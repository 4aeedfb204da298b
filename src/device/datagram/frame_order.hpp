// The receiver's side: frames are handed up in the order of their numbers, each once. What comes
// before its turn waits in the buffer that it came in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/datagram/constants.hpp"

namespace via::device::datagram {

class FrameOrder {
public:
    struct Held {
        const std::byte* bytes = nullptr;  ///< nullptr: nothing is here
        std::uint32_t length = 0;
        std::uint32_t buffer = 0;
    };
    enum class Place : std::uint8_t { next, ahead, duplicate, too_far };

    std::uint32_t next() const { return next_; }
    std::uint32_t held() const { return held_; }

    /// Where a frame stands, if `next` is the next one.
    Place place(std::uint32_t number, std::uint32_t next) const {
        const std::uint32_t distance = number - next;
        if (distance == 0) return Place::next;
        if (distance >= 1U << 31) return Place::duplicate;
        if (distance >= frames_ahead_max) return Place::too_far;
        return is_held(number) ? Place::duplicate : Place::ahead;
    }
    bool is_held(std::uint32_t number) const {
        return held_ != 0 && number - next_ < frames_ahead_max &&
               frames_[slot(number)].bytes != nullptr;
    }
    void hold(std::uint32_t number, const Held& frame) {
        if (frames_.empty()) frames_.resize(frames_ahead_max);
        frames_[slot(number)] = frame;
        ++held_;
    }
    /// The next frame was handed up.
    void advance() { ++next_; }
    /// Takes the next frame if it is here.
    bool take(Held& frame) {
        if (!is_held(next_)) return false;
        frame = frames_[slot(next_)];
        frames_[slot(next_)] = {};
        --held_;
        ++next_;
        return true;
    }
    /// Lets all go: calls `let_go(buffer)` for each.
    template <class LetGo>
    void clear(LetGo let_go) {
        for (std::uint32_t n = next_; held_ != 0; ++n) {
            if (frames_[slot(n)].bytes == nullptr) continue;
            let_go(frames_[slot(n)].buffer);
            frames_[slot(n)] = {};
            --held_;
        }
    }

private:
    static std::uint32_t slot(std::uint32_t number) { return number % frames_ahead_max; }

    std::vector<Held> frames_;  ///< none until something comes too early
    std::uint32_t next_ = 0;
    std::uint32_t held_ = 0;
};

}  // namespace via::device::datagram
