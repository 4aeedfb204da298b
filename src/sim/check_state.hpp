// State: VIs change their states only as VIPL 3 says, nothing stays posted on one that broke,
// descriptors posted where nothing can be sent are flushed at once, CONN_LOST is told when it is
// true, and calls answer what they must.
#pragma once

#include <map>
#include <set>

#include "sim/checker.hpp"

namespace via::sim {

class CheckState final : public Checker {
public:
    const char* name() const override { return "state"; }
    void observe(const Event& event) override;

private:
    struct Vi {
        ViState state = ViState::idle;
        std::set<WorkNumber> outstanding;
        bool lost_told = false;  ///< since it was connected last
    };
    void on_changed(const StateChanged& changed);
    void on_lost(const Lost& lost);
    void on_posted(const Event& event, const Posted& posted);
    void on_completed(const Completed& completed);

    std::map<ViNumber, Vi> vis_;
    std::map<WorkNumber, ViNumber> works_;  ///< outstanding
    std::map<WorkNumber, Time> to_be_flushed_;
};

}  // namespace via::sim
