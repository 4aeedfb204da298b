// What misses of dynamic handle look-up cost: messages of which a share finds its receive buffer's
// page in no cache of the receiving NIC (paper 001, figure 4).
#pragma once

#include <expected>
#include <string>

#include "lab/study/measure.hpp"

namespace via::lab::study {

struct MissQuestion {
    std::int64_t size = 4;
    std::int64_t percent = 0;  ///< of messages that miss, on the second host alone
    std::uint32_t rounds = 64;
    std::uint32_t window = 16;
    bool stream = false;  ///< its rate, too
    std::uint64_t seed = 1;
    std::uint64_t events_max = 100'000'000;
};

struct MissAnswer {
    double latency_us = 0;  ///< half of a round trip
    double rate_mb = 0;     ///< of a stream
    AdapterCounts counts;   ///< of the second host, in round trips
};

/// Of a machine whose design has at=dynamic. All pages have been used before, and are pinned.
std::expected<MissAnswer, std::string> misses(const Trial& trial, const MissQuestion& question);

}  // namespace via::lab::study
