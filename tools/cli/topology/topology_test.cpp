// Clusters as text, and what comes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/random.hpp"
#include "topology/cluster.hpp"
#include "topology/drawing.hpp"
#include "topology/measuring.hpp"
#include "topology/ways.hpp"

namespace via::cli::topology::topology_test {
namespace {

/// Two racks with a quick network each, all in one slow network, and two hosts that forward.
constexpr std::string_view two_racks = R"(
[hosts.a1]
forward = "1 us"
[hosts.a2]
[hosts.b1]
forward = "1 us"
[hosts.b2]

[networks.left]
device = "udp:fast0"
hosts = { a1 = "10.0.1.1", a2 = "10.0.1.2" }
latency = "3 us"
bandwidth = "5 GB/s"
[networks.right]
device = "udp:fast0"
hosts = { b1 = "10.0.2.1", b2 = "10.0.2.2" }
latency = "3 us"
bandwidth = "5 GB/s"
[networks.trunk]
device = "udp:fast1"
hosts = { a1 = "10.0.3.1", b1 = "10.0.3.2" }
times = { "8" = "4 us", "64K" = "20 us" }
[networks.lan]
device = "udp:eth0"
hosts = { a1 = "10.0.0.1", a2 = "10.0.0.2", b1 = "10.0.0.3", b2 = "10.0.0.4" }
times = { "8" = "10 us", "1M" = "10 ms" }
)";

Cluster parsed(std::string_view text) {
    auto cluster = parse_cluster(text, "test.toml");
    EXPECT_TRUE(cluster.has_value()) << cluster.error();
    return cluster ? *std::move(cluster) : Cluster{};
}
std::vector<Table> tables_of(const Cluster& cluster) {
    const Ways ways(cluster);
    std::vector<Table> tables;
    tables.reserve(cluster.hosts.size());
    for (std::size_t host = 0; host < cluster.hosts.size(); ++host)
        tables.push_back(table_of(ways, host, sizes_of(cluster)));
    return tables;
}
/// "over lan to b2", a hop each.
std::string text_of(const Cluster& cluster, const Way& way) {
    std::string text;
    for (const Hop& hop : way.hops)
        text += (text.empty() ? "" : ", ") + cluster.networks[hop.network].name + " to " +
                cluster.hosts[hop.to].name;
    return text;
}

TEST(Topology, small_messages_go_directly_and_large_ones_over_relays) {
    const Cluster cluster = parsed(two_racks);
    const std::size_t from = *cluster.host("a2");
    const std::size_t to = *cluster.host("b2");
    const Ways ways(cluster);
    EXPECT_EQ(text_of(cluster, ways.from(from, 8)[to]), "lan to b2");
    EXPECT_NEAR(ways.from(from, 8)[to].ns, 10'000, 1);
    const Way large = ways.from(from, 65536)[to];
    EXPECT_EQ(text_of(cluster, large), "left to a1, trunk to b1, right to b2");
    const double rack = 3000 + 65536 / 5.0;
    EXPECT_NEAR(large.ns, rack + 1000 + 20'000 + 1000 + rack, 1);
    const Table table = tables_of(cluster)[from];
    ASSERT_EQ(table[to].size(), 2U);
    EXPECT_EQ(table[to][0].from, 8U);
    EXPECT_LT(table[to][0].to, table[to][1].from);
    EXPECT_EQ(table[to][1].to, 16U << 20);
    EXPECT_TRUE(table[from].empty());
}

TEST(Topology, who_does_not_forward_is_nobodys_relay) {
    std::string text(two_racks);
    for (std::size_t at; (at = text.find("forward = \"1 us\"\n")) != std::string::npos;)
        text.erase(at, 17);
    const Cluster cluster = parsed(text);
    for (const Table& table : tables_of(cluster))
        for (const auto& ranges : table)
            for (const Range& range : ranges) EXPECT_EQ(range.way.hops.size(), 1U);
}

/// All ways by trying all of them.
double best_by_trying(const Cluster& cluster, std::size_t at, std::size_t to, std::uint64_t bytes,
                      std::vector<bool> seen, bool first) {
    if (at == to) return 0;
    double best = 1e300;
    if (!first && !cluster.hosts[at].forward_ns) return best;
    seen[at] = true;
    const double passed_on = first ? 0 : *cluster.hosts[at].forward_ns;
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        if (!network.members.contains(at)) continue;
        for (const auto& member : network.members) {
            const std::size_t next = member.first;
            if (seen[next]) continue;
            const auto link = std::ranges::find_if(cluster.links, [&](const Link& one) {
                return one.network == n && one.from == at && one.to == next;
            });
            if (link != cluster.links.end() && link->down) continue;
            const Figures& figures = link != cluster.links.end() ? link->figures : network.figures;
            best = std::min(best, passed_on + figures.time_ns(bytes) +
                                      best_by_trying(cluster, next, to, bytes, seen, false));
        }
    }
    return best;
}

TEST(Topology, agrees_with_trying_all_ways) {
    Random random(5);
    for (int round = 0; round < 60; ++round) {
        const auto some = [&](std::uint64_t most) {
            return 1 + static_cast<double>(random.below(most));
        };
        const auto line = [&] {
            const double first = some(50'000);
            return Figures({{8, first}, {1 << 20, first + some(5'000'000)}});
        };
        Cluster cluster;
        for (int n = 0; n < 6; ++n) {
            cluster.hosts.push_back({"h" + std::to_string(n), std::nullopt});
            if (random.below(2) == 0) cluster.hosts.back().forward_ns = some(5000);
        }
        for (int n = 0; n < 4; ++n) {
            Network network{"n" + std::to_string(n), "udp", line(), {}};
            for (std::size_t host = 0; host < 6; ++host)
                if (random.below(2) == 0) network.members[host] = "10.0.0.1";
            cluster.networks.push_back(std::move(network));
        }
        for (int n = 0; n < 6; ++n) {
            const std::size_t at = random.below(4);
            const auto& members = cluster.networks[at].members;
            const std::size_t from = random.below(6);
            const std::size_t to = random.below(6);
            const auto same = [&](const Link& link) {
                return link.network == at && link.from == from && link.to == to;
            };
            if (from == to || !members.contains(from) || !members.contains(to) ||
                std::ranges::any_of(cluster.links, same))
                continue;
            cluster.links.push_back({at, from, to, random.below(3) == 0, line()});
        }
        const Ways ways(cluster);
        for (const std::uint64_t bytes : {8ULL, 5000ULL, 1ULL << 20}) {
            for (std::size_t from = 0; from < 6; ++from) {
                const std::vector<Way> all = ways.from(from, bytes);
                for (std::size_t to = 0; to < 6; ++to) {
                    if (from == to) continue;
                    const double best =
                        best_by_trying(cluster, from, to, bytes, std::vector<bool>(6), true);
                    ASSERT_EQ(all[to].hops.empty(), best >= 1e300) << round;
                    if (!all[to].hops.empty()) {
                        ASSERT_NEAR(all[to].ns, best, 0.1) << round;
                    }
                }
            }
        }
    }
}

TEST(Topology, says_what_is_odd) {
    const std::string text = std::string(two_racks) + R"(
[networks.old]
device = "udp:eth1"
hosts = { a1 = "10.9.0.1", b2 = "10.9.0.2" }
latency = "1 ms"
bandwidth = "10 MB/s"
[[links]]
network = "trunk"
from = "b1"
to = "a1"
times = { "8" = "6 us", "64K" = "30 us" }
[[links]]
network = "lan"
between = ["a2", "b2"]
down = true
[[links]]
network = "left"
from = "a2"
to = "a1"
down = true
)";
    const Cluster cluster = parsed(text);
    const Findings findings = find_oddities(cluster, tables_of(cluster));
    const auto has = [](const std::vector<std::string>& lines, std::string_view part) {
        return std::ranges::any_of(
            lines, [&](const std::string& line) { return line.find(part) != std::string::npos; });
    };
    EXPECT_TRUE(has(findings.missing, "a2 to b2: no network of both; over")) << "the lan is down";
    EXPECT_TRUE(has(findings.asymmetric, "trunk: b1 to a1 takes 6 us, back 4 us"));
    EXPECT_TRUE(has(findings.asymmetric, "left: a2 to a1 is down, the way back is not"));
    EXPECT_EQ(findings.asymmetric.size(), 2U);
    EXPECT_TRUE(has(findings.useless, "network old"));
}

TEST(Topology, a_host_in_no_network_has_no_way) {
    const Cluster cluster = parsed(R"(
[hosts.a]
[hosts.b]
[hosts.alone]
[networks.n]
device = "udp"
hosts = { a = "10.0.0.1", b = "10.0.0.2" }
times = { "8" = "3 us" }
)");
    const Findings findings = find_oddities(cluster, tables_of(cluster));
    EXPECT_EQ(findings.missing,
              (std::vector<std::string>{"a to alone: no way", "alone to a: no way",
                                        "alone to b: no way", "b to alone: no way"}));
}

TEST(Topology, tells_what_a_broken_cable_costs) {
    const Cluster cluster = parsed(two_racks);
    const std::vector<Loss> losses = losses_of(cluster, {8, 65536});
    ASSERT_EQ(losses.size(), 10U) << "one for each host in each network";
    for (const Loss& loss : losses) {
        EXPECT_EQ(loss.cut_off, 0U) << "each host has a second way";
        if (loss.cable == Cable{*cluster.host("a1"), *cluster.network("trunk")}) {
            EXPECT_EQ(loss.slower, 8U) << "all pairs of two racks, of large messages";
            EXPECT_EQ(loss.worst_bytes, 65536U);
            EXPECT_GT(loss.worst, 5);
        }
    }
}

TEST(Topology, names_file_and_line_of_what_is_wrong) {
    const struct {
        std::string_view text;
        std::string_view wanted;
    } all[] = {
        {"[hosts.a]\n", "test.toml:1: want two hosts at least"},
        {"[hosts.a]\n[hosts.b\n", "test.toml:2: "},
        {"[hosts.a]\n[hosts.b]\nspeed = \"1 us\"\n", "test.toml:3: there is no key \"speed\""},
        {"[hosts.a]\nforward = 3\n[hosts.b]\n", "test.toml:2: forward: want a text in quotes"},
        {"[hosts.a]\nforward = \"3 yd\"\n[hosts.b]\n", "test.toml:2: forward: "},
        {"[hosts.\"../x\"]\n[hosts.b]\n", "test.toml:1: hosts: want a name"},
        {"[hosts.a]\n[hosts.b]\n", "want a network at least"},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\nlatency=\"1 us\"\n", "test.toml:3: want device"},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\ndevice=\"udp\"\nhosts={}\n", "latency and bandwidth"},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\ndevice=\"udp\"\nhosts={c=\"1\"}\nlatency=\"1 us\"\n"
         "bandwidth=\"1 GB/s\"\n",
         "test.toml:5: there is no host \"c\""},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\ndevice=\"udp\"\nhosts={a=\"1\"}\n"
         "times={\"8\"=\"9 us\",\"16\"=\"3 us\"}\n",
         "test.toml:6: times: 16 bytes take less than 8"},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\ndevice=\"udp\"\nhosts={a=\"1\"}\n"
         "times={\"1K\"=\"9 us\",\"1024\"=\"9 us\"}\n",
         "test.toml:6: times: 1024 bytes stand there twice"},
        {"[hosts.a]\n[hosts.b]\n[networks.n]\ndevice=\"udp\"\nhosts={a=\"1\"}\n"
         "latency=\"1 us\"\nbandwidth=\"0 GB/s\"\n",
         "test.toml:7: bandwidth: want a rate"},
    };
    for (const auto& one : all) {
        const auto cluster = parse_cluster(one.text, "test.toml");
        ASSERT_FALSE(cluster.has_value()) << one.text;
        EXPECT_NE(cluster.error().find(one.wanted), std::string::npos) << cluster.error();
    }
    for (const std::string_view link :
         {"network=\"lan\"\nfrom=\"a1\"\nto=\"nobody\"\ndown=true", "network=\"none\"\ndown=true",
          "network=\"left\"\nfrom=\"a1\"\nto=\"b1\"\ndown=true",
          "network=\"lan\"\nfrom=\"a1\"\nto=\"a2\"",
          "network=\"lan\"\nfrom=\"a1\"\nto=\"a1\"\ndown=true",
          "network=\"lan\"\nbetween=[\"a1\",\"a2\",\"b1\"]\ndown=true",
          "network=\"lan\"\nfrom=\"a1\"\nto=\"a2\"\ndown=\"yes\""}) {
        const std::string text = std::string(two_racks) + "[[links]]\n" + std::string(link) + "\n";
        EXPECT_FALSE(parse_cluster(text, "test.toml").has_value()) << link;
    }
    EXPECT_FALSE(read_cluster("/nowhere/cluster.toml").has_value());
    EXPECT_FALSE(read_cluster("/tmp").has_value());
}

TEST(Topology, what_was_measured_is_read_again) {
    Cluster cluster = parsed(two_racks);
    const Link link{*cluster.network("lan"), *cluster.host("a1"), *cluster.host("b2"), false,
                    Figures({{8, 3120}, {65536, 40'000}})};
    const Cluster again = parsed(std::string(two_racks) + topology::text_of(cluster, link));
    ASSERT_EQ(again.links.size(), 1U);
    EXPECT_EQ(again.links[0].from, link.from);
    EXPECT_EQ(again.links[0].to, link.to);
    ASSERT_EQ(again.links[0].figures.points().size(), 2U);
    EXPECT_NEAR(again.links[0].figures.points()[1].ns, 40'000, 1);
}

TEST(Topology, is_drawn) {
    const auto drawn = draw(dot_of(parsed(two_racks)));
    ASSERT_TRUE(drawn.has_value()) << drawn.error().what;
    for (const std::string_view part : {"<svg", "a1", "trunk", "10.0.3.2"})
        EXPECT_NE(drawn->find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace via::cli::topology::topology_test
