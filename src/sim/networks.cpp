#include "sim/networks.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/random.hpp"
#include "sim/model.hpp"

namespace via::sim {

Networks::Networks(const DatagramWorld& world, std::uint64_t seed) : world_(world) {
    storms_.emplace_back(seed, world.weather);
    for (const OtherNetwork& other : world.rails.others)
        storms_.emplace_back(Random(seed + storms_.size()).next(), other.weather);
}

/// The weather so knows interfaces by their numbers (number_of_interface()).
void Networks::settle(device::sim::DatagramNetwork& network) const {
    if (!are_several()) return;
    for (std::uint32_t host = 0; host < world_.hosts; ++host)
        for (std::uint32_t interface = 0; interface < networks_max; ++interface)
            VIA_ASSERT(network.host_of(address_of_host(host, interface)) ==
                       number_of_interface(host, interface));
    network.set_reach(
        [this](const HostAddress& from, const HostAddress& to) { return reaches(from, to); });
}

std::uint32_t Networks::interfaces_of(std::uint32_t host) const {
    return are_several() ? static_cast<std::uint32_t>(world_.rails.interfaces[host].size()) : 1;
}

std::optional<std::uint32_t> Networks::network_of(std::uint32_t host,
                                                  std::uint32_t interface) const {
    if (host >= world_.hosts || interface >= interfaces_of(host)) return {};
    return are_several() ? world_.rails.interfaces[host][interface] : 0;
}

std::optional<std::uint32_t> Networks::network_of(const HostAddress& address) const {
    for (std::uint32_t host = 0; host < world_.hosts; ++host)
        for (std::uint32_t interface = 0; interface < interfaces_of(host); ++interface)
            if (same_host(address, address_of_host(host, interface)))
                return network_of(host, interface);
    return {};
}

/// What strangers send, or get, has the weather of the other one's network.
std::uint32_t Networks::network_of(const device::sim::Passage& passage) const {
    if (!are_several()) return 0;
    for (const device::sim::NodeId node : {passage.from, passage.to})
        if (const auto network = network_of(node / networks_max, node % networks_max))
            return *network;
    return 0;
}

/// Within a host no cable is needed.
device::sim::Fate Networks::fate(const device::sim::Passage& passage) {
    if (are_several() && passage.from == passage.to) return {.delay = microseconds(1)};
    return storms_[network_of(passage)].fate(passage);
}

void Networks::heal(Time now) {
    for (device::sim::StormyWeather& storm : storms_) storm.heal(now);
}

/// Strangers are in all networks, and nobody's addresses in none.
bool Networks::reaches(const HostAddress& from, const HostAddress& to) const {
    const auto here = network_of(from);
    const auto there = network_of(to);
    return world_.rails.routed || !here || !there || *here == *there;
}

bool Networks::is_near(const HostAddress& interface, const HostAddress& other) const {
    const auto there = network_of(other);
    return there && *there == *network_of(interface);
}

std::uint32_t Networks::datagram_max(std::uint32_t host, std::uint32_t interface) const {
    const std::uint32_t network = *network_of(host, interface);
    return network == 0 ? world_.port.datagram_max : world_.rails.others[network - 1].datagram_max;
}

std::uint32_t Networks::datagram_max() const {
    std::uint32_t longest = world_.port.datagram_max;
    for (const OtherNetwork& other : world_.rails.others)
        longest = std::max(longest, other.datagram_max);
    return longest;
}

Duration Networks::one_way_max() const {
    Duration longest{};
    for (std::uint32_t network = 0; network < storms_.size(); ++network) {
        const device::sim::LinkOptions& link = weather_of(network).link;
        const std::int64_t waiting = link.ns_per_kilobyte * (link.queue_bytes / 1024 + 2);
        longest = std::max(longest, link.delay_max + link.jitter_max + world_.port.refuse_max +
                                        nanoseconds(link.ns_per_kilobyte == 0 ? 0 : waiting));
    }
    return longest;
}

}  // namespace via::sim
