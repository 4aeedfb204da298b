// Several designs beside each other: which one wins where, and what turns it.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/study/measure.hpp"

namespace via::lab::study {

enum class Of : std::uint8_t { latency, bandwidth };
/// What is varied.
enum class Over : std::uint8_t { sizes, vis, queues };

struct Contender {
    std::string name;
    Trial trial;
};

struct Sample {
    double value = 0;                            ///< nanoseconds, or bytes a second
    std::array<double, share_count> parts_ns{};  ///< of a latency
    std::map<std::string, double> waits_ns;      ///< of its share waiting
    std::map<std::string, Spent> spent_ns;       ///< of a bandwidth: each message's, by resource
    std::string busiest;                         ///< resource
};

struct Crossing {
    std::int64_t at = 0;  ///< the first one at which `after` wins
    std::size_t before = 0;
    std::size_t after = 0;
    std::string cause;
};

struct Comparison {
    std::vector<std::int64_t> points;
    /// By point, then contender; nothing: it cannot be there, for instance does not fit its NIC.
    std::vector<std::vector<std::optional<Sample>>> samples;
    std::vector<std::optional<std::size_t>> winners;  ///< by point
    std::vector<std::string> reasons;                 ///< by point: against the second best
    std::vector<Crossing> crossings;
    std::vector<std::string> refusals;  ///< by contender: the first reason why it could not be
};

/// `points` ascend. Of those not varied the question and the trials tell. The error: no contender
/// can be anywhere, or a run that cannot end.
std::expected<Comparison, std::string> compare(const std::vector<Contender>& contenders, Of of,
                                               Over over, const std::vector<std::int64_t>& points,
                                               const Question& question);

}  // namespace via::lab::study
