// The sender's side of frames that must arrive: which packet carried each last, and whether it
// arrived. Numbers are of 32 bits and come round.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

class FramesUnderWay {
public:
    std::uint32_t count() const { return end_ - begin_; }
    bool has_room() const { return count() < max_; }
    std::uint32_t room() const { return max_ - count(); }
    /// How many may be under way at once; grows to frames_ahead_max.
    std::uint32_t max() const { return max_; }
    void allow(std::uint32_t max) { max_ = max; }
    /// The next frames, from now on under way: the number of the first.
    std::uint32_t take(std::uint32_t more = 1) {
        VIA_ASSERT(more <= room());
        while (room_ - count() < more) widen();
        for (std::uint32_t n = 0; n < more; ++n) frames_[slot(end_ + n)] = {};
        return std::exchange(end_, end_ + more);
    }

    /// That did not arrive; meaningless if there is none.
    std::uint32_t oldest() const { return begin_; }
    bool under_way(std::uint32_t number) const {
        return number - begin_ < end_ - begin_ && !frames_[slot(number)].arrived;
    }
    void sent(std::uint32_t number, std::uint64_t packet) {
        if (under_way(number)) frames_[slot(number)] = {packet, false, false};
    }
    /// True the first time.
    bool arrived(std::uint32_t number) {
        if (!under_way(number)) return false;
        frames_[slot(number)].arrived = true;
        while (begin_ != end_ && frames_[slot(begin_)].arrived) ++begin_;
        return true;
    }
    /// `packet` was the last to carry it and nobody was told that it was lost.
    bool is_in(std::uint32_t number, std::uint64_t packet) const {
        if (!under_way(number)) return false;
        const Frame& frame = frames_[slot(number)];
        return frame.packet == packet && !frame.told;
    }
    /// True the first time, if it is in that packet.
    bool lost(std::uint32_t number, std::uint64_t packet) {
        if (!is_in(number, packet)) return false;
        frames_[slot(number)].told = true;
        return true;
    }

private:
    struct Frame {
        std::uint64_t packet = ~std::uint64_t{0};
        bool arrived = false;
        bool told = false;  ///< that it was lost, and it was not sent again yet
    };
    std::uint32_t slot(std::uint32_t number) const { return number & (room_ - 1); }
    void widen() {
        std::vector<Frame> wider(frames_.empty() ? frames_first : 2 * frames_.size());
        for (std::uint32_t number = begin_; number != end_; ++number)
            wider[number & (wider.size() - 1)] = frames_[slot(number)];
        frames_ = std::move(wider);
        room_ = static_cast<std::uint32_t>(frames_.size());
    }

    static constexpr std::size_t frames_first = 64;
    std::vector<Frame> frames_;
    std::uint32_t max_ = frames_under_way_least;
    std::uint32_t room_ = 0;   ///< a power of two: the deepest use so far
    std::uint32_t begin_ = 0;  ///< the oldest that did not arrive
    std::uint32_t end_ = 0;
};

}  // namespace via::device::datagram
