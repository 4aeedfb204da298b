// `via lab`: network interfaces as models. Its sub-commands have options of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace via::cli {

struct LabOptions {
    std::string machine;
    std::string what;    ///< run: latency or bandwidth; reproduce: whose figures
    std::string design;  ///< "at=3,doorbell=d1": over what the machine's file says
    std::vector<std::string> sizes;
    std::int64_t vis = 1;
    std::string registered = "1M";
    std::int64_t queues = 1;
    std::uint64_t seed = 1;
    bool parts = false;
    bool json = false;
};

void add_lab(CLI::App& app, LabOptions& options);
/// `lab` is what add_lab() added, after parsing.
int run_lab(const CLI::App& lab, const LabOptions& options);

}  // namespace via::cli
