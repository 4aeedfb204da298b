// Whether a process of a world of datagrams has reason to give up another one, by what the network
// noted of the ways between them: one from each interface of the one to each of the other.
#pragma once

#include <optional>

#include "device/sim/datagram_network.hpp"
#include "sim/model.hpp"
#include "sim/parameters.hpp"
#include "sim/relays.hpp"

namespace via::sim {

class GivingUp {
public:
    /// All outlive it.
    GivingUp(const DatagramWorld& world, const device::sim::DatagramNetwork& network,
             const std::optional<Relays>& relays)
        : world_(world), network_(network), relays_(relays) {}

    /// Now; a datagram is under way for `one_way` at most.
    bool is_allowed(const Node& here, const Node& there, Duration one_way) const;
    /// Or at some time since then?
    bool was_allowed(const Node& here, const Node& there, Time since, Duration one_way) const;

private:
    struct Way {
        device::sim::SocketId here;
        device::sim::SocketId there;
    };
    template <class Call>
    static bool any_way(const Node& here, const Node& there, Call call);
    Time now() const { return network_.clock().now(); }
    bool was_asked(const Node& here, const Way& way, Duration one_way) const;
    bool is_silent(const Node& here, const Node& there, Duration one_way) const;
    bool is_silent(const Node& here, const Way& way, Duration one_way) const;
    bool is_deaf(const Way& way) const;
    bool may_have_two_paths(const Node& here, const Node& there) const;
    bool have_met_twice(const Node& here, const Node& there) const;

    const DatagramWorld& world_;
    const device::sim::DatagramNetwork& network_;
    const std::optional<Relays>& relays_;
};

}  // namespace via::sim
