// What registering memory costs, beside bare mlock and munlock, null system calls, and a cache.
#pragma once

#include <string>
#include <vector>

#include "bench/types.hpp"

namespace via::bench {

// Medians over the rounds, in nanoseconds of one call. `fresh` pages were never touched before,
// `present` ones are in memory already; `locked` ones are covered by another registration.
struct RegisterRow {
    std::uint64_t size = 0;
    double fresh_register_ns = 0, fresh_deregister_ns = 0;
    double fresh_mlock_ns = 0, fresh_munlock_ns = 0;
    double present_register_ns = 0, present_deregister_ns = 0;
    double present_mlock_ns = 0, present_munlock_ns = 0;
    double locked_ns = 0;     // register and deregister
    double null_call_ns = 0;  // a system call that does nothing
    double cached_ns = 0;     // a lease of via::RegistrationCache, and its end
    double fresh_cpu_ns = 0;  // processor time of registering and deregistering fresh pages
    bool locks = false;       // registering did lock the pages; else the ratios mean little

    std::uint64_t pages() const { return (size + 4095) / 4096; }
    double fresh_ratio() const {
        return (fresh_register_ns + fresh_deregister_ns) / (fresh_mlock_ns + fresh_munlock_ns);
    }
    double present_ratio() const {
        return (present_register_ns + present_deregister_ns) /
               (present_mlock_ns + present_munlock_ns);
    }
    double locked_calls() const { return locked_ns / null_call_ns; }
};

// All are asked in turn in each round, on processor `cpu`, in this process.
Result<std::vector<RegisterRow>> measure_registration(const std::string& device,
                                                      const std::vector<std::uint64_t>& sizes,
                                                      std::uint32_t rounds, int cpu);

}  // namespace via::bench
