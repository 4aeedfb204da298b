// The networks that hosts of a world have interfaces in: which is in which, the weather of each,
// and who reaches whom.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/datagram/port_decorator.hpp"
#include "device/sim/datagram_network.hpp"
#include "device/sim/stormy_weather.hpp"
#include "sim/parameters.hpp"

namespace via::sim {

class Networks final : public device::sim::Weather {
public:
    /// `world` outlives it.
    Networks(const DatagramWorld& world, std::uint64_t seed);

    /// Before anything else is known to `network`, which has this weather.
    void settle(device::sim::DatagramNetwork& network) const;
    device::sim::Fate fate(const device::sim::Passage& passage) override;
    void heal(Time now);

    bool are_several() const { return !world_.rails.interfaces.empty(); }
    std::uint32_t interfaces_of(std::uint32_t host) const;
    /// The longest datagram of that interface.
    std::uint32_t datagram_max(std::uint32_t host, std::uint32_t interface) const;
    std::uint32_t datagram_max() const;  ///< of all
    /// Is the other one in the network of that interface?
    bool is_near(const HostAddress& interface, const HostAddress& other) const;
    /// The longest that a datagram may be under way in good weather, from one interface to another.
    Duration one_way_max() const;

private:
    const device::sim::StormyOptions& weather_of(std::uint32_t network) const {
        return network == 0 ? world_.weather : world_.rails.others[network - 1].weather;
    }
    std::optional<std::uint32_t> network_of(std::uint32_t host, std::uint32_t interface) const;
    std::optional<std::uint32_t> network_of(const HostAddress& address) const;
    std::uint32_t network_of(const device::sim::Passage& passage) const;
    bool reaches(const HostAddress& from, const HostAddress& to) const;

    const DatagramWorld& world_;
    std::vector<device::sim::StormyWeather> storms_;  ///< by network
};

/// The port of an interface that is one of several.
class InterfacePort final : public device::datagram::PortDecorator {
public:
    /// `networks` outlives it.
    InterfacePort(std::unique_ptr<device::datagram::Port> inner, const Networks& networks)
        : PortDecorator(std::move(inner)), networks_(networks) {}

    bool is_near(const HostAddress& host) const override {
        return networks_.is_near(data_address(), host);
    }

private:
    const Networks& networks_;
};

}  // namespace via::sim
