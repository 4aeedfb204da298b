// What a program says of memory ahead of its use. It never faults, wherever that points.
#pragma once

#include <cstddef>

namespace via {

/// Has a line brought for a store that follows. By its instruction, since compilers make a load's
/// prefetch of __builtin_prefetch(at, 1) unless told of the processor, and that leaves the line
/// with its reader. Processors without it take it for nothing.
inline void bring_to_write(const void* at) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1, 3);
#endif
}

/// The same for all lines of so many bytes, but a last one that begins behind them.
inline void bring_to_write(const std::byte* at, std::size_t length) {
    constexpr std::size_t line = 64;
    for (std::size_t n = 0; n < length; n += line) bring_to_write(at + n);
}

}  // namespace via
