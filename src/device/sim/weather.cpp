#include "device/sim/weather.hpp"

#include <algorithm>

namespace via::device::sim {

Duration draw(Random& random, Duration low, Duration high) {
    return {static_cast<std::int64_t>(
        random.between(static_cast<std::uint64_t>(low.ns), static_cast<std::uint64_t>(high.ns)))};
}

FairWeather::Link& FairWeather::link_of(NodeId from, NodeId to) {
    const auto found = links_.find({from, to});
    if (found != links_.end()) return found->second;
    Random random(seed_ ^ ((std::uint64_t{from} << 32 | to) * 0x9E3779B97F4A7C15ULL));
    const Duration delay = draw(random, options_.delay_min, options_.delay_max);
    return links_.emplace(std::pair{from, to}, Link{random, delay}).first->second;
}

Fate FairWeather::fate(const Passage& passage) {
    Link& link = link_of(passage.from, passage.to);
    const Time start = std::max(passage.sent, link.free_at);
    link.free_at = start + nanoseconds(passage.length * options_.ns_per_kilobyte / 1024);
    const Duration jitter = draw(link.random, {}, options_.jitter_max);
    return {link.free_at - passage.sent + link.delay + jitter};
}

}  // namespace via::device::sim
