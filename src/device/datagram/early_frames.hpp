// The frames of one packet that came before their turn and were kept, until they have their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "device/datagram/frame_order.hpp"

namespace via::device::datagram {

/// They are taken in the order in which they were put, so nobody searches: a packet may hold
/// thousands of them.
class EarlyFrames {
public:
    void put(std::uint32_t number, const FrameOrder::Held& frame) {
        frames_.push_back({number, frame});
    }
    /// The next one of that number; what stands before it had no place. It is there.
    FrameOrder::Held take(std::uint32_t number) {
        for (;;) {
            VIA_ASSERT(next_ < frames_.size());
            Early& early = frames_[next_++];
            if (early.number != number) continue;
            const FrameOrder::Held frame = early.frame;
            early.frame.share = nullptr;
            return frame;
        }
    }
    bool empty() const { return frames_.empty(); }
    /// Lets go of those that were not taken.
    template <class LetGo>
    void clear(LetGo let_go) {
        for (const Early& early : frames_)
            if (early.frame.share != nullptr) let_go(early.frame);
        frames_.clear();
        next_ = 0;
    }

private:
    struct Early {
        std::uint32_t number;
        FrameOrder::Held frame;
    };
    std::vector<Early> frames_;
    std::size_t next_ = 0;
};

}  // namespace via::device::datagram
