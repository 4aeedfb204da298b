#include "topology/relays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace via::cli::topology {

/// Datagrams are passed on between hosts only.
bool Relays::carries(std::size_t network) const {
    const std::string& device = cluster_.networks[network].device;
    return device.starts_with("udp:") || device.starts_with("auto:");
}

Relays::Relays(const Cluster& cluster) : cluster_(cluster), times_(cluster.networks.size()) {
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        if (!carries(n)) continue;
        const double usual = network.figures.time_ns(bytes);
        for (const auto& [from, from_address] : network.members)
            for (const auto& [to, to_address] : network.members)
                if (from != to) times_[n][{from, to}] = usual;
    }
    for (const Link& link : cluster.links) {
        if (!carries(link.network)) continue;
        times_[link.network][{link.from, link.to}] =
            link.down ? never : link.figures.time_ns(bytes);
    }
    for (std::size_t n = 0; n < cluster.networks.size(); ++n)
        for (const auto& [host, address] : cluster.networks[n].members)
            if (carries(n)) targets_[{host, n}] = find(host, n);
}

double Relays::time(std::size_t network, std::size_t from, std::size_t to) const {
    const auto found = times_[network].find({from, to});
    return found == times_[network].end() ? never : found->second;
}

/// What it takes from `at` on, where a datagram came over `network`.
double Relays::passed_on(const Target& target, const Cable& end, std::size_t network,
                         std::size_t at) const {
    if (at == end.host && network == end.network) return 0;
    return cluster_.hosts[at].forward_ns.value_or(never) + target.ns[at];
}

/// Dijkstra's algorithm, backwards from the address.
Relays::Target Relays::find(std::size_t to, std::size_t last) const {
    const std::size_t hosts = cluster_.hosts.size();
    Target target{std::vector<double>(hosts, never), std::vector<std::size_t>(hosts, to)};
    target.ns[to] = 0;  // at another address of the same host
    std::set<std::pair<double, std::size_t>> open{{0, to}};
    while (!open.empty()) {
        const std::size_t at = open.begin()->second;
        open.erase(open.begin());
        for (std::size_t n = 0; n < cluster_.networks.size(); ++n) {
            if (!cluster_.networks[n].members.contains(at)) continue;
            const double rest = passed_on(target, {to, last}, n, at);
            if (rest == never) continue;
            for (const auto& [from, address] : cluster_.networks[n].members) {
                const double ns = time(n, from, at) + rest;
                if (from == at || ns >= target.ns[from]) continue;
                open.erase({target.ns[from], from});
                target.ns[from] = ns;
                target.next[from] = at;
                open.emplace(ns, from);
            }
        }
    }
    return target;
}

std::vector<Relays::Step> Relays::steps(std::size_t host, std::size_t network, std::size_t to,
                                        std::size_t last) const {
    std::vector<Step> steps;
    if (!carries(network) || !carries(last)) return steps;
    const Target& target = targets_.at({to, last});
    const auto comes_back = [&](std::size_t at) {
        for (; at != to; at = target.next[at])
            if (at == host) return true;
        return false;
    };
    for (const auto& [next, address] : cluster_.networks[network].members) {
        if (next == host) continue;
        const double ns = time(network, host, next) + passed_on(target, {to, last}, network, next);
        if (ns != never && !comes_back(next)) steps.push_back({network, next, ns});
    }
    std::ranges::sort(steps, {}, [](const Step& step) { return std::pair(step.ns, step.next); });
    if (steps.size() > steps_max) steps.resize(steps_max);
    return steps;
}

std::string Relays::ways_text(std::size_t host) const {
    std::string text = fmt::format(
        "# Ways of {}, for the NIC option ways=FILE and for viad --relay FILE: made by\n"
        "# 'via topology'. way OWN TO NEXT NANOSECONDS; relay NEIGHBOUR\n",
        cluster_.hosts[host].name);
    const auto line = [&](const std::string& own, const std::string& to, const std::string& next,
                          double ns) {
        text += fmt::format("way {} {} {} {}\n", own, to, next,
                            static_cast<std::uint64_t>(std::llround(ns)));
    };
    for (std::size_t n = 0; n < cluster_.networks.size(); ++n) {
        const Network& ours = cluster_.networks[n];
        if (!carries(n) || !ours.members.contains(host)) continue;
        const std::string& own = ours.members.at(host);
        for (const auto& [neighbour, address] : ours.members)
            if (neighbour != host && cluster_.hosts[neighbour].forward_ns)
                text += fmt::format("relay {}\n", address);
        if (cluster_.hosts[host].forward_ns) line(own, own, own, 0);
        for (const auto& [end, target] : targets_) {
            if (end.host == host) continue;
            const std::string& to = cluster_.networks[end.network].members.at(end.host);
            for (const Step& step : steps(host, n, end.host, end.network))
                line(own, to, ours.members.at(step.next), step.ns);
        }
    }
    return text;
}

std::map<std::size_t, std::size_t> relays_needed(const std::vector<Table>& tables) {
    std::map<std::size_t, std::size_t> needed;
    for (const Table& table : tables) {
        for (const std::vector<Range>& ranges : table) {
            std::set<std::size_t> between;
            for (const Range& range : ranges)
                for (std::size_t n = 0; n + 1 < range.way.hops.size(); ++n)
                    between.insert(range.way.hops[n].to);
            for (const std::size_t host : between) ++needed[host];
        }
    }
    return needed;
}

}  // namespace via::cli::topology
