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
    /// Lets `task` run from now on; it is kept until the schedule is destroyed.
    void spawn(Task<> task);

    /// Lets the next event happen; false: there is none.
    bool step();
    /// Until `task` (one that was spawned, by its number) has ended. False: nothing can happen any
    /// more, or more than `events_max` events did not suffice.
    bool run_until_ended(std::size_t task, std::uint64_t events_max);
    std::size_t spawned() const { return tasks_.size(); }

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
};

/// Wakes who waits for a condition; they look again whether it holds.
class Signal {
public:
    explicit Signal(Schedule& schedule) : schedule_(schedule) {}
    void notify() {
        for (const auto waiting : waiting_) schedule_.resume_at(schedule_.now(), waiting);
        waiting_.clear();
    }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) { waiting_.push_back(waiting); }
    void await_resume() const noexcept {}

private:
    Schedule& schedule_;
    std::vector<std::coroutine_handle<>> waiting_;
};

}  // namespace via::lab
