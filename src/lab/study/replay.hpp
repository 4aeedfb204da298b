// A trace through a machine's design: each message goes over the models of NICs, one after the
// other, in the order in which it was posted; the NICs' caches see the addresses of the program.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "lab/study/cluster.hpp"
#include "lab/study/trace.hpp"

namespace via::lab::study {

struct ReplayQuestion {
    std::uint32_t per_host = 1;  ///< processes that share a host and its NIC
    std::uint64_t seed = 1;
    std::uint64_t events_max = 4'000'000'000;
    std::uint32_t passes = 1;  ///< over the trace: later ones are by caches that have seen it
};

struct Pass {
    Duration time{};  ///< of all its messages, one at a time
    std::uint64_t translations = 0;
    std::uint64_t misses = 0;
};

/// Sums are over all passes.
struct Replayed {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t within_hosts = 0;   ///< messages that no NIC saw
    std::uint64_t registrations = 0;  ///< in the trace; they cost nothing here
    Duration time{};                  ///< of all messages, one at a time
    std::vector<Pass> passes;
    std::string busiest;
    std::vector<AdapterCounts> hosts;
    /// Sums of all hosts.
    std::uint64_t translations() const;
    std::uint64_t misses() const;
    std::uint64_t cold_misses() const;
    std::uint64_t send_misses() const;
};

/// Of machines whose NIC does all of VIA. RDMA reads are answered by the peer's firmware.
std::expected<Replayed, std::string> replay(const Trial& trial, const Trace& trace,
                                            const ReplayQuestion& question);

}  // namespace via::lab::study
