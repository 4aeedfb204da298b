#include "topology/command.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "bench/types.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "json.hpp"
#include "topology/cluster.hpp"
#include "topology/drawing.hpp"
#include "topology/measuring.hpp"
#include "topology/relays.hpp"
#include "topology/ways.hpp"

namespace via::cli {

using namespace topology;

void add_topology(CLI::App& app, TopologyOptions& options) {
    auto* command = app.add_subcommand(
        "topology", "The fastest ways through a cluster that a file describes, and what is odd");
    command->add_option("file", options.file, "The cluster's file (TOML)")->required();
    command->add_option("--host", options.host, "Only this host's table");
    command->add_flag("--broken", options.broken, "What each cable would cost if it broke");
    command->add_option(
        "--measure", options.measure,
        "This host is that one of the file: measure its links by 'via bench', "
        "where 'viad --bench' or 'via bench serve' runs on the others, and print them");
    command->add_option("-o,--output", options.folder,
                        "A folder: each host's table as a file, its ways over relays (HOST.ways, "
                        "for the NIC option ways and viad --relay), and a picture of the cluster");
    command->add_flag("--json", options.json, "One JSON object a line");
}

namespace {

std::string sizes_text(const Range& range, bool first, bool last) {
    if (first && last) return "all sizes";
    if (last) return bench::size_text(range.from) + " and more";
    if (range.from == range.to) return bench::size_text(range.from);
    return fmt::format("{} to {}", first ? "0" : bench::size_text(range.from),
                       bench::size_text(range.to));
}

std::string over_text(const Cluster& cluster, const Way& way) {
    std::string text;
    for (std::size_t n = 0; n + 1 < way.hops.size(); ++n)
        (text += text.empty() ? "" : ", ") += cluster.hosts[way.hops[n].to].name;
    return text;
}

/// One range of a table, by the names of its parts.
struct Row {
    const Host& to;
    std::string sizes;
    std::string device;
    std::string address;  ///< that the program asks for
    std::string over;     ///< hosts that pass it on
};

template <class Use>
void each_row(const Cluster& cluster, const Table& table, Use use) {
    for (std::size_t to = 0; to < table.size(); ++to) {
        for (const Range& range : table[to]) {
            const Network& first = cluster.networks[range.way.hops.front().network];
            const Network& last = cluster.networks[range.way.hops.back().network];
            use(range,
                Row{cluster.hosts[to],
                    sizes_text(range, &range == &table[to].front(), &range == &table[to].back()),
                    first.device, last.members.at(to), over_text(cluster, range.way)});
        }
    }
}

std::string table_text(const Cluster& cluster, const Table& table, const std::string& host) {
    std::string text = fmt::format("host {}\n  {:<16}{:<20}{:<16}{:<24}{:<20}{}\n", host, "to",
                                   "sizes", "device", "address", "over", "us, the smallest");
    each_row(cluster, table, [&](const Range& range, const Row& row) {
        text += fmt::format("  {:<16}{:<20}{:<16}{:<24}{:<20}{:.3g}\n", row.to.name, row.sizes,
                            row.device, row.address, row.over.empty() ? "-" : row.over,
                            range.way.ns / 1e3);
    });
    return text;
}

/// As a file for programs: one [[ways]] each.
std::string table_file(const Cluster& cluster, const Table& table, const std::string& host,
                       const std::string& file) {
    std::string text = fmt::format("# Ways from {}: made by 'via topology {}'.\n", host, file);
    each_row(cluster, table, [&](const Range& range, const Row& row) {
        text += fmt::format(
            "\n[[ways]]\nto = \"{}\"\nfrom_bytes = {}\nto_bytes = {}\ndevice = \"{}\"\n"
            "address = \"{}\"\nover = [",
            row.to.name, range.from, range.to, row.device, row.address);
        for (std::size_t n = 0; n + 1 < range.way.hops.size(); ++n)
            text += fmt::format("{}\"{}\"", n == 0 ? "" : ", ",
                                cluster.hosts[range.way.hops[n].to].name);
        text += "]\n";
    });
    return text;
}

/// Who has to start a relay, and why.
std::vector<std::string> relays_text(const Cluster& cluster, const std::vector<Table>& tables) {
    std::vector<std::string> lines;
    const std::size_t pairs = cluster.hosts.size() * (cluster.hosts.size() - 1);
    for (const auto& [host, ways] : relays_needed(tables))
        lines.push_back(fmt::format("{0}: viad --relay {0}.ways  (on {1} of {2} ways)",
                                    cluster.hosts[host].name, ways, pairs));
    return lines;
}

void print_json(const Cluster& cluster, const Table& table, const std::string& host) {
    each_row(cluster, table, [&](const Range& range, const Row& row) {
        JsonLine line("via-topology-1");
        line.text("from", host).text("to", row.to.name).number("from_bytes", range.from);
        line.number("to_bytes", range.to).text("device", row.device).text("address", row.address);
        line.text("over", row.over).figure("us", range.way.ns / 1e3);
        fmt::print("{}", line.line());
    });
}

void print_list(std::string_view title, const std::vector<std::string>& lines) {
    constexpr std::size_t most = 20;
    if (lines.empty()) return;
    fmt::print("{}\n", title);
    for (std::size_t n = 0; n < std::min(lines.size(), most); ++n) fmt::print("  {}\n", lines[n]);
    if (lines.size() > most) fmt::print("  and {} more\n", lines.size() - most);
}

int print_losses(const Cluster& cluster, bool json) {
    if (cluster.hosts.size() > broken_hosts_max) {
        console::complain("via topology: --broken looks at {} hosts at most; there are {}",
                          broken_hosts_max, cluster.hosts.size());
        return exit_failed;
    }
    constexpr std::uint64_t looked_at[] = {8, 4096, 65536, 1048576};
    if (!json) {
        fmt::print("If one cable breaks, of {} ways\n  {:<16}{:<16}{:>10}{:>10}{:>14}\n",
                   cluster.hosts.size() * (cluster.hosts.size() - 1), "host", "network", "cut off",
                   "slower", "worst");
    }
    for (const Loss& loss : losses_of(cluster, {std::begin(looked_at), std::end(looked_at)})) {
        const std::string& host = cluster.hosts[loss.cable.host].name;
        const std::string& network = cluster.networks[loss.cable.network].name;
        if (json) {
            JsonLine line("via-topology-broken-1");
            line.text("host", host).text("network", network).number("cut_off", loss.cut_off);
            line.number("slower", loss.slower).figure("worst", loss.worst);
            fmt::print("{}", line.line());
        } else {
            const std::string worst =
                loss.slower == 0
                    ? "-"
                    : fmt::format("{:.3g} x, {}", loss.worst, bench::size_text(loss.worst_bytes));
            fmt::print("  {:<16}{:<16}{:>10}{:>10}{:>14}\n", host, network, loss.cut_off,
                       loss.slower, worst);
        }
    }
    return exit_good;
}

bool write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (out) return true;
    console::complain("via topology: {} cannot be written", file.string());
    return false;
}

int write_folder(const Cluster& cluster, const std::vector<Table>& tables,
                 const TopologyOptions& options) {
    const std::filesystem::path folder = options.folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
        console::complain("via topology: {}: {}", options.folder, error.message());
        return exit_failed;
    }
    const Relays relays(cluster);
    for (std::size_t n = 0; n < tables.size(); ++n) {
        const std::string& host = cluster.hosts[n].name;
        if (!write(folder / fmt::format("{}.toml", host),
                   table_file(cluster, tables[n], host, options.file)) ||
            !write(folder / fmt::format("{}.ways", host), relays.ways_text(n)))
            return exit_failed;
    }
    const std::string dot = dot_of(cluster);
    if (!write(folder / "cluster.dot", dot)) return exit_failed;
    const auto svg = draw(dot);
    if (!svg) {
        console::complain("via topology: {}", svg.error().what);
        return exit_failed;
    }
    return write(folder / "cluster.svg", *svg) ? exit_good : exit_failed;
}

/// Prints each link as soon as it is measured.
int run_measure(const Cluster& cluster, const std::string& name) {
    const auto self = cluster.host(name);
    if (!self) {
        console::complain("via topology: there is no host \"{}\" in the file", name);
        return exit_failed;
    }
    std::error_code error;
    const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) {
        console::complain("via topology: /proc/self/exe: {}", error.message());
        return exit_failed;
    }
    int result = exit_good;
    for (std::size_t n = 0; n < cluster.networks.size(); ++n) {
        const Network& network = cluster.networks[n];
        if (!network.members.contains(*self)) continue;
        for (const auto& [to, address] : network.members) {
            if (to == *self) continue;
            auto figures = measure(command.string(), network, to);
            if (!figures) {
                console::complain("via topology: {} over {}: {}", cluster.hosts[to].name,
                                  network.name, figures.error().what);
                result = exit_failed;
                continue;
            }
            fmt::print("{}\n", text_of(cluster, {n, *self, to, false, std::move(*figures)}));
            std::fflush(stdout);
        }
    }
    return result;
}

}  // namespace

int run_topology(const TopologyOptions& options) {
    const auto cluster = read_cluster(options.file);
    if (!cluster) {
        console::complain("via topology: {}", cluster.error());
        return exit_failed;
    }
    if (!options.measure.empty()) return run_measure(*cluster, options.measure);
    const auto only = cluster->host(options.host);
    if (!options.host.empty() && !only) {
        console::complain("via topology: {}: there is no host \"{}\"", options.file, options.host);
        return exit_failed;
    }
    const std::vector<std::uint64_t> sizes = sizes_of(*cluster);
    const Ways ways(*cluster);
    std::vector<Table> tables;
    tables.reserve(cluster->hosts.size());
    for (std::size_t host = 0; host < cluster->hosts.size(); ++host)
        tables.push_back(table_of(ways, host, sizes));
    for (std::size_t host = 0; host < tables.size(); ++host) {
        if (only && *only != host) continue;
        const std::string& name = cluster->hosts[host].name;
        if (options.json)
            print_json(*cluster, tables[host], name);
        else
            fmt::print("{}\n", table_text(*cluster, tables[host], name));
    }
    if (!options.json) {
        const Findings findings = find_oddities(*cluster, tables);
        print_list("Missing", findings.missing);
        print_list("Asymmetric", findings.asymmetric);
        print_list("Useless", findings.useless);
        print_list("Relays to start", relays_text(*cluster, tables));
    }
    if (options.broken)
        if (const int code = print_losses(*cluster, options.json); code != exit_good) return code;
    return options.folder.empty() ? exit_good : write_folder(*cluster, tables, options);
}

}  // namespace via::cli
