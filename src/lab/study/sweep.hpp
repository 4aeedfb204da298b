// What a trace misses in caches of handles of many shapes (paper 001, table III and figure 5). The
// caches alone: no time passes, and each look-up is one.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/study/trace.hpp"

namespace via::lab::study {

struct CacheShape {
    std::int64_t entries = 0;
    std::int64_t line = 0;
    std::int64_t ways = 0;
    std::int64_t victims = 0;  ///< lines dropped last, kept beside it; one of these is found there
};

struct Missed {
    std::uint64_t lookups = 0;
    std::uint64_t send = 0, receive = 0;            ///< misses
    std::uint64_t send_cold = 0, receive_cold = 0;  ///< of them
    double percent() const {
        return lookups == 0
                   ? 0
                   : 100 * static_cast<double>(send + receive) / static_cast<double>(lookups);
    }
};

/// Of all NICs together, each with a cache that its `per_host` processes share. Of so many passes.
Missed missed(const Trace& trace, const CacheShape& shape, std::uint32_t per_host,
              std::uint32_t passes = 1);

/// Table III, divided: its caches are for programs of up to 2 GB.
std::vector<CacheShape> table_of_shapes(std::int64_t entries_divided, std::int64_t lines_divided);

}  // namespace via::lab::study
