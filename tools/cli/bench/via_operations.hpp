// Times every basic operation, one call at a time, through vipl.h.
#pragma once

#include <array>

#include "bench/operations.hpp"
#include "bench/places.hpp"

namespace via::bench {

struct OperationsPlan {
    std::string device = "shm";
    Places places;
    std::vector<std::uint64_t> sizes;  // of memory to register, not empty
    std::uint32_t rounds = 10;
    std::array<int, 2> cpus{0, 1};
    bool keep_disturbed = false;
    int max_seconds = 300;
};

// Two processes, pinned; the first one is timed, the second one is its peer. Forks (the caller must
// have one thread only). Rounds that others disturbed are dropped and repeated, up to
// tries_per_round times; result.rounds may be less than asked.
Result<OperationResult> measure_operations(const OperationsPlan& plan);

}  // namespace via::bench
