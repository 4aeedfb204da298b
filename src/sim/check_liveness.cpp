#include "sim/check_liveness.hpp"

namespace via::sim {

void CheckLiveness::observe(const Event& event) {
    if (stopped_ && !emptied_ && event.time > *stopped_ + bound_) check_sends(event.time);
    std::visit(Overloaded{
                   [this](const Posted& e) { outstanding_[e.work] = e.receive; },
                   [this](const Completed& e) { outstanding_.erase(e.work); },
                   [this, &event](const Stopped& e) {
                       stopped_ = event.time;
                       bound_ = e.bound;
                   },
                   [this, &event](const Rested&) { check_sends(event.time); },
                   [this](const Emptied&) { emptied_ = true; },
                   ignore,
               },
               event.what);
}

void CheckLiveness::check_sends(Time now) {
    for (const auto& [work, receive] : outstanding_)
        if (!receive)
            return violate("work %u is still under way %lld ns after the workload stopped", work,
                           static_cast<long long>((now - *stopped_).ns));
}

void CheckLiveness::finish(Time /*now*/) {
    if (!stopped_ || !emptied_) violate("the run did not come to its end");
    if (!outstanding_.empty())
        violate("work %u was not flushed when everything was disconnected",
                outstanding_.begin()->first);
}

}  // namespace via::sim
