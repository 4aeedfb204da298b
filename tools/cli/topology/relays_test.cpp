// What hosts and relays are told of the ways over relays.
#include "topology/relays.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"

namespace via::cli::topology::relays_test {
namespace {

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
times = { "8" = "3 us" }
[networks.right]
device = "udp:fast0"
hosts = { b1 = "10.0.2.1", b2 = "10.0.2.2" }
times = { "8" = "3 us" }
[networks.trunk]
device = "udp:fast1"
hosts = { a1 = "10.0.3.1", b1 = "10.0.3.2" }
times = { "8" = "4 us" }
[networks.memory]
device = "shm"
hosts = { a1 = "127.0.0.1", a2 = "127.0.0.2" }
times = { "8" = "1 us" }
)";

Cluster parsed(std::string_view text) {
    auto cluster = parse_cluster(text, "test.toml");
    EXPECT_TRUE(cluster.has_value()) << cluster.error();
    return cluster ? *std::move(cluster) : Cluster{};
}

/// Is that line there?
bool has(const std::string& text, const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
}

TEST(Relays, a_host_is_told_of_all_others_and_whom_to_give_what_is_for_them) {
    const Cluster cluster = parsed(two_racks);
    const Relays relays(cluster);
    const std::string a2 = relays.ways_text(*cluster.host("a2"));
    EXPECT_TRUE(has(a2, "way 10.0.1.2 10.0.2.2 10.0.1.1 12000")) << a2;
    EXPECT_TRUE(has(a2, "way 10.0.1.2 10.0.1.1 10.0.1.1 3000")) << "itself, in the same network";
    EXPECT_TRUE(has(a2, "way 10.0.1.2 10.0.3.1 10.0.1.1 4000")) << "the relay's other address";
    EXPECT_TRUE(has(a2, "relay 10.0.1.1"));
    EXPECT_EQ(a2.find("way 10.0.1.2 10.0.1.2"), std::string::npos) << "it is no relay";
    EXPECT_EQ(a2.find("127.0"), std::string::npos) << "nobody passes shared memory on";
    const std::string a1 = relays.ways_text(*cluster.host("a1"));
    EXPECT_TRUE(has(a1, "way 10.0.3.1 10.0.2.2 10.0.3.2 8000")) << a1;
    EXPECT_TRUE(has(a1, "way 10.0.1.1 10.0.1.1 10.0.1.1 0")) << "for programs of its own host";
    EXPECT_TRUE(has(a1, "relay 10.0.3.2"));
    EXPECT_EQ(a1.find("way 10.0.1.1 10.0.2.2"), std::string::npos)
        << "by a2 it would come back to a1";
}

TEST(Relays, the_direct_way_is_one_among_others) {
    const std::string text = std::string(two_racks) + R"([networks.slow]
device = "udp:eth0"
hosts = { a2 = "10.0.9.1", b2 = "10.0.9.2", a1 = "10.0.9.3", b1 = "10.0.9.4" }
times = { "8" = "50 us" }
)";
    const Cluster cluster = parsed(text);
    const std::size_t slow = *cluster.network("slow");
    const auto steps = Relays(cluster).steps(*cluster.host("a2"), slow, *cluster.host("b2"), slow);
    ASSERT_EQ(steps.size(), 3U);
    EXPECT_EQ(steps[0].next, *cluster.host("b2"));
    EXPECT_NEAR(steps[0].ns, 50'000, 1);
}

TEST(Relays, are_named_with_the_ways_that_need_them) {
    const Cluster cluster = parsed(two_racks);
    const Ways ways(cluster);
    std::vector<Table> tables;
    for (std::size_t host = 0; host < cluster.hosts.size(); ++host)
        tables.push_back(table_of(ways, host, sizes_of(cluster)));
    const auto needed = relays_needed(tables);
    EXPECT_EQ(needed.size(), 2U);
    EXPECT_EQ(needed.at(*cluster.host("a1")), 4U) << "a2 to b1 and b2, and back";
}

/// The fastest of all networks, as a relay takes it.
const Relays::Step* best(const std::vector<Relays::Step>& steps) {
    const auto found = std::ranges::min_element(steps, {}, &Relays::Step::ns);
    return found == steps.end() ? nullptr : &*found;
}

TEST(Relays, who_follows_their_tables_arrives) {
    Random random(11);
    std::size_t walked = 0;
    for (int round = 0; round < 60; ++round) {
        Cluster cluster;
        for (int n = 0; n < 7; ++n) {
            cluster.hosts.push_back({"h" + std::to_string(n), std::nullopt});
            if (random.below(2) == 0)
                cluster.hosts.back().forward_ns = static_cast<double>(random.below(5000));
        }
        for (int n = 0; n < 4; ++n) {
            Network network{"n" + std::to_string(n),
                            "udp:x",
                            Figures({{8, 1.0 + static_cast<double>(random.below(50'000))}}),
                            {}};
            for (std::size_t host = 0; host < 7; ++host)
                if (random.below(2) == 0) network.members[host] = "10.0.0.1";
            cluster.networks.push_back(std::move(network));
        }
        const Relays relays(cluster);
        const auto all_steps = [&](std::size_t host, std::size_t to, std::size_t last) {
            std::vector<Relays::Step> all;
            for (std::size_t n = 0; n < 4; ++n)
                if (cluster.networks[n].members.contains(host))
                    for (const Relays::Step& step : relays.steps(host, n, to, last))
                        all.push_back(step);
            return all;
        };
        for (std::size_t from = 0; from < 7; ++from) {
            for (std::size_t last = 0; last < 4; ++last) {
                for (const auto& [to, address] : cluster.networks[last].members) {
                    if (to == from) continue;
                    for (const Relays::Step& first : all_steps(from, to, last)) {
                        double left = first.ns;
                        Relays::Step at = first;
                        for (int hops = 0; !(at.next == to && at.network == last); ++hops) {
                            ASSERT_LT(hops, 8);
                            if (at.next == to) break;  // a relay of that host, at its other address
                            ASSERT_NE(at.next, from) << "it comes back";
                            ASSERT_TRUE(cluster.hosts[at.next].forward_ns);
                            const auto steps = all_steps(at.next, to, last);
                            const Relays::Step* const next = best(steps);
                            ASSERT_NE(next, nullptr);
                            ASSERT_LT(next->ns, left + 1e-6) << "each hop is nearer";
                            left = next->ns;
                            at = *next;
                        }
                        ++walked;
                    }
                }
            }
        }
    }
    EXPECT_GT(walked, 1000U);
}

}  // namespace
}  // namespace via::cli::topology::relays_test
