// Through the cache or past it: which stores fill the arena. Past it is several times faster where
// the two processors are far from each other and slower where they are near. Nobody tells how far
// they are, and it changes when the scheduler moves a process; so both are tried now and then
// and the faster one is kept. Only the sender's pace is needed: when the arena is full it is the
// receiver's too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::shm {

class StoreChoice {
public:
    static constexpr std::uint32_t trial_windows = 16;  ///< of a trial, the two kinds in turn
    static constexpr std::uint32_t kept_windows = 512;  ///< until the next trial

    /// `lap`: bytes, part of the arena. A window is two laps, and its time that of the second one:
    /// in the first what the other kind of stores left is still on its way.
    explicit StoreChoice(std::uint32_t lap) : lap_(lap) {}

    /// Counts a payload of `length` bytes; true: store it past the cache. `now()` is a clock, asked
    /// once in a lap.
    template <class Clock>
    bool stream(std::uint32_t length, const Clock& now) {
        bytes_ += length;
        if (bytes_ >= lap_) [[unlikely]]
            end_lap(now());
        return stream_;
    }

    /// Has a trial ended, and the arena its pages?
    bool settled() const { return windows_ >= trial_windows; }

private:
    void end_lap(Time now) {
        bytes_ = 0;
        second_lap_ = !second_lap_;
        if (second_lap_) {
            lap_began_ = now;
            return;
        }
        if (windows_ < trial_windows) {
            // The shortest of each kind: pauses of the program only make a window longer.
            Duration& best = best_[stream_ ? 1 : 0];
            best = std::min(best, now - lap_began_);
        }
        ++windows_;
        if (windows_ < trial_windows) {
            stream_ = !stream_;
        } else if (windows_ == trial_windows) {
            // What was kept so far stays unless the other one is clearly faster.
            Duration kept = best_[kept_ ? 1 : 0];
            const Duration other = best_[kept_ ? 0 : 1];
            if (other + nanoseconds(other.ns / advantage_part) < kept) kept_ = !kept_;
            stream_ = kept_;
        } else if (windows_ == trial_windows + kept_windows) {
            windows_ = 0;
            best_[0] = best_[1] = Time::never() - Time{};
        }
    }

    static constexpr std::int64_t advantage_part = 20;  ///< a twentieth faster is clearly faster

    std::uint32_t lap_;
    std::uint32_t bytes_ = 0;
    std::uint32_t windows_ = 0;  ///< since the trial began
    bool second_lap_ = false;
    bool stream_ = false;
    bool kept_ = false;
    Time lap_began_{};
    Duration best_[2] = {Time::never() - Time{}, Time::never() - Time{}};  ///< through, past
};

}  // namespace via::device::shm
