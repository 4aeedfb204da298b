// Figures of papers about programs and caches, beside what traces give: FirmVIA's figures 2 to 5
// (000 section 5.2), and what paper 001 says of its table III.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "lab/machine.hpp"
#include "lab/study/rows.hpp"
#include "lab/study/trace.hpp"

namespace via::lab::study {

struct NamedTrace {
    std::string name;  ///< of the program
    Trace trace;
};

struct TraceQuestion {
    std::uint32_t per_host = 1;  ///< processes that share a host and its NIC
    /// Table III's caches and lines, by so much: its programs fill 2 GB.
    std::int64_t divide = 1;
    std::int64_t divide_lines = 1;
};

/// None of these rows is checked in as reproduced: it depends on whose the traces are. `machine` is
/// the one that the study's paper has; what programs take is measured on it. The error says that
/// the study has no such figures, or none of these programs.
std::expected<std::vector<Row>, std::string> trace_rows(std::string_view study,
                                                        const std::vector<NamedTrace>& traces,
                                                        const TraceQuestion& question,
                                                        const Machine& machine);

}  // namespace via::lab::study
