// A paper's figures beside ours.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lab/machine.hpp"

namespace via::lab::study {

struct Row {
    std::string figure;
    std::string paper;  ///< as printed, with its place
    std::string ours;
    std::string difference;
    std::string within;       ///< what counts as reproduced
    bool calibrated = false;  ///< one of the machine's numbers was set by it; else predicted
    bool reproduced = false;
    bool expected = true;  ///< checked in as reproduced: if it is not, something broke
    std::string note;
};

/// What is not as it was checked in: rows that were reproduced and are not any more.
inline bool holds(const std::vector<Row>& rows) {
    for (const Row& row : rows)
        if (row.expected && !row.reproduced) return false;
    return true;
}

std::expected<std::vector<Row>, std::string> firmvia_rows(const Machine& machine);

}  // namespace via::lab::study
