// Options of `via bench` that make no sense for what is asked.
#pragma once

#include <span>
#include <string_view>

#include "bench/types.hpp"
#include "commands.hpp"

namespace via::cli {

// Does the command line give nothing but these? Else says what is not for options.bench.
bench::Status gives_only(const BenchOptions& options, std::span<const std::string_view> ours);

}  // namespace via::cli
