// Does somebody else want the processor on which the program polls in vain?
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"

namespace via::agent {

/// Two programs that poll on one processor, the one for what the other sends, each use up a time
/// slice in vain, some milliseconds, before the other has its turn. So where nearly all polls are
/// in vain it is tried, until the next look, what comes of giving the processor away after each of
/// them (a rest). If other threads ran meanwhile, it stays so; else nobody wants the processor, and
/// that is asked again after a pause, each twice as long as the one before.
class RestWatch {
public:
    /// So far.
    struct Seen {
        std::uint64_t polls = 0;
        std::uint64_t frames = 0;  ///< that came
        std::uint64_t rests = 0;
        std::uint64_t switches = 0;  ///< of these the ones in which another thread ran
    };
    static constexpr Duration pause_least = milliseconds(16);
    static constexpr Duration pause_longest = milliseconds(1000);

    /// While the program polls. True: a poll in vain ends with a rest from now on.
    bool look(const Seen& seen, Time now) {
        const std::uint64_t polls = seen.polls - seen_.polls;
        const std::uint64_t frames = seen.frames - seen_.frames;
        const std::uint64_t rests = seen.rests - seen_.rests;
        const std::uint64_t switches = seen.switches - seen_.switches;
        seen_.polls = seen.polls;
        seen_.frames = seen.frames;
        if (!rests_) {
            seen_ = seen;
            rests_ = now >= next_ && polls >= polls_per_frame * (frames + 1);
        } else if (rests >= rests_enough) {
            seen_ = seen;
            rests_ = switches * rests_per_switch >= rests;
            if (!rests_) next_ = now + pause_;
            pause_ = rests_ ? pause_least : std::min(pause_ * 2, pause_longest);
        }
        return rests_;
    }

private:
    static constexpr std::uint64_t polls_per_frame = 256;
    static constexpr std::uint64_t rests_enough = 64;
    /// A thread that is alone on its processor is interrupted now and then, too.
    static constexpr std::uint64_t rests_per_switch = 8;

    Seen seen_;
    bool rests_ = false;
    Time next_{};
    Duration pause_ = pause_least;
};

}  // namespace via::agent
