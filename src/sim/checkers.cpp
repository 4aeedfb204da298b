#include "sim/checkers.hpp"

#include "sim/check_atomics.hpp"
#include "sim/check_bound.hpp"
#include "sim/check_bytes.hpp"
#include "sim/check_completion.hpp"
#include "sim/check_exactly_once.hpp"
#include "sim/check_liveness.hpp"
#include "sim/check_order.hpp"
#include "sim/check_protection.hpp"
#include "sim/check_state.hpp"

namespace via::sim {

Checkers::Checkers(Trace& trace) : trace_(trace) {
    checkers_.push_back(std::make_unique<CheckBytes>());
    checkers_.push_back(std::make_unique<CheckExactlyOnce>());
    checkers_.push_back(std::make_unique<CheckOrder>());
    checkers_.push_back(std::make_unique<CheckCompletion>());
    checkers_.push_back(std::make_unique<CheckProtection>());
    checkers_.push_back(std::make_unique<CheckState>());
    checkers_.push_back(std::make_unique<CheckLiveness>());
    checkers_.push_back(std::make_unique<CheckBound>());
    checkers_.push_back(std::make_unique<CheckAtomics>());
}

void Checkers::observe(Time now, const Happening& what) {
    trace_.add(now, to_text(what));
    const Event event{now, what};
    for (auto& checker : checkers_) checker->observe(event);
    collect(now);
}

void Checkers::finish(Time now) {
    for (auto& checker : checkers_) checker->finish(now);
    collect(now);
}

void Checkers::collect(Time now) {
    if (failed()) return;
    for (const auto& checker : checkers_) {
        if (checker->violation().empty()) continue;
        violation_ = std::string(checker->name()) + ": " + checker->violation();
        trace_.line(now, "violation of %s", violation_.c_str());
        return;
    }
}

}  // namespace via::sim
