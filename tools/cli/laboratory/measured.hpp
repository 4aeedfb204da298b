// A machine of the laboratory that is this one: our software NIC, with costs that `via bench`
// found.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "report/results.hpp"

namespace via::cli {

/// Microseconds.
struct MeasuredNic {
    double post_send = 0;
    double post_receive = 0;
    double receive_done = 0;
    double empty_poll = 0;
    double system_call = 0;
    double notify = 0;    ///< until a handler runs
    double line = 0;      ///< from one processor's cache to the other's
    double two_copy = 0;  ///< of `two_copy_bytes`, in and out of shared memory
    double far_copy = 0;  ///< the same of `far_copy_bytes`
    std::string mode;     ///< where both processors were, as via bench calls it
    std::vector<std::pair<std::int64_t, double>> latencies;  ///< ours, by the bytes of a message
};
constexpr std::uint64_t two_copy_bytes = 65'536;   ///< that caches hold
constexpr std::uint64_t far_copy_bytes = 1 << 20;  ///< that they do not

/// What one processor's own caches hold, and who says so.
struct MeasuredCache {
    std::int64_t bytes = 0;
    std::string source;
};
/// Of the system, whose folder of a processor's caches is given. The error says what is not there.
std::expected<MeasuredCache, std::string> cache_of_system(
    const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

/// Of results of `via bench operations` and of `via bench latency --against line,two-copy`, on shm.
/// The error says what is not among them, and which command measures it.
std::expected<MeasuredNic, std::string> measured_nic(const std::vector<report::Run>& runs);

/// The text of its file. `processor`: what it was measured on.
std::string machine_text(const MeasuredNic& nic, const MeasuredCache& cache,
                         const std::string& processor);

}  // namespace via::cli
