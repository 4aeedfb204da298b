// Liveness: once the workload stops, what is under way ends within a bounded time; once everything
// is disconnected, nothing is left.
#pragma once

#include <map>
#include <optional>

#include "sim/checker.hpp"

namespace via::sim {

class CheckLiveness final : public Checker {
public:
    const char* name() const override { return "liveness"; }
    void observe(const Event& event) override;
    void finish(Time now) override;

private:
    void check_sends(Time now);

    Duration bound_{};
    std::map<WorkNumber, bool> outstanding_;  ///< value: a receive, which may wait for ever
    std::optional<Time> stopped_;
    bool emptied_ = false;
};

}  // namespace via::sim
