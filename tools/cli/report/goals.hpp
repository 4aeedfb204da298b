// What we want to reach, and how far a folder of results says we are. goals.json has the goals; all
// figures come from the files of `via bench suite`, and each ratio is of one run and one mode.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/results.hpp"

namespace via::report {

// goals.json, compiled in.
extern const std::string_view goals_text;

// One goal in one mode.
struct GoalRow {
    std::string what;
    std::string mode;
    std::string ours;                      // median and unit, or empty
    std::string other;                     // channel and its median, or empty
    std::optional<double> measured;        // none: the mode never came for both
    std::string goal;                      // "at most 1.70", or empty
    std::string reached = "inconclusive";  // or "yes", "no", "(no goal)"
};

// For every goal a row near and one far; one between where that is all there is.
std::vector<GoalRow> goals_of(const std::vector<Run>& runs);

std::vector<std::string> goal_head();
std::vector<std::string> cells_of(const GoalRow& row);
std::string text_of(const std::vector<GoalRow>& rows);

}  // namespace via::report
