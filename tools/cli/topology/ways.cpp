#include "topology/ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <limits>
#include <set>

#include "bench/types.hpp"

namespace via::cli::topology {

namespace {

/// Of two ways that take the same time the one with fewer hops is taken.
constexpr double hop_ns = 1e-3;
/// Times of both ways that differ by less are alike.
constexpr double alike = 1.1;

struct Edge {
    std::size_t network = 0;
    const Figures* figures = nullptr;
};
using Directed = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Edge>;

/// A vector's places as a property of vertices.
template <class Value>
auto by_place(Value* first) {
    return boost::make_iterator_property_map(first, boost::identity_property_map());
}

const Link* link_of(const Cluster& cluster, std::size_t network, std::size_t from, std::size_t to) {
    const auto found = std::ranges::find_if(cluster.links, [&](const Link& link) {
        return link.network == network && link.from == from && link.to == to;
    });
    return found == cluster.links.end() ? nullptr : &*found;
}

}  // namespace

struct Ways::Graph {
    Directed graph;
};

Ways::Ways(const Cluster& cluster, const Cable* broken)
    : cluster_(cluster), graph_(std::make_unique<Graph>()) {
    std::vector<std::pair<std::size_t, std::size_t>> ends;
    std::vector<Edge> edges;
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        const auto is_broken = [&](std::size_t host) {
            return broken != nullptr && *broken == Cable{host, n};
        };
        for (const auto& [from, from_address] : network.members) {
            for (const auto& [to, to_address] : network.members) {
                if (from == to || is_broken(from) || is_broken(to)) continue;
                const Link* const link = link_of(cluster, n, from, to);
                if (link != nullptr && link->down) continue;
                ends.emplace_back(from, to);
                edges.push_back({n, link != nullptr ? &link->figures : &network.figures});
            }
        }
    }
    graph_->graph = Directed(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(),
                             edges.begin(), cluster.hosts.size());
}

Ways::~Ways() = default;

std::vector<Way> Ways::from(std::size_t source, std::uint64_t bytes) const {
    const Directed& graph = graph_->graph;
    const std::size_t hosts = cluster_.hosts.size();
    using EdgeName = boost::graph_traits<Directed>::edge_descriptor;
    constexpr double never = std::numeric_limits<double>::infinity();
    const auto weight = [&](const EdgeName& edge) {
        const std::size_t at = boost::source(edge, graph);
        const double passed_on = at == source ? 0 : cluster_.hosts[at].forward_ns.value_or(never);
        return graph[edge].figures->time_ns(bytes) + passed_on + hop_ns;
    };
    std::vector<double> times(hosts, never);
    std::vector<std::size_t> before(hosts);
    boost::dijkstra_shortest_paths(
        graph, source,
        boost::predecessor_map(by_place(before.data()))
            .distance_map(by_place(times.data()))
            .weight_map(boost::make_function_property_map<EdgeName, double>(weight))
            .distance_inf(never));
    std::vector<Way> ways(hosts);
    for (std::size_t to = 0; to < hosts; ++to) {
        if (to == source || times[to] == never) continue;
        ways[to].ns = times[to];
        for (std::size_t at = to; at != source; at = before[at]) {
            Hop hop{0, at};
            double best = never;
            for (auto [edge, end] = boost::out_edges(before[at], graph); edge != end; ++edge) {
                if (boost::target(*edge, graph) != at || weight(*edge) >= best) continue;
                best = weight(*edge);
                hop.network = graph[*edge].network;
            }
            ways[to].hops.insert(ways[to].hops.begin(), hop);
        }
    }
    return ways;
}

std::vector<std::uint64_t> sizes_of(const Cluster& cluster) {
    constexpr std::uint64_t least = 8;
    constexpr std::uint64_t most = 16ULL << 20;
    std::set<std::uint64_t> sizes;
    for (std::uint64_t bytes = least; bytes <= most; bytes *= 2) sizes.insert(bytes);
    const auto add = [&](const Figures& figures) {
        for (const Figures::Point& point : figures.points())
            if (point.bytes >= least && point.bytes <= most) sizes.insert(point.bytes);
    };
    for (const Network& network : cluster.networks) add(network.figures);
    for (const Link& link : cluster.links) add(link.figures);
    return {sizes.begin(), sizes.end()};
}

Table table_of(const Ways& ways, std::size_t source, const std::vector<std::uint64_t>& sizes) {
    Table table;
    for (const std::uint64_t bytes : sizes) {
        std::vector<Way> all = ways.from(source, bytes);
        table.resize(all.size());
        for (std::size_t to = 0; to < all.size(); ++to) {
            std::vector<Range>& ranges = table[to];
            if (all[to].hops.empty()) continue;
            if (!ranges.empty() && ranges.back().way.hops == all[to].hops)
                ranges.back().to = bytes;
            else
                ranges.push_back({bytes, bytes, std::move(all[to])});
        }
    }
    return table;
}

namespace {

void find_missing(const Cluster& cluster, const std::vector<Table>& tables, Findings& findings) {
    for (std::size_t from = 0; from < tables.size(); ++from) {
        for (std::size_t to = 0; to < tables.size(); ++to) {
            if (from == to) continue;
            const std::string pair =
                fmt::format("{} to {}", cluster.hosts[from].name, cluster.hosts[to].name);
            const std::vector<Range>& ranges = tables[from][to];
            const bool near = std::ranges::any_of(cluster.networks, [&](const Network& network) {
                const auto n = static_cast<std::size_t>(&network - cluster.networks.data());
                const Link* const link = link_of(cluster, n, from, to);
                return network.members.contains(from) && network.members.contains(to) &&
                       (link == nullptr || !link->down);
            });
            if (ranges.empty())
                findings.missing.push_back(pair + ": no way");
            else if (!near)
                findings.missing.push_back(
                    fmt::format("{}: no network of both; over {}", pair,
                                cluster.hosts[ranges.front().way.hops.front().to].name));
        }
    }
}

void find_asymmetric(const Cluster& cluster, Findings& findings) {
    const std::vector<std::uint64_t> sizes = sizes_of(cluster);
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        for (const Link& link : cluster.links) {
            if (link.network != n) continue;
            const Link* const back = link_of(cluster, n, link.to, link.from);
            if (back != nullptr && link.from > link.to) continue;  // told once
            const std::string where =
                fmt::format("{}: {} to {}", network.name, cluster.hosts[link.from].name,
                            cluster.hosts[link.to].name);
            const bool back_is_down = back != nullptr && back->down;
            if (link.down != back_is_down) {
                findings.asymmetric.push_back(fmt::format("{} is {}, the way back is not", where,
                                                          link.down ? "down" : "there"));
                continue;
            }
            if (link.down) continue;
            const Figures& returning = back != nullptr ? back->figures : network.figures;
            for (const std::uint64_t bytes : sizes) {
                const double there = link.figures.time_ns(bytes);
                const double home = returning.time_ns(bytes);
                if (std::max(there, home) <= alike * std::min(there, home)) continue;
                findings.asymmetric.push_back(fmt::format("{} takes {:.3g} us, back {:.3g} us ({})",
                                                          where, there / 1e3, home / 1e3,
                                                          bench::size_text(bytes)));
                break;
            }
        }
    }
}

void find_useless(const Cluster& cluster, const std::vector<Table>& tables, Findings& findings) {
    std::set<Cable> used;
    for (std::size_t from = 0; from < tables.size(); ++from) {
        for (const std::vector<Range>& ranges : tables[from]) {
            for (const Range& range : ranges) {
                std::size_t at = from;
                for (const Hop& hop : range.way.hops) {
                    used.insert({at, hop.network});
                    used.insert({hop.to, hop.network});
                    at = hop.to;
                }
            }
        }
    }
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        const auto is_used = [&](const auto& member) {
            return used.contains(Cable{member.first, n});
        };
        if (std::ranges::none_of(network.members, is_used)) {
            findings.useless.push_back(
                fmt::format("network {}: no message of any size is fastest over it", network.name));
            continue;
        }
        for (const auto& member : network.members)
            if (!is_used(member))
                findings.useless.push_back(fmt::format(
                    "{}'s cable to {}", cluster.hosts[member.first].name, network.name));
    }
}

}  // namespace

Findings find_oddities(const Cluster& cluster, const std::vector<Table>& tables) {
    Findings findings;
    find_missing(cluster, tables, findings);
    find_asymmetric(cluster, findings);
    find_useless(cluster, tables, findings);
    return findings;
}

std::vector<Loss> losses_of(const Cluster& cluster, const std::vector<std::uint64_t>& sizes) {
    const std::size_t hosts = cluster.hosts.size();
    // By size, and then by the host that they begin at.
    const auto all_ways = [&](const Ways& ways) {
        std::vector<std::vector<Way>> all;
        all.reserve(sizes.size() * hosts);
        for (const std::uint64_t bytes : sizes)
            for (std::size_t from = 0; from < hosts; ++from) all.push_back(ways.from(from, bytes));
        return all;
    };
    const std::vector<std::vector<Way>> before = all_ways(Ways(cluster));
    std::vector<Loss> losses;
    for (std::size_t n = 0; n < cluster.networks.size(); ++n)
        for (const auto& member : cluster.networks[n].members)
            losses.push_back({.cable = {member.first, n}});
    for (Loss& loss : losses) {
        const std::vector<std::vector<Way>> after = all_ways(Ways(cluster, &loss.cable));
        std::set<std::pair<std::size_t, std::size_t>> cut_off;
        std::set<std::pair<std::size_t, std::size_t>> slower;
        for (std::size_t at = 0; at < before.size(); ++at) {
            for (std::size_t to = 0; to < hosts; ++to) {
                const Way& was = before[at][to];
                const Way& is = after[at][to];
                if (was.hops.empty()) continue;
                if (is.hops.empty()) {
                    cut_off.emplace(at % hosts, to);
                } else if (const double more = is.ns / was.ns; more > 1.001) {
                    slower.emplace(at % hosts, to);
                    if (more > loss.worst) {
                        loss.worst = more;
                        loss.worst_bytes = sizes[at / hosts];
                    }
                }
            }
        }
        loss.cut_off = cut_off.size();
        loss.slower = slower.size();
    }
    return losses;
}

}  // namespace via::cli::topology
