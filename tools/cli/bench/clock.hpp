// Clocks of the benchmark: CLOCK_MONOTONIC for what is timed as a whole, the processor's counter
// for single messages (a fifth of an 8-byte latency would go into reading the first each turn).
#pragma once

#include <sys/time.h>

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace via::bench {

inline std::int64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

// Processor time of this process so far.
inline std::int64_t cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

inline std::int64_t nanoseconds(const timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1000;
}

// A fast counter of unknown unit; compare two differences to learn it.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<std::uint64_t>(now_ns());
#endif
}

// Tells the processor that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace via::bench
