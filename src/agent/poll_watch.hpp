// Does the program still poll, and when to look again? Does it poll again?
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "base/time.hpp"

namespace via::agent {

/// Who polls less often in the agent's first period polls seldom: what comes between two of its
/// polls would wait for longer than the agent needs to wake up.
inline constexpr std::uint64_t seldom_polls = 8;

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

    /// `least`: the first period; at most `longest`. `seldom`: fewer polls in that are none.
    explicit PollWatch(Duration least, std::uint64_t seldom = seldom_polls)
        : least_(least), seldom_(seldom), period_(least) {}

    Duration period() const { return period_; }

    /// `polls`: so far, and how many of them are of calls that wait. False: none since the last
    /// look, or so few that they are seldom.
    bool look(std::uint64_t polls, std::uint64_t of_waits, Time now) {
        const Span since_look{polls - seen_, now - seen_at_};
        const bool stood_still =
            std::exchange(stands_still_, since_look.is_seldom(seldom_, least_));
        const bool waited = std::exchange(of_waits_seen_, of_waits) != of_waits;
        seen_ = polls;
        seen_at_ = now;
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

    /// The program polls again, and has not done so for long.
    void begin_again(std::uint64_t polls, std::uint64_t of_waits, Time now) {
        stands_still_ = false;
        seen_ = polls;
        seen_at_ = now;
        of_waits_seen_ = of_waits;
        period_ = least_;
        before_ = {};
        begin(polls, now);
    }

private:
    struct Span {
        std::uint64_t polls = 0;
        Duration time{};
        bool is_seldom(std::uint64_t seldom, Duration period) const {
            return polls == 0 || static_cast<double>(polls) * static_cast<double>(period.ns) <
                                     static_cast<double>(seldom) * static_cast<double>(time.ns);
        }
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
    const std::uint64_t seldom_;
    Duration period_;
    bool stands_still_ = true;  ///< at the last look
    std::uint64_t seen_ = 0;    ///< polls then
    Time seen_at_{};
    std::uint64_t of_waits_seen_ = 0;
    Span before_;                   ///< the last whole period
    std::uint64_t polls_then_ = 0;  ///< at its end
    Time then_{};
};

/// A program that stood still polls: once more, or does it begin to poll again? Each now and then
/// would cost a wake-up of the agent, and leave what comes before the next one to itself. Any
/// thread may call; where two do at once a poll more or less is counted.
class PollsAgain {
public:
    explicit PollsAgain(Duration period) : period_(period) {}

    /// At each poll. True: there were so many within one period that they are no longer seldom.
    bool poll(Time now) {
        if ((now - Time{since_.load(std::memory_order_relaxed)}) >= period_) {
            since_.store(now.ns, std::memory_order_relaxed);
            polls_.store(0, std::memory_order_relaxed);
        }
        return polls_.fetch_add(1, std::memory_order_relaxed) + 1 >= seldom_polls;
    }

private:
    const Duration period_;
    Atomic<std::int64_t> since_{0};
    Atomic<std::uint64_t> polls_{0};
};

}  // namespace via::agent
