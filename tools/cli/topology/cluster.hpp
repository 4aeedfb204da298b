// A cluster as a file describes it: hosts, networks, and what a message takes over each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace via::cli::topology {

/// Time of a message one way, by its size: straight lines between points.
class Figures {
public:
    struct Point {
        std::uint64_t bytes = 0;
        double ns = 0;
    };
    Figures() = default;
    /// By rising sizes, one at least.
    explicit Figures(std::vector<Point> points) : points_(std::move(points)) {}

    bool empty() const { return points_.empty(); }
    const std::vector<Point>& points() const { return points_; }
    /// Below the first point as there; beyond the last one as between the last two.
    double time_ns(std::uint64_t bytes) const;

private:
    std::vector<Point> points_;
};

struct Host {
    std::string name;
    std::optional<double> forward_ns;  ///< of a message that it passes on; empty: it passes none on
};

struct Network {
    std::string name;
    std::string device;                          ///< what a program opens there: "udp:eth0"
    Figures figures;                             ///< of each pair that no link speaks of
    std::map<std::size_t, std::string> members;  ///< address of each host in it, by its place
};

/// What one way between two hosts of a network is, other than the network's.
struct Link {
    std::size_t network = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    bool down = false;
    Figures figures;  ///< empty: the network's
};

struct Cluster {
    std::vector<Host> hosts;
    std::vector<Network> networks;
    std::vector<Link> links;

    std::optional<std::size_t> host(std::string_view name) const;
    std::optional<std::size_t> network(std::string_view name) const;
};

/// Every pair has a way of its own to be looked for.
inline constexpr std::size_t hosts_max = 256;

/// `text` of `file`, or the first thing that is wrong as "file:line: what".
std::expected<Cluster, std::string> parse_cluster(std::string_view text, const std::string& file);
std::expected<Cluster, std::string> read_cluster(const std::string& file);

}  // namespace via::cli::topology
