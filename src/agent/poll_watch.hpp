// Does the program still poll, and when to look again?
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/time.hpp"

namespace via::agent {

/// A look takes the turn and, where the threads share a processor, some ten microseconds from a
/// program that polls, and a message that comes meanwhile waits. So each period is twice as long as
/// the one before, up to `longest`: a program that stands still is so found after no longer than it
/// had polled. Who polls half as often as before may have begun to do something else, and is looked
/// after as at first; so is who waits in calls, which sleep on what would wake us, too.
class PollWatch {
public:
    /// A peer that lacks an acknowledgement for longer has its third timeout, after which it
    /// believes that nothing arrives.
    static constexpr Duration longest = milliseconds(4);

    /// `least`: the first period; at most `longest`.
    explicit PollWatch(Duration least) : least_(least), period_(least) {}

    Duration period() const { return period_; }

    /// `polls`: so far, and how many of them are of calls that wait. False: none since the last
    /// look.
    bool look(std::uint64_t polls, std::uint64_t of_waits, Time now) {
        const bool stood_still = std::exchange(stands_still_, polls == seen_);
        const bool waited = std::exchange(of_waits_seen_, of_waits) != of_waits;
        seen_ = polls;
        if (stands_still_ || stood_still || waited) {  // it began to poll some time since then
            period_ = least_;
            before_ = {};
            begin(polls, now);
            return !stands_still_;
        }
        const Span span{polls - polls_then_, now - then_};
        if (span.time < period_) return true;  // somebody woke us up before
        const bool slower = span.is_half_as_often_as(before_);
        period_ = slower ? least_ : std::min(period_ * 2, longest);
        before_ = span;
        begin(polls, now);
        return true;
    }

private:
    struct Span {
        std::uint64_t polls = 0;
        Duration time{};
        bool is_half_as_often_as(const Span& other) const {
            return 2 * static_cast<double>(polls) * static_cast<double>(other.time.ns) <
                   static_cast<double>(other.polls) * static_cast<double>(time.ns);
        }
    };

    void begin(std::uint64_t polls, Time now) {
        polls_then_ = polls;
        then_ = now;
    }

    const Duration least_;
    Duration period_;
    bool stands_still_ = true;  ///< at the last look
    std::uint64_t seen_ = 0;    ///< polls then
    std::uint64_t of_waits_seen_ = 0;
    Span before_;                   ///< the last whole period
    std::uint64_t polls_then_ = 0;  ///< at its end
    Time then_{};
};

}  // namespace via::agent
