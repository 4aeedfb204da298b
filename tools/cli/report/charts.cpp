#include "report/charts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include "bench/stats.hpp"

namespace via::report {

namespace {

constexpr std::size_t bars_each = 6;

// Members that differ between figures of one channel at one size.
std::vector<std::string> varied_in(const std::vector<const Figure*>& figures) {
    std::vector<std::string> names;
    for (const Figure* one : figures) {
        for (const Figure* other : figures) {
            if (one->device != other->device || one->size != other->size) continue;
            for (const auto& [name, value] : one->question) {
                if (other->asked(name) != value && std::ranges::find(names, name) == names.end())
                    names.push_back(name);
            }
        }
    }
    return names;
}

std::optional<double> number_in(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

// The member of the question that makes the x axis where size does not; empty: none.
std::string other_axis(const Group& group) {
    for (const std::string& name : group.varied) {
        const auto is_number = [&](const Figure* one) {
            return number_in(one->asked(name)).has_value();
        };
        if (std::ranges::all_of(group.figures, is_number)) return name;
    }
    return {};
}

std::string name_of(const Run& run, const Group& group, std::string_view what) {
    std::string name = run.name == what ? fmt::format("{}-{}", what, group.mode)
                                        : fmt::format("{}-{}-{}", run.name, what, group.mode);
    std::replace_if(
        name.begin(), name.end(),
        [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '-');
    return name;
}

std::string title_of(const Run& run, const Group& group, std::string_view what) {
    return run.name == what ? fmt::format("{}, {}", what, group.mode)
                            : fmt::format("{}: {}, {}", run.name, what, group.mode);
}

Curve& curve_called(std::vector<Curve>& curves, const std::string& label, bool ours) {
    for (Curve& curve : curves) {
        if (curve.label == label && curve.ours == ours) return curve;
    }
    return curves.emplace_back(Curve{label, ours, {}});
}

bool is_line(const Chart& chart, std::size_t least_points = 2) {
    return std::ranges::any_of(
        chart.curves, [&](const Curve& curve) { return curve.points.size() >= least_points; });
}

}  // namespace

std::vector<Group> groups_of(const Run& run) {
    std::vector<Group> groups;
    for (const Figure& figure : run.figures) {
        auto at = std::ranges::find_if(groups, [&](const Group& group) {
            return group.bench == figure.bench && group.mode == figure.mode &&
                   group.unit == figure.unit;
        });
        if (at == groups.end()) {
            groups.push_back({figure.bench, figure.mode, figure.unit, {}, {}});
            at = groups.end() - 1;
        }
        at->figures.push_back(&figure);
    }
    for (Group& group : groups) group.varied = varied_in(group.figures);
    return groups;
}

std::string label_of(const Figure& figure, const Group& group, std::string_view but) {
    std::string label = figure.device;
    for (const std::string& name : group.varied) {
        const std::string_view value = figure.asked(name);
        const bool varies_here = std::ranges::any_of(group.figures, [&](const Figure* other) {
            return other->device == figure.device && other->asked(name) != value;
        });
        if (name == but || value.empty() || value == "false" || !varies_here) continue;
        label += label == figure.device ? " " : ", ";
        label += value == "true"    ? name
                 : number_in(value) ? fmt::format("{} {}", name, value)
                                    : std::string(value);
    }
    return label;
}

std::vector<std::uint64_t> sizes_of(const Group& group, std::size_t most) {
    constexpr std::array<std::uint64_t, 6> usual{8, 64, 512, 4096, 65536, 1u << 20};
    std::set<std::uint64_t> all;
    for (const Figure* figure : group.figures) all.insert(figure->size);
    std::vector<std::uint64_t> sizes(all.begin(), all.end());
    if (sizes.size() <= most) return sizes;
    std::vector<std::uint64_t> chosen;
    for (const std::uint64_t size : usual) {
        if (all.contains(size) && chosen.size() < most) chosen.push_back(size);
    }
    if (chosen.size() > 1) return chosen;
    chosen.clear();
    for (std::size_t i = 0; i < most; ++i) {
        chosen.push_back(sizes[i * (sizes.size() - 1) / (most - 1)]);
    }
    return chosen;
}

std::optional<Chart> chart_over_size(const Run& run, const Group& group) {
    Chart chart;
    const bool by_size = sizes_of(group, 2).size() > 1;
    const std::string axis = by_size ? "" : other_axis(group);
    if (!by_size && axis.empty()) return std::nullopt;
    chart.name = name_of(run, group, group.bench);
    chart.title = title_of(run, group, group.bench);
    chart.x = {by_size ? "bytes of a message" : axis, by_size, by_size};
    chart.y = {fmt::format("{}, {}{}", group.bench, group.unit,
                           group.bench == "latency" ? " one way" : ""),
               true, false};
    for (const Figure* figure : group.figures) {
        const double x = by_size ? static_cast<double>(figure->size)
                                 : number_in(figure->asked(axis)).value_or(0);
        if ((chart.x.logarithmic && x <= 0) || figure->median <= 0) continue;
        curve_called(chart.curves, label_of(*figure, group, axis), figure->ours)
            .points.push_back({x, figure->median, bench::percentile(figure->values, 25),
                               bench::percentile(figure->values, 75)});
    }
    for (Curve& curve : chart.curves) std::ranges::sort(curve.points, {}, &Point::x);
    if (!is_line(chart)) return std::nullopt;
    return chart;
}

std::optional<Chart> saturation_chart(const Run& run, const Group& group) {
    if (group.bench != "latency" || group.unit != "us") return std::nullopt;
    Chart chart;
    chart.name = name_of(run, group, "saturation");
    chart.title = title_of(run, group, "saturation");
    chart.x = {"time of one message, us", true, false};
    chart.y = {"MB/s", true, false};
    for (const Figure* figure : group.figures) {
        if (figure->size == 0 || figure->median <= 0) continue;
        const double rate = static_cast<double>(figure->size) / figure->median;
        curve_called(chart.curves, label_of(*figure, group), figure->ours)
            .points.push_back({figure->median, rate, rate, rate});
    }
    // By size, as the figures come: time may fall where size grows, and that is to be seen.
    if (!is_line(chart, 3)) return std::nullopt;
    return chart;
}

std::optional<Bars> ratio_bars(const Run& run, const Group& group) {
    Bars bars;
    bars.name = name_of(run, group, group.bench + "-ratio");
    bars.title = title_of(run, group, group.bench + ", times as good as");
    const std::vector<std::uint64_t> sizes = sizes_of(group, bars_each);
    for (const std::uint64_t size : sizes) bars.keys.push_back(bench::size_text(size));
    for (const Figure* figure : group.figures) {
        const auto size = std::ranges::find(sizes, figure->size);
        if (figure->ours || size == sizes.end() || !figure->ratio || *figure->ratio <= 0) continue;
        const std::string label = label_of(*figure, group);
        auto at = std::ranges::find(bars.channels, label);
        if (at == bars.channels.end()) {
            bars.channels.push_back(label);
            bars.values.emplace_back(sizes.size());
            at = bars.channels.end() - 1;
        }
        bars.values[static_cast<std::size_t>(at - bars.channels.begin())]
                   [static_cast<std::size_t>(size - sizes.begin())] =
            figure->more_is_better() ? *figure->ratio : 1 / *figure->ratio;
    }
    if (bars.channels.empty()) return std::nullopt;
    // Sizes at which nobody came to a figure beside ours have no place in the picture.
    for (std::size_t key = bars.keys.size(); key-- > 0;) {
        if (std::ranges::any_of(bars.values,
                                [&](const auto& channel) { return channel[key].has_value(); }))
            continue;
        const auto at = static_cast<std::ptrdiff_t>(key);
        bars.keys.erase(bars.keys.begin() + at);
        for (auto& channel : bars.values) channel.erase(channel.begin() + at);
    }
    return bars;
}

}  // namespace via::report
