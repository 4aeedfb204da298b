// Virtual time: what happens when. Equal moments are taken in the order in which they were asked
// for, so the same run gives the same events.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/time.hpp"
#include "lab/task.hpp"

namespace via::lab {

class Schedule {
public:
    Time now() const { return now_; }
    std::uint64_t events() const { return events_; }

    /// `moment` must not be past.
    void resume_at(Time moment, std::coroutine_handle<> waiting);
    /// Lets `task` run from now on; it is kept until it has ended, or the schedule is destroyed.
    void spawn(Task<> task);

    /// Lets the next event happen; false: there is none.
    bool step();
    /// When the next event is; never() if there is none.
    Time next() const { return queue_.empty() ? Time::never() : queue_.top().moment; }
    /// Lets all happen that happens by `moment`, which is the present from then on. Not past.
    void run_to(Time moment);
    /// Until `ended`. False: nothing can happen any more, or `events_max` events did not suffice.
    bool run_until(const bool& ended, std::uint64_t events_max);

    struct Sleep {
        Schedule& schedule;
        Duration span;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) {
            schedule.resume_at(schedule.now() + span, waiting);
        }
        void await_resume() const noexcept {}
    };
    Sleep sleep(Duration span) { return {*this, span}; }

private:
    struct Event {
        Time moment;
        std::uint64_t order;
        std::coroutine_handle<> waiting;
        bool operator>(const Event& other) const {
            return moment != other.moment ? moment > other.moment : order > other.order;
        }
    };

    Time now_{};
    std::uint64_t order_ = 0;
    std::uint64_t events_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<Event>> queue_;
    std::vector<Task<>> tasks_;
    std::size_t tasks_to_sweep_at_ = 64;
};

/// Wakes who waits for a condition; they look again whether it holds.
class Signal {
public:
    explicit Signal(Schedule& schedule) : schedule_(schedule) {}
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    void notify() {
        for (const auto waiting : waiting_) schedule_.resume_at(schedule_.now(), waiting);
        waiting_.clear();
    }

    struct Wait {
        Signal& signal;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> waiting) { signal.waiting_.push_back(waiting); }
        void await_resume() const noexcept {}
    };
    Wait wait() { return {*this}; }

private:
    Schedule& schedule_;
    std::vector<std::coroutine_handle<>> waiting_;
};

}  // namespace via::lab
