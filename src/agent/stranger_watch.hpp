// Is a sleeper woken by strangers alone?
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace via::agent {

/// Who sleeps on a socket is woken by whoever sends to it. Many wake-ups in a row, without a frame
/// that came or left, are a flood's.
class StrangerWatch {
public:
    static constexpr int wake_ups_max = 8;
    /// Sleeps that are longer apart are no flood's.
    static constexpr Duration in_a_row = milliseconds(10);

    /// Before each sleep. `frames`: that came or left so far.
    void look(std::uint64_t frames, Time now) {
        needless_ = frames == frames_ && now - slept_ < in_a_row ? needless_ + 1 : 0;
        frames_ = frames;
        slept_ = now;
    }
    bool hears_strangers() const { return needless_ > wake_ups_max; }

private:
    int needless_ = 0;  ///< wake-ups in a row
    std::uint64_t frames_ = 0;
    Time slept_{};
};

}  // namespace via::agent
