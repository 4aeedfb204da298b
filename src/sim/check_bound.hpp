// Bound: no turn does more than its limits say.
#pragma once

#include "sim/checker.hpp"

namespace via::sim {

class CheckBound final : public Checker {
public:
    const char* name() const override { return "bound"; }
    void observe(const Event& event) override;
};

}  // namespace via::sim
