// Which processors the two processes of a pair run on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/types.hpp"

namespace via::bench {

// Processors this process may run on, ascending.
std::vector<int> allowed_cpus();

// The two to use. `asked` is "A,B", or empty: the first two allowed ones that are not two threads
// of one core, or failing that the first two. Fails when fewer than two are allowed.
Result<std::array<int, 2>> choose_cpus(const std::string& asked);

// The one to use for a single process: `asked`, or if empty the first allowed one.
Result<int> choose_cpu(const std::string& asked);

std::uint32_t online_processors();

// "0-1,4" to {0, 1, 4}, as the kernel writes lists. Empty: it is none.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace via::bench
