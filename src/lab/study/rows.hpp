// A paper's figures beside ours.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/machine.hpp"
#include "lab/parts.hpp"

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

using Rows = std::expected<std::vector<Row>, std::string>;
/// One system's.
using RowsOf = Rows(const Machine& machine, const Without& without);

/// The machine's figures, from whichever paper. The error says that there are none, or why.
Rows rows_of(const Machine& machine, const Without& without = {});

RowsOf firmvia_rows, berkeley1_rows, berkeley2_rows, gnic2_rows, sk9821_rows, tulip_rows, clan_rows,
    mini_rows, sci_rows, oscarclan_rows, oscarethernet_rows, shm_rows;

/// What `via lab reproduce` calls a paper's system, once for each machine whose rows belong to it.
struct Study {
    std::string_view name;
    std::string_view machine;  ///< one of the study's
    RowsOf* rows;
};
std::span<const Study> studies();

}  // namespace via::lab::study
