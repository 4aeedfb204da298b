// Does it help to give the processor away after polls in vain?
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace via::agent {

/// Two programs that poll on one processor, each for what the other sends, each use up a time slice
/// in vain, some milliseconds, before the other has its turn. So where nearly all polls are in vain
/// it is tried what comes of giving the processor away after each of them (a rest). It stays so
/// while many more frames come than without; else, be it that nobody wants the processor or that
/// somebody has it who sends nothing, it ends, and is tried again less and less often. Both
/// programs have to rest, so all try at the same moments of the machine's clock.
class RestWatch {
public:
    static constexpr Duration window = milliseconds(8);
    /// A trial begins with each, or with each second, fourth, ... sixteenth.
    static constexpr Duration slot = milliseconds(64);
    static constexpr unsigned level_max = 4;
    static constexpr Duration trial = milliseconds(24);
    /// Then it is seen what comes without.
    static constexpr Duration rests_longest = seconds(4);

    /// While the program polls, now and then. `polls` (but those of calls that wait; not exact) and
    /// `frames` (that came) so far. True: a poll in vain ends with a rest from now on.
    bool look(std::uint64_t polls, std::uint64_t frames, Time now) {
        const Duration time = now - begin_;
        if (time >= window) {
            // Where the program stood still meanwhile it is nobody's window.
            if (time <= window * 4)
                judge(polls > polls_ ? polls - polls_ : 0, frames - frames_, time, now);
            else
                in_vain_ = rests_ = false;
            start_window(polls, frames, now);
        }
        if (!rests_ && in_vain_ && is_time_to_try(now)) {
            rests_ = true;
            helps_ = false;
            since_ = now;
            start_window(polls, frames, now);
        }
        return rests_;
    }

private:
    static constexpr std::uint64_t polls_per_frame = 256;
    /// In a window; of who has to wait for time slices it is a few.
    static constexpr std::uint64_t frames_enough = 64;
    static constexpr double times_as_many = 2;
    static constexpr Duration quiet_long = seconds(1);

    void start_window(std::uint64_t polls, std::uint64_t frames, Time now) {
        begin_ = now;
        polls_ = polls;
        frames_ = frames;
    }
    bool is_time_to_try(Time now) const {
        return now.ns % slot.ns < trial.ns / 2 && (now.ns / slot.ns) % (1 << level_) == 0;
    }
    void judge(std::uint64_t polls, std::uint64_t frames, Duration time, Time now) {
        const double rate = static_cast<double>(frames) / static_cast<double>(time.ns);
        if (frames != 0) {  // somebody came
            if (now - heard_ > quiet_long) level_ = 0;
            heard_ = now;
        }
        if (!rests_) {
            rate_without_ = rate;
            in_vain_ = polls >= polls_per_frame * (frames + 1);
            return;
        }
        const bool helped =
            std::exchange(helps_, frames >= frames_enough && rate >= times_as_many * rate_without_);
        if (helps_) {
            level_ = 0;
            rests_ = now - since_ < rests_longest;
        } else if (helped || now - since_ >= trial) {
            rests_ = false;
            if (!helped) level_ = std::min(level_ + 1, level_max);
        }
        if (!rests_) in_vain_ = false;  // it is seen anew
    }

    Time begin_{};
    std::uint64_t polls_ = 0;
    std::uint64_t frames_ = 0;
    bool in_vain_ = false;
    bool rests_ = false;
    bool helps_ = false;
    double rate_without_ = 0;
    Time since_{};
    Time heard_{};
    unsigned level_ = 0;
};

}  // namespace via::agent
