#include "topology/measuring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/tool.hpp"

namespace via::cli::topology {

namespace {

constexpr std::int64_t patience_ns = 120'000'000'000;
constexpr std::string_view sizes = "8,1K,16K,64K,1M";

}  // namespace

bench::Result<Figures> measure(const std::string& command, const Network& network, std::size_t to) {
    bench::Tool tool("via bench");
    auto started = tool.start({command, "bench", "latency", "--device", network.device, "--peer",
                               network.members.at(to), "--size", std::string(sizes), "--rounds",
                               "3", "--keep-disturbed", "--max-seconds", "60", "--json"});
    if (!started) return std::unexpected(started.error());
    auto said = tool.finish(patience_ns, 1U << 20);
    if (!said) return std::unexpected(said.error());
    std::vector<Figures::Point> points;
    std::istringstream lines(*said);
    for (std::string line; std::getline(lines, line);) {
        const auto one = nlohmann::json::parse(line, nullptr, false);
        if (!one.is_object() || !one.contains("size") || !one.contains("median")) continue;
        if (!one["size"].is_number_unsigned() || !one["median"].is_number()) continue;
        points.push_back({one["size"].get<std::uint64_t>(), 1e3 * one["median"].get<double>()});
    }
    // No message takes longer than a longer one: that was noise, which only adds.
    for (std::size_t n = points.size(); n-- > 1;)
        points[n - 1].ns = std::min(points[n - 1].ns, points[n].ns);
    if (points.empty()) return bench::fail("{}", bench::shown(*said));
    return Figures(std::move(points));
}

std::string text_of(const Cluster& cluster, const Link& link) {
    std::string text = fmt::format("[[links]]\nnetwork = \"{}\"\nfrom = \"{}\"\nto = \"{}\"\n",
                                   cluster.networks[link.network].name,
                                   cluster.hosts[link.from].name, cluster.hosts[link.to].name);
    if (link.down) return text + "down = true\n";
    text += "times = {";
    for (const Figures::Point& point : link.figures.points())
        text += fmt::format("{} \"{}\" = \"{:.4g} us\"", text.back() == '{' ? "" : ",",
                            bench::size_text(point.bytes), point.ns / 1e3);
    return text + " }\n";
}

}  // namespace via::cli::topology
