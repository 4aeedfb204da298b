// From the options of `via bench latency|bandwidth|rate` to questions, or why they make no sense.
#pragma once

#include <vector>

#include "bench/types.hpp"
#include "commands.hpp"

namespace via::bench {

// One for each size, without repetition, all alike in everything else but depth: very large
// messages are given fewer under way than asked, so that the buffers of all channels fit into
// memory.
Result<std::vector<Question>> questions_of(const cli::BenchOptions& options);

// Why nobody could answer that; empty when somebody might.
std::string nonsense_of(const Question& question);

}  // namespace via::bench
