// The fastest way of a message between any two hosts of a cluster, by its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace via::cli::topology {

/// From one host to a neighbour in a network of both.
struct Hop {
    std::size_t network = 0;
    std::size_t to = 0;
    friend bool operator==(const Hop&, const Hop&) = default;
};
/// Without hops: there is no way.
struct Way {
    std::vector<Hop> hops;
    double ns = 0;  ///< of all hops, and of passing the message on between them
};

/// A host's cable to a network.
struct Cable {
    std::size_t host = 0;
    std::size_t network = 0;
    friend auto operator<=>(const Cable&, const Cable&) = default;
};

/// Dijkstra's shortest paths, where only hosts that forward stand between two others. A relay has
/// the whole message before it passes it on. The cluster outlives it.
class Ways {
public:
    /// `broken`: as if that cable were not there.
    explicit Ways(const Cluster& cluster, const Cable* broken = nullptr);
    ~Ways();
    Ways(const Ways&) = delete;
    Ways& operator=(const Ways&) = delete;

    /// By the place of the host at the other end.
    std::vector<Way> from(std::size_t source, std::uint64_t bytes) const;

private:
    struct Graph;
    const Cluster& cluster_;
    std::unique_ptr<Graph> graph_;
};

/// Sizes for which ways are looked for: powers of two from 8 B to 16 MB, and what figures name.
std::vector<std::uint64_t> sizes_of(const Cluster& cluster);

/// One way for all messages of these sizes.
struct Range {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    Way way;  ///< its time is that of `from` bytes
};
/// A host's table: for each other host its ranges, by rising sizes.
using Table = std::vector<std::vector<Range>>;
Table table_of(const Ways& ways, std::size_t source, const std::vector<std::uint64_t>& sizes);

/// One line each of what is odd in a cluster.
struct Findings {
    std::vector<std::string> missing;     ///< pairs without a way, or with relays alone
    std::vector<std::string> asymmetric;  ///< the way back takes another time
    std::vector<std::string> useless;     ///< cables and networks that no way goes over
};
Findings find_oddities(const Cluster& cluster, const std::vector<Table>& tables);

/// What happens if one cable breaks.
struct Loss {
    Cable cable;
    std::size_t cut_off = 0;  ///< ordered pairs of hosts without a way then
    std::size_t slower = 0;   ///< those whose way takes longer for some size
    double worst = 1;         ///< the most that a message takes of what it took
    std::uint64_t worst_bytes = 0;
};
/// Looks at so many hosts at most: each cable is broken once.
inline constexpr std::size_t broken_hosts_max = 64;
std::vector<Loss> losses_of(const Cluster& cluster, const std::vector<std::uint64_t>& sizes);

}  // namespace via::cli::topology
