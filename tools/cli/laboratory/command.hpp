// `via lab`: network interfaces as models. Its sub-commands have options of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace via::cli {

struct LabOptions {
    std::string machine;
    std::string what;                  ///< run: latency or bandwidth; reproduce: whose figures
    std::string design;                ///< "at=3,doorbell=d1": over what the machine's file says
    std::vector<std::string> designs;  ///< compare: "MACHINE:WORDS"; without: mechanisms
    std::string over = "sizes";        ///< compare: what is varied
    std::string trace;                 ///< record, replay: its file; measure: its machine
    bool no_segments = false;          ///< record: imports of segments fail
    std::vector<std::string> traces;   ///< reproduce: their files
    std::int64_t per_host = 1;         ///< replay, sweep, reproduce: processes
    std::uint32_t passes = 1;          ///< replay
    std::int64_t divide = 1;           ///< sweep, reproduce: of a cache's entries, and of a line's
    std::int64_t divide_lines = 1;
    std::string
        cache;  ///< measure: bytes that a processor's own caches hold; "": asked of the system
    std::string folder;  ///< for pictures; "": none
    std::vector<std::string> sizes;
    std::int64_t vis = 1;
    std::string registered = "1M";
    std::int64_t queues = 1;
    std::uint64_t seed = 1;
    int patience_s = 60;  ///< exec
    bool parts = false;
    bool json = false;
    std::vector<std::string> program;  ///< exec: programs, a colon between them; files
};

void add_lab(CLI::App& app, LabOptions& options);
/// `lab` is what add_lab() added, after parsing.
int run_lab(const CLI::App& lab, const LabOptions& options);

}  // namespace via::cli
