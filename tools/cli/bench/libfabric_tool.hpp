// libfabric's own ping-pong, run as a program of others and believed only as far as it makes sense.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/types.hpp"

namespace via::bench {

// Microseconds of one way, from what fi_pingpong prints at its client: its "usec/xfer" is the time
// of all round trips by twice their number. Fails, with what was printed, unless there is exactly
// such a table, of messages of `size` bytes, whose columns agree with each other.
Result<double> one_way_us_of(std::string_view printed, std::uint64_t size);

// The program in PATH; fails with the package to install.
Result<std::string> find_pingpong();

}  // namespace via::bench
