// Completion: every posted descriptor completes exactly once, in the order of posting, with bits
// that can be true, and is given back in that order (VIPL 4.11 to 4.15). At Reliable Reception
// success means that the message was placed (VIPL 4.25).
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/checker.hpp"

namespace via::sim {

class CheckCompletion final : public Checker {
public:
    const char* name() const override { return "completion"; }
    void observe(const Event& event) override;
    void finish(Time now) override;

private:
    struct Queue {
        std::deque<WorkNumber> posted;     ///< not completed
        std::deque<WorkNumber> completed;  ///< not taken
    };
    void on_posted(const Posted& posted);
    void on_completed(const Completed& completed);
    void on_taken(const Taken& taken);
    void check_bits(const Posted& posted, const Completed& completed);
    Queue& queue_of(const Posted& posted) { return queues_[{posted.vi, posted.receive}]; }

    std::map<std::pair<ViNumber, bool>, Queue> queues_;
    std::unordered_map<WorkNumber, Posted> works_;
};

}  // namespace via::sim
