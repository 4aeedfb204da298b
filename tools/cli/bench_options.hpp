// The command line of `via bench`: a sub-command for each kind, with the options of that kind.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace via::cli {

void add_bench(CLI::App& app, BenchOptions& options);

/// Runs the kind that the command line names.
int run_bench(const CLI::App& bench, BenchOptions& options);

}  // namespace via::cli
