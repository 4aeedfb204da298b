// All checkers together, behind the trace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/checker.hpp"
#include "sim/trace.hpp"

namespace via::sim {

class Checkers {
public:
    explicit Checkers(Trace& trace);

    void observe(Time now, const Happening& what);
    void finish(Time now);
    bool failed() const { return !violation_.empty(); }
    /// "<checker>: <what>", the first of all; empty if nothing was wrong.
    const std::string& violation() const { return violation_; }

private:
    void collect(Time now);

    Trace& trace_;
    std::vector<std::unique_ptr<Checker>> checkers_;
    std::string violation_;
};

}  // namespace via::sim
