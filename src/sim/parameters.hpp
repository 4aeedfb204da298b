// Everything that one seed decides before a world begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "device/sim/fabric.hpp"
#include "device/sim/weather.hpp"
#include "nic/nic.hpp"

namespace via::sim {

/// VIs of one profile can be connected with each other.
struct Profile {
    engine::Reliability reliability;
    std::uint32_t transfer_length_max;
};

/// How often the workload does what, as parts of their sum.
struct Weights {
    std::uint32_t make_vi;
    std::uint32_t destroy_vi;
    std::uint32_t listen;
    std::uint32_t answer;
    std::uint32_t connect;
    std::uint32_t disconnect;
    std::uint32_t post_receive;
    std::uint32_t post_send;
    std::uint32_t take;
    std::uint32_t memory;
    std::uint32_t queues;
    std::uint32_t close;
};

struct Parameters {
    std::uint64_t seed = 0;
    std::uint32_t nics = 2;
    std::uint32_t steps = 0;    ///< of the workload, of all NICs together
    std::uint32_t vis_max = 0;  ///< per NIC
    std::uint64_t arena_length = 0;
    std::uint32_t refuse_percent = 0;  ///< pressure: reserve() refused
    std::uint32_t short_percent = 0;   ///< pressure: receive() cut short
    std::uint32_t fault_percent = 0;   ///< of posts that are wrong on purpose
    std::uint32_t segments_max = 1;
    std::uint32_t queue_entries_max = 1;
    Duration step_max{};        ///< between two steps of a NIC
    Duration turn_delay_max{};  ///< from an arrival to the turn that takes it
    std::vector<Profile> profiles;
    Weights weights{};
    NicLimits limits;
    memory::CacheShape table;  ///< of the NICs' own tables
    device::sim::FabricOptions fabric;
    device::sim::FairWeatherOptions weather;
};

/// The same seed, the same parameters.
Parameters draw_parameters(std::uint64_t seed);
/// In one line, for people.
std::string to_text(const Parameters& parameters);

}  // namespace via::sim
