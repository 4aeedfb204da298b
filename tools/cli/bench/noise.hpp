// Reads what the kernel knows about disturbances of one side of a pair.
#pragma once

#include <cstdint>

#include "bench/stats.hpp"

namespace via::bench {

// One look; two make a Disturbance. Takes about 50 us: only outside what is timed.
struct Look {
    std::int64_t wall_ns = 0;
    std::uint64_t involuntary = 0;
    std::uint64_t own_switches = 0;
    std::uint64_t run_delay_ns = 0;
    std::uint64_t thread_cpu_ns = 0;
    std::uint64_t process_cpu_ns = 0;
    std::uint64_t steal_ticks = 0;
    std::uint32_t runnable = 0;
    std::int64_t busy_ns = 0;          // of the processor, whoever ran
    std::int64_t children_cpu_ns = 0;  // of programs that this process ran to their end
};

// Of the calling thread, which must be the process's first, pinned to processor `cpu`. What a
// kernel does not tell (no schedstat, no /proc/stat) stays 0 and so never drops a sample.
Look look_around(int cpu);

Disturbance between_looks(const Look& before, const Look& after, std::uint32_t processors);

}  // namespace via::bench
