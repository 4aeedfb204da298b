#include "topology/cluster.hpp"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/tool.hpp"
#include "bench/types.hpp"
#include "lab/file/quantity.hpp"
#include "lab/file/text.hpp"

namespace via::cli::topology {

double Figures::time_ns(std::uint64_t bytes) const {
    const Point& first = points_.front();
    if (bytes <= first.bytes || points_.size() == 1) return first.ns;
    auto upper = std::ranges::lower_bound(points_, bytes, {}, &Point::bytes);
    if (upper == points_.end()) --upper;
    const Point& high = *upper;
    const Point& low = *std::prev(upper);
    const double share =
        static_cast<double>(bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
    return low.ns + share * (high.ns - low.ns);
}

std::optional<std::size_t> Cluster::host(std::string_view name) const {
    const auto found = std::ranges::find(hosts, name, &Host::name);
    if (found == hosts.end()) return std::nullopt;
    return static_cast<std::size_t>(found - hosts.begin());
}

std::optional<std::size_t> Cluster::network(std::string_view name) const {
    const auto found = std::ranges::find(networks, name, &Network::name);
    if (found == networks.end()) return std::nullopt;
    return static_cast<std::size_t>(found - networks.begin());
}

namespace {

/// Where a straight line of latency and bandwidth is drawn to.
constexpr std::uint64_t far_bytes = 1ULL << 30;

/// Of hosts and networks: they are shown, and name files.
bool is_name(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.';
    };
    return !text.empty() && text.size() <= 64 && text.front() != '.' &&
           std::ranges::all_of(text, plain);
}
/// Of devices and addresses: they are shown, and stand in quotes.
bool is_shown(std::string_view text) {
    const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; };
    return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, plain);
}

/// A table whose unknown keys are errors, and whose errors name their line.
class Reader {
public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    std::expected<Cluster, std::string> read(const toml::table& table) {
        only(table, "", {"hosts", "networks", "links"});
        read_each(table, "hosts", [&](const toml::key& key, const toml::table& of) {
            read_host(std::string(key.str()), of);
        });
        if (!error_ && cluster_.hosts.size() < 2)
            fail(table.source(), "want two hosts at least, as [hosts.NAME]");
        if (!error_ && cluster_.hosts.size() > hosts_max)
            fail(table.source(),
                 fmt::format("{} hosts are too many; {} can be", cluster_.hosts.size(), hosts_max));
        read_each(table, "networks", [&](const toml::key& key, const toml::table& of) {
            read_network(std::string(key.str()), of);
        });
        if (!error_ && cluster_.networks.empty())
            fail(table.source(), "want a network at least, as [networks.NAME]");
        if (const toml::node* links = table.get("links")) read_links(*links);
        if (error_) return std::unexpected(*error_);
        return std::move(cluster_);
    }

private:
    void fail(const toml::source_region& where, const std::string& what) {
        if (!error_) error_ = fmt::format("{}:{}: {}", file_, where.begin.line, what);
    }
    void only(const toml::table& table, const std::string& of,
              std::initializer_list<std::string_view> known) {
        for (const auto& [key, node] : table) {
            if (std::ranges::find(known, key.str()) != known.end()) continue;
            std::string all;
            for (const std::string_view one : known) (all += all.empty() ? "" : ", ") += one;
            fail(key.source(),
                 fmt::format("there is no key \"{}\"{}; there are {}", bench::shown(key.str()),
                             of.empty() ? "" : " in " + of, all));
        }
    }
    template <class Read>
    void read_each(const toml::table& table, std::string_view name, Read read) {
        const toml::node* node = table.get(name);
        if (node == nullptr) return;
        if (!node->is_table()) return fail(node->source(), fmt::format("want [{}.NAME]", name));
        for (const auto& [key, inner] : *node->as_table()) {
            if (!is_name(key.str()))
                fail(key.source(), fmt::format("{}: want a name of at most 64 letters, digits, "
                                               "'-', '_' and '.': \"{}\"",
                                               name, bench::shown(key.str())));
            else if (!inner.is_table())
                fail(inner.source(), fmt::format("want [{}.{}]", name, key.str()));
            else
                read(key, *inner.as_table());
        }
    }
    std::optional<std::string> text(const toml::table& table, std::string_view key) {
        const toml::node* node = table.get(key);
        if (node == nullptr) return std::nullopt;
        if (const auto* value = node->as_string()) return value->get();
        fail(node->source(), fmt::format("{}: want a text in quotes", key));
        return std::nullopt;
    }
    std::optional<double> quantity(const toml::table& table, std::string_view key, lab::Unit unit) {
        const auto said = text(table, key);
        if (!said) return std::nullopt;
        const auto value = lab::file::quantity(*said, unit);
        if (value) return static_cast<double>(*value);
        fail(table.get(key)->source(), fmt::format("{}: {}", key, value.error()));
        return std::nullopt;
    }

    void read_host(const std::string& name, const toml::table& table) {
        only(table, "a host", {"forward"});
        cluster_.hosts.push_back({name, quantity(table, "forward", lab::Unit::time)});
    }
    void read_network(const std::string& name, const toml::table& table) {
        only(table, "a network", {"device", "hosts", "latency", "bandwidth", "times"});
        Network network;
        network.name = name;
        network.device = text(table, "device").value_or("");
        if (!is_shown(network.device))
            fail(table.source(), "want device: what programs open there, as \"udp:eth0\"");
        network.figures = read_figures(table);
        if (network.figures.empty()) fail(table.source(), "want latency and bandwidth, or times");
        const toml::node* hosts = table.get("hosts");
        if (hosts == nullptr || !hosts->is_table())
            return fail(table.source(), "want hosts = { NAME = \"ADDRESS\", ... }");
        for (const auto& [key, node] : *hosts->as_table()) {
            const auto host = find(key.str(), key.source());
            const auto address = text(*hosts->as_table(), key.str());
            if (host && address && !is_shown(*address))
                fail(node.source(), fmt::format("{}: want an address", key.str()));
            if (host && address) network.members[*host] = *address;
        }
        cluster_.networks.push_back(std::move(network));
    }
    std::optional<std::size_t> find(std::string_view name, const toml::source_region& where) {
        const auto found = cluster_.host(name);
        if (!found) fail(where, fmt::format("there is no host \"{}\"", bench::shown(name)));
        return found;
    }

    Figures read_figures(const toml::table& table) {
        const toml::node* times = table.get("times");
        const bool straight = table.contains("latency") || table.contains("bandwidth");
        if (times != nullptr && straight) {
            fail(times->source(), "times, or latency and bandwidth: not both");
            return {};
        }
        if (times != nullptr) return read_times(*times);
        if (!straight) return {};
        const auto latency = quantity(table, "latency", lab::Unit::time);
        const auto rate = quantity(table, "bandwidth", lab::Unit::rate);
        if (!latency || !rate) {
            fail(table.source(), "latency and bandwidth: want both");
            return {};
        }
        return Figures({{0, *latency}, {far_bytes, *latency + 1e9 * far_bytes / *rate}});
    }
    Figures read_times(const toml::node& node) {
        std::vector<Figures::Point> points;
        if (!node.is_table() || node.as_table()->empty()) {
            fail(node.source(), "times: want { \"8\" = \"3 us\", \"64K\" = \"40 us\" }");
            return {};
        }
        for (const auto& [key, value] : *node.as_table()) {
            const auto bytes = bench::parse_size(key.str());
            const auto time = quantity(*node.as_table(), key.str(), lab::Unit::time);
            if (!bytes)
                fail(key.source(),
                     fmt::format("times: \"{}\" is no size, as 8 or 64K", bench::shown(key.str())));
            if (bytes && time) points.push_back({*bytes, *time});
        }
        std::ranges::sort(points, {}, &Figures::Point::bytes);
        for (std::size_t n = 1; n < points.size(); ++n) {
            if (points[n].bytes == points[n - 1].bytes)
                fail(node.source(),
                     fmt::format("times: {} bytes stand there twice", points[n].bytes));
            if (points[n].ns < points[n - 1].ns)
                fail(node.source(), fmt::format("times: {} bytes take less than {}",
                                                points[n].bytes, points[n - 1].bytes));
        }
        return Figures(std::move(points));
    }

    void read_links(const toml::node& node) {
        if (!node.is_array()) return fail(node.source(), "want [[links]]");
        for (const toml::node& one : *node.as_array()) {
            if (!one.is_table()) return fail(one.source(), "want [[links]]");
            read_link(*one.as_table());
        }
    }
    void read_link(const toml::table& table) {
        only(table, "a link",
             {"network", "from", "to", "between", "down", "latency", "bandwidth", "times"});
        Link link;
        const auto name = text(table, "network");
        const auto network = name ? cluster_.network(*name) : std::nullopt;
        if (!network)
            return fail(table.source(),
                        name ? fmt::format("there is no network \"{}\"", bench::shown(*name))
                             : std::string("a link names its network"));
        link.network = *network;
        link.figures = read_figures(table);
        if (const toml::node* down = table.get("down")) {
            if (!down->is_boolean()) fail(down->source(), "down: want true or false");
            link.down = down->value_or(false);
        }
        if (link.down == !link.figures.empty())
            fail(table.source(), "a link says what its messages take, or down = true");
        read_ends(table, link);
    }
    void read_ends(const toml::table& table, const Link& link) {
        const toml::node* between = table.get("between");
        const auto from = text(table, "from");
        const auto to = text(table, "to");
        std::string a = from.value_or("");
        std::string b = to.value_or("");
        if (between != nullptr && between->is_array() && between->as_array()->size() == 2) {
            a = between->as_array()->get(0)->value_or(std::string());
            b = between->as_array()->get(1)->value_or(std::string());
        }
        if ((between != nullptr) == (from || to) || a.empty() || b.empty() || a == b)
            return fail(table.source(),
                        "want from = \"A\" and to = \"B\", or between = [\"A\", \"B\"]");
        const auto first = find(a, table.source());
        const auto second = find(b, table.source());
        if (!first || !second) return;
        const Network& network = cluster_.networks[link.network];
        for (const std::size_t host : {*first, *second})
            if (!network.members.contains(host))
                fail(table.source(), fmt::format("{} is not in network {}",
                                                 cluster_.hosts[host].name, network.name));
        add(table, link, *first, *second);
        if (between != nullptr) add(table, link, *second, *first);
    }
    void add(const toml::table& table, Link link, std::size_t from, std::size_t to) {
        const auto same = [&](const Link& other) {
            return other.network == link.network && other.from == from && other.to == to;
        };
        if (std::ranges::any_of(cluster_.links, same))
            fail(table.source(), fmt::format("from {} to {} there is a link already",
                                             cluster_.hosts[from].name, cluster_.hosts[to].name));
        link.from = from;
        link.to = to;
        cluster_.links.push_back(std::move(link));
    }

    std::string file_;
    Cluster cluster_;
    std::optional<std::string> error_;
};

}  // namespace

std::expected<Cluster, std::string> parse_cluster(std::string_view text, const std::string& file) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        return std::unexpected(fmt::format("{}:{}: {}", file, parsed.error().source().begin.line,
                                           parsed.error().description()));
    }
    return Reader(file).read(parsed.table());
}

std::expected<Cluster, std::string> read_cluster(const std::string& file) {
    const auto text = lab::file::read_text(file);
    if (!text) return std::unexpected(fmt::format("{}: {}", file, text.error()));
    return parse_cluster(*text, file);
}

}  // namespace via::cli::topology
