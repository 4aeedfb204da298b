// Series of message sizes: NetPIPE's, and the size that reaches half of the largest bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.hpp"

namespace via::bench {

// NetPIPE's perturbed sizes up to `most` bytes: powers of two and three times powers of two, each
// with three bytes less, as it is, and with three more; ascending, from 1.
std::vector<std::uint64_t> netpipe_sizes(std::uint64_t most);

// One item of --size: bytes ("64K"), or "netpipe" or "netpipe:MAX". NULL: neither, or more than
// `most` bytes. Without a MAX NetPIPE's sizes go to 4 MB, or to `most` if that is less.
std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text, std::uint64_t most);

// A channel's bandwidth over a sweep of sizes, of one mode. Of latencies NetPIPE's: size by time.
struct HalfPoint {
    std::string device;
    Bench bench = Bench::latency;
    Mode mode = Mode::near;
    double size = 0;       // bytes at which half of the largest bandwidth is reached
    double most_mb_s = 0;  // the largest bandwidth measured,
    std::uint64_t at = 0;  // at this size
};

// Of every channel and mode with a sweep of at least `least_sweep` sizes that reaches from under
// half of the largest bandwidth to more; between two sizes as on a straight line.
inline constexpr std::size_t least_sweep = 4;
std::vector<HalfPoint> half_points(const std::vector<Row>& rows);

std::string half_text(const std::vector<HalfPoint>& points);
std::string half_json(const std::vector<HalfPoint>& points);

}  // namespace via::bench
