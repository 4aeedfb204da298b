// Where the model of our own NIC agrees with what was measured of it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "lab/machine.hpp"

namespace via::lab::study {

struct Agreement {
    std::int64_t size = 0;  ///< bytes of a message
    double measured_us = 0;
    double model_us = 0;
    double percent() const { return (model_us / measured_us - 1) * 100; }
    bool agrees() const;
};

/// What the model says of each latency that was measured: one message at a time, by polling.
std::expected<std::vector<Agreement>, std::string> agreements(
    const Machine& machine, const std::vector<std::pair<std::int64_t, double>>& measured);

/// At which sizes it agrees, and within what.
std::string sentence_of(const std::vector<Agreement>& all);

}  // namespace via::lab::study
