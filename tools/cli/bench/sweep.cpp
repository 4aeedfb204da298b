#include "bench/sweep.hpp"

#include <algorithm>
#include <set>

#include "json.hpp"

namespace via::bench {

namespace {

constexpr std::uint64_t perturbation = 3;
constexpr std::uint64_t netpipe_most = 4 << 20;

double mb_per_s(const Row& row) {
    if (row.question.bench == Bench::bandwidth) return row.summary.median;
    return row.summary.median > 0 ? static_cast<double>(row.question.size) / row.summary.median : 0;
}

// `sweep` is of one channel and mode, sizes ascending.
std::optional<HalfPoint> half_point(const std::vector<const Row*>& sweep) {
    if (sweep.size() < least_sweep) return std::nullopt;
    const Row& best =
        **std::max_element(sweep.begin(), sweep.end(),
                           [](const Row* a, const Row* b) { return mb_per_s(*a) < mb_per_s(*b); });
    const double half = mb_per_s(best) / 2;
    if (mb_per_s(*sweep.front()) >= half) return std::nullopt;
    for (std::size_t i = 1; i < sweep.size(); ++i) {
        const double below = mb_per_s(*sweep[i - 1]);
        const double above = mb_per_s(*sweep[i]);
        if (above < half) continue;
        const auto from = static_cast<double>(sweep[i - 1]->question.size);
        const auto to = static_cast<double>(sweep[i]->question.size);
        const double size = from + (to - from) * (half - below) / (above - below);
        return HalfPoint{best.device, best.question.bench, best.mode,
                         size,        mb_per_s(best),      best.question.size};
    }
    return std::nullopt;
}

}  // namespace

std::vector<std::uint64_t> netpipe_sizes(std::uint64_t most) {
    std::set<std::uint64_t> sizes;
    for (std::uint64_t power = 1; power <= most + perturbation; power *= 2) {
        for (const std::uint64_t size : {power, 3 * power}) {
            if (size > perturbation) sizes.insert(size - perturbation);
            sizes.insert(size);
            sizes.insert(size + perturbation);
        }
    }
    sizes.erase(sizes.upper_bound(most), sizes.end());
    return {sizes.begin(), sizes.end()};
}

std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text, std::uint64_t most) {
    constexpr std::string_view netpipe = "netpipe";
    const bool sweep = text.starts_with(netpipe);
    if (sweep) text.remove_prefix(netpipe.size());
    if (sweep && text.empty()) return netpipe_sizes(std::min(netpipe_most, most));
    if (sweep && !text.starts_with(':')) return std::nullopt;
    if (sweep) text.remove_prefix(1);
    const auto size = parse_size(text);
    if (!size || *size > most || (sweep && *size == 0)) return std::nullopt;
    return sweep ? netpipe_sizes(*size) : std::vector{*size};
}

std::vector<HalfPoint> half_points(const std::vector<Row>& rows) {
    std::vector<HalfPoint> points;
    std::set<std::pair<std::string, Mode>> done;
    for (const Row& first : rows) {
        if (first.question.bench == Bench::rate) continue;
        if (!done.insert({first.device, first.mode}).second) continue;
        std::vector<const Row*> sweep;
        for (const Row& row : rows) {
            if (row.device == first.device && row.mode == first.mode) sweep.push_back(&row);
        }
        std::sort(sweep.begin(), sweep.end(),
                  [](const Row* a, const Row* b) { return a->question.size < b->question.size; });
        if (const auto point = half_point(sweep)) points.push_back(*point);
    }
    return points;
}

std::string half_text(const std::vector<HalfPoint>& points) {
    std::string text = points.empty() ? "" : "\n";
    for (const HalfPoint& point : points) {
        text += fmt::format("{}, {}: half of {:.0f} MB/s (at {} bytes) from {:.0f} bytes on\n",
                            point.device, name_of(point.mode), point.most_mb_s, size_text(point.at),
                            point.size);
    }
    return text;
}

std::string half_json(const std::vector<HalfPoint>& points) {
    std::string text;
    for (const HalfPoint& point : points) {
        cli::JsonLine line("via-bench-half-1");
        line.text("bench", name_of(point.bench)).text("device", point.device);
        line.text("mode", name_of(point.mode)).number("half_size", point.size);
        line.number("most_mb_s", point.most_mb_s).number("most_at_size", point.at);
        text += line.line();
    }
    return text;
}

}  // namespace via::bench
