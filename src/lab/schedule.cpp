#include "lab/schedule.hpp"

namespace via::lab {

void Schedule::resume_at(Time moment, std::coroutine_handle<> waiting) {
    VIA_ASSERT(moment >= now_ && !moment.is_never());
    queue_.push({moment, order_++, waiting});
}

void Schedule::spawn(Task<> task) {
    if (tasks_.size() >= tasks_to_sweep_at_) {
        std::erase_if(tasks_, [](const Task<>& old) { return old.done(); });
        tasks_to_sweep_at_ = 64 + 2 * tasks_.size();
    }
    resume_at(now_, task.handle());
    tasks_.push_back(std::move(task));
}

bool Schedule::step() {
    if (queue_.empty()) return false;
    const Event event = queue_.top();
    queue_.pop();
    VIA_ASSERT(event.moment >= now_);
    now_ = event.moment;
    ++events_;
    event.waiting.resume();
    return true;
}

void Schedule::run_to(Time moment) {
    VIA_ASSERT(moment >= now_ && !moment.is_never());
    while (next() <= moment) step();
    now_ = moment;
}

bool Schedule::run_until(const bool& ended, std::uint64_t events_max) {
    for (std::uint64_t n = 0; !ended; ++n) {
        if (n == events_max || !step()) return false;
    }
    return true;
}

}  // namespace via::lab
