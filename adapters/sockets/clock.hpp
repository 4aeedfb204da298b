// Time, as waiting calls need it.
#pragma once

#include <cstdint>

namespace via::sockets {

/// Since some moment; CLOCK_MONOTONIC.
std::uint64_t now_ns();
/// About half a nanosecond each, and cheaper.
std::uint64_t ticks();
/// Another processor may do meanwhile what we spin for.
bool may_spin();

}  // namespace via::sockets
