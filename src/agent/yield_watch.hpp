// Does it help to give the processor away after empty polls?
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace via::agent {

/// Two programs that poll on one processor, each for what the other sends, each use up a time slice
/// on empty polls, some milliseconds, before the other has its turn. So where nearly all polls are
/// empty it is tried what comes of giving the processor away after each of them (a yield). It stays
/// so while frames come twice as often as without; else, be it that nobody wants the processor or
/// that somebody has it who sends nothing, it ends, and is tried again less and less often. Both
/// programs have to yield, so all try at the same moments of the machine's clock.
///
/// What is often and seldom is measured in time, by what a time slice is: how much a poll or a
/// frame takes is a matter of machine, medium and build.
class YieldWatch {
public:
    static constexpr Duration window = milliseconds(8);
    /// A trial begins with each, or with each second, fourth, ... sixteenth.
    static constexpr Duration slot = milliseconds(64);
    static constexpr unsigned level_max = 4;
    /// So long it is seen whether yields help; also later, since others may want the processor now
    /// and then.
    static constexpr Duration trial = milliseconds(24);
    /// Then it is seen what comes without.
    static constexpr Duration yields_longest = seconds(4);
    /// Who hears something so often does not wait for time slices.
    static constexpr Duration often = microseconds(100);
    /// A time slice takes longer: who hears something less often waits for them, yields or not.
    static constexpr Duration slice_least = milliseconds(1);

    /// While the program polls, or would if it had a processor, now and then. `polls` (but those of
    /// calls that wait; not exact) and `frames` (that came) so far. True: an empty poll ends with
    /// a yield from now on.
    bool look(std::uint64_t polls, std::uint64_t frames, Time now) {
        if (const Duration time = now - begin_; time >= window) {
            if (stood_still_ && time > window * 4)
                mostly_empty_ = yields_ = false;  // what it did before says nothing
            else
                judge(polls > polls_ ? polls - polls_ : 0, frames - frames_, time, now);
            start_window(polls, frames, now);
        }
        if (!yields_ && mostly_empty_ && is_time_to_try(now)) {
            yields_ = true;
            helped_ = false;
            since_ = helped_at_ = now;
            start_window(polls, frames, now);
        }
        return yields_;
    }
    /// The program was found doing something else. (That nobody looked for long does not tell: who
    /// would look may have no processor himself.)
    void stood_still() { stood_still_ = true; }

private:
    /// Who finds something at more of its polls does not wait.
    static constexpr std::uint64_t polls_per_frame = 16;
    static constexpr std::int64_t times_as_often = 2;
    static constexpr Duration quiet_long = seconds(1);

    void start_window(std::uint64_t polls, std::uint64_t frames, Time now) {
        begin_ = now;
        stood_still_ = false;
        polls_ = polls;
        frames_ = frames;
    }
    bool is_time_to_try(Time now) const {
        return now.ns % slot.ns < trial.ns / 2 && (now.ns / slot.ns) % (1 << level_) == 0;
    }
    void judge(std::uint64_t polls, std::uint64_t frames, Duration time, Time now) {
        const Duration apart{time.ns /
                             static_cast<std::int64_t>(std::max<std::uint64_t>(frames, 1))};
        if (frames != 0) {  // somebody came
            if (now - heard_ > quiet_long) level_ = 0;
            heard_ = now;
        }
        if (!yields_) {
            apart_without_ = apart;
            mostly_empty_ = apart >= often && polls >= polls_per_frame * (frames + 1);
            return;
        }
        if (apart <= slice_least && apart.ns * times_as_often <= apart_without_.ns) {
            helped_ = true;
            helped_at_ = now;
            level_ = 0;
        } else {  // nobody ran for long, perhaps: a window without frames is none more for that
            helped_at_ = helped_at_ + Duration{time.ns - window.ns};
        }
        if (now - helped_at_ < trial && (!helped_ || now - since_ < yields_longest)) return;
        if (!helped_) level_ = std::min(level_ + 1, level_max);
        yields_ = mostly_empty_ = false;  // it is seen anew
    }

    Time begin_{};
    std::uint64_t polls_ = 0;
    std::uint64_t frames_ = 0;
    bool stood_still_ = true;  ///< in this window
    bool mostly_empty_ = false;
    bool yields_ = false;
    bool helped_ = false;       ///< since it yields
    Duration apart_without_{};  ///< frames, in the last window without yields
    Time since_{};
    Time helped_at_{};
    Time heard_{};
    unsigned level_ = 0;
};

}  // namespace via::agent
