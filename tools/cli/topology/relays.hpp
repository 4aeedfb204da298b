// What hosts and relays of a cluster need to know to pass datagrams on: files for the NIC option
// `ways` and for `viad --relay` (docs/design/relay.md).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/ways.hpp"

namespace via::cli::topology {

/// Fastest ways to each address, hop by hop, for short messages: a relay does not know how long the
/// message is that a datagram is of.
class Relays {
public:
    /// The cluster outlives it.
    explicit Relays(const Cluster& cluster);

    /// The file of that host: a line for each of its addresses, each address of others, and each of
    /// the best next hosts; and who of its neighbours is a relay.
    std::string ways_text(std::size_t host) const;

    /// One next host from an address of ours.
    struct Step {
        std::size_t network = 0;
        std::size_t next = 0;
        double ns = 0;
    };
    /// From `host` over `network` to the address of `to` in network `last`, the fastest first, at
    /// most `steps_max`. None of them comes back to `host`.
    std::vector<Step> steps(std::size_t host, std::size_t network, std::size_t to,
                            std::size_t last) const;
    static constexpr std::size_t steps_max = 3;
    static constexpr std::uint64_t bytes = 1024;

private:
    static constexpr double never = std::numeric_limits<double>::infinity();
    /// To one address, from each host.
    struct Target {
        std::vector<double> ns;
        std::vector<std::size_t> next;  ///< host; of those with a way
    };
    Target find(std::size_t to, std::size_t last) const;
    double time(std::size_t network, std::size_t from, std::size_t to) const;
    double passed_on(const Target& target, const Cable& end, std::size_t network,
                     std::size_t at) const;
    bool carries(std::size_t network) const;

    const Cluster& cluster_;
    std::vector<std::map<std::pair<std::size_t, std::size_t>, double>> times_;  ///< of networks
    std::map<Cable, Target> targets_;  ///< by host and network of an address
};

/// Hosts that stand between others on a way of some size, and on how many of all ordered pairs'.
std::map<std::size_t, std::size_t> relays_needed(const std::vector<Table>& tables);

}  // namespace via::cli::topology
