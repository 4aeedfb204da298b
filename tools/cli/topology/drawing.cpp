#include "topology/drawing.hpp"

#include <fmt/format.h>

#include "bench/tool.hpp"

namespace via::cli::topology {

namespace {

constexpr std::int64_t patience_ns = 60'000'000'000;
constexpr std::size_t most_svg_bytes = 16U << 20;

/// In quotes, as dot reads it.
std::string quoted(std::string_view text) {
    std::string safe = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') safe += '\\';
        safe += c;
    }
    return safe + '"';
}

std::string time_text(const Figures& figures, std::uint64_t bytes) {
    return fmt::format("{:.3g} us", figures.time_ns(bytes) / 1e3);
}

}  // namespace

std::string dot_of(const Cluster& cluster) {
    constexpr std::uint64_t small = 8;
    constexpr std::uint64_t large = 64 << 10;
    std::string dot =
        "graph cluster {\n"
        "    layout=neato; overlap=false; splines=true;\n"
        "    node [fontname=\"sans-serif\", fontsize=12]; edge [fontname=\"sans-serif\", "
        "fontsize=9];\n";
    for (std::size_t n = 0; n < cluster.hosts.size(); ++n) {
        const Host& host = cluster.hosts[n];
        std::string label = host.name;
        if (host.forward_ns)
            label += fmt::format("\nforwards in {:.3g} us", *host.forward_ns / 1e3);
        dot += fmt::format("    h{} [shape=box, label={}];\n", n, quoted(label));
    }
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        const std::string label =
            fmt::format("{} ({})\n8 B {}, 64 KB {}", network.name, network.device,
                        time_text(network.figures, small), time_text(network.figures, large));
        dot += fmt::format("    n{} [shape=ellipse, label={}];\n", n, quoted(label));
        for (const auto& [host, address] : network.members)
            dot += fmt::format("    h{} -- n{} [label={}];\n", host, n, quoted(address));
    }
    for (const Link& link : cluster.links) {
        const std::string label =
            link.down ? cluster.networks[link.network].name + " down"
                      : fmt::format("{}: 8 B {}", cluster.networks[link.network].name,
                                    time_text(link.figures, small));
        dot += fmt::format("    h{} -- h{} [dir=forward, style=dashed, color={}, label={}];\n",
                           link.from, link.to, link.down ? "red" : "gray", quoted(label));
    }
    return dot + "}\n";
}

bench::Result<std::string> draw(const std::string& dot) {
    const auto program = bench::find_program("dot", "graphviz", "./dev setup test");
    if (!program) return std::unexpected(program.error());
    bench::Tool tool("dot");
    if (auto started = tool.start({*program, "-Tsvg"}, {}, dot); !started)
        return std::unexpected(started.error());
    auto drawn = tool.finish(patience_ns, most_svg_bytes);
    if (!drawn) return std::unexpected(drawn.error());
    const std::size_t begin = drawn->find("<?xml");  // behind warnings
    if (begin == std::string::npos || drawn->find("</svg>") == std::string::npos)
        return bench::fail("dot did not draw: {}", bench::shown(*drawn));
    return drawn->substr(begin);
}

}  // namespace via::cli::topology
