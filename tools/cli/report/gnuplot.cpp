#include "report/gnuplot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "bench/tool.hpp"

namespace via::report {

namespace {

constexpr std::int64_t patience_ns = 30'000'000'000;
constexpr std::size_t most_svg_bytes = 4u << 20;
constexpr std::size_t line_px = 17;  // of the key

// Tell apart on white and on black; the first one is ours.
constexpr std::array palette{"#e0383e", "#2f81d6", "#e08a00", "#1fa37a", "#a668d8", "#2aa8c4",
                             "#b8860b", "#d94fa0", "#6f8f2f", "#8a7f72", "#7a8cff", "#c0653a"};
// Of one bar for each size, small to large.
constexpr std::array shades{"#8ecae6", "#57a8d9", "#2f81d6", "#8f6fd8", "#c252b0", "#e0383e"};

std::string quoted(const std::string& text) {
    std::string safe = "\"";
    for (const char c : text) {
        const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '`' && c != '$';
        safe += plain ? c : '?';
    }
    return safe + '"';
}

std::string head(std::size_t width, std::size_t height, const std::string& title) {
    return fmt::format(
        "set terminal svg size {},{} font 'sans-serif,13' noenhanced\n"
        "set title {}\nset grid lc rgb '#909090' lw 0.5 dt 3\nset border 3\n"
        "set tics nomirror\n",
        width, height, quoted(title));
}

struct Range {
    double low = std::numeric_limits<double>::max();
    double high = 0;
    void add(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

// "8", "64", "512", "4K" and so on, as far apart as there is room.
std::string byte_tics(const Range& range) {
    const double decades = std::log2(range.high / range.low);
    const double step = decades > 16 ? 16 : decades > 8 ? 8 : 4;
    std::string tics;
    for (double size = 1; size <= range.high; size *= step) {
        if (size * step <= range.low) continue;
        const auto bytes = static_cast<std::uint64_t>(size);
        tics +=
            fmt::format("{}\"{}\" {}", tics.empty() ? "" : ", ", bench::size_text(bytes), bytes);
    }
    return tics;
}

std::string axis_of(char letter, const Axis& axis, const Range& range) {
    std::string text = fmt::format("set {}label {}\n", letter, quoted(axis.label));
    if (axis.logarithmic) text += fmt::format("set logscale {} {}\n", letter, axis.bytes ? 2 : 10);
    if (axis.bytes) {
        text += fmt::format("set {}tics ({})\nunset m{}tics\n", letter, byte_tics(range), letter);
    } else {
        text += fmt::format("set format {} '%g'\n", letter);
    }
    return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
}

// "<g ...>\n</g>\n"
void drop_empty_groups(std::string& svg) {
    constexpr std::string_view end = "</g>\n";
    for (std::size_t at = 0; (at = svg.find("<g", at)) != std::string::npos;) {
        const std::size_t open_end = svg.find('>', at);
        if (open_end == std::string::npos) return;
        if (svg.compare(open_end + 1, end.size() + 1, "\n</g>\n") == 0) {
            svg.erase(at, open_end + 2 + end.size() - at);
        } else {
            at = open_end;
        }
    }
}

}  // namespace

std::string script_of(const Chart& chart) {
    Range x, y;
    std::string data, plots;
    const auto ours = std::find_if(chart.curves.begin(), chart.curves.end(),
                                   [](const Curve& curve) { return curve.ours; });
    std::size_t next = 1;
    for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        const Curve& curve = chart.curves[i];
        data += fmt::format("$d{} << END\n", i);
        for (const Point& point : curve.points) {
            x.add(point.x);
            y.add(point.y);
            data += fmt::format("{:.6g} {:.6g} {:.6g} {:.6g}\n", point.x, point.y, point.low,
                                point.high);
        }
        data += "END\n";
        const bool first = chart.curves.begin() + static_cast<std::ptrdiff_t>(i) == ours;
        const char* colour = palette[first ? 0 : next % palette.size()];
        if (!first) ++next;
        plots += fmt::format(
            "{}$d{} using 1:2 with linespoints lc rgb '{}' lw {} dt {} pt {} ps 0.5 title {}",
            plots.empty() ? "plot " : ", \\\n     ", i, colour, curve.ours ? 3 : 1.5,
            next <= palette.size() ? 1 : 2, curve.ours ? 7 : 4 + 2 * (i % 4), quoted(curve.label));
        plots += fmt::format(
            ", \\\n     $d{} using 1:3:4 with filledcurves fc rgb '{}' fs "
            "transparent solid 0.18 noborder notitle",
            i, colour);
    }
    // Long names leave no room for the curves beside them.
    constexpr std::size_t long_label = 24;
    const bool below = std::ranges::any_of(
        chart.curves, [](const Curve& curve) { return curve.label.size() > long_label; });
    const std::size_t key = chart.curves.size() * line_px;
    const std::size_t height = below ? 400 + key : std::max<std::size_t>(400, 60 + key);
    const char* const place = below ? "set key bmargin left vertical maxcols 1 Left reverse\n"
                                    : "set key outside right top Left reverse\n";
    return head(760, height, chart.title) + place + axis_of('x', chart.x, x) +
           axis_of('y', chart.y, y) + data + plots + "\n";
}

std::string script_of(const Bars& bars) {
    const std::size_t each = bars.keys.size() + 1;
    std::string tics, plots, data;
    Range range;
    range.add(1);
    for (std::size_t c = 0; c < bars.channels.size(); ++c) {
        const double middle = static_cast<double>(c * each) + static_cast<double>(each - 2) / 2;
        tics += fmt::format("{}{} {}", c == 0 ? "" : ", ", quoted(bars.channels[c]), middle);
    }
    for (std::size_t k = 0; k < bars.keys.size(); ++k) {
        data += fmt::format("$d{} << END\n", k);
        for (std::size_t c = 0; c < bars.channels.size(); ++c) {
            const auto value = bars.values[c][k];
            if (!value) continue;
            range.add(*value);
            const auto y = static_cast<double>(c * each + k);
            data +=
                fmt::format("{:.4g} {} 1 {:.4g} {} {}\n", *value, y, *value, y - 0.45, y + 0.45);
        }
        data += "END\n";
        plots += fmt::format(
            "{}$d{} using 1:2:3:4:5:6 with boxxyerror fs solid 0.9 noborder "
            "lc rgb '{}' title {}",
            plots.empty() ? "plot " : ", \\\n     ", k,
            shades[k * (shades.size() - 1) / std::max<std::size_t>(bars.keys.size() - 1, 1)],
            quoted(bars.keys[k]));
    }
    const std::size_t rows = bars.channels.size() * each;
    return head(760, 110 + rows * 9, bars.title) +
           fmt::format(
               "set logscale x 10\nset format x '%g'\nset xrange [{:.4g}:{:.4g}]\n"
               "set xlabel 'times as good; under 1 the other one is better'\n"
               "set yrange [{}:-1.5]\nset ytics ({})\nset key outside right top Left "
               "reverse\nset arrow from 1,graph 0 to 1,graph 1 nohead lw 1.5\n",
               std::min(0.5, range.low / 1.2), std::max(2.0, range.high * 1.2), rows, tics) +
           data + plots + "\n";
}

std::string fit_for_page(std::string svg, std::string_view name) {
    svg.erase(0, std::min(svg.find("<svg"), svg.size()));
    replace_all(svg, " color=\"black\"", "");
    replace_all(svg, " color=\"gray\"", "");
    replace_all(svg, "\"black\"", "\"currentColor\"");
    replace_all(svg, "'black'", "'currentColor'");
    replace_all(svg, "gpPt", fmt::format("{}-p", name));
    replace_all(svg, "id='gpDot'", fmt::format("id='{}-dot'", name));
    replace_all(svg, "'textbox'", fmt::format("'{}-text'", name));
    replace_all(svg, "'greybox'", fmt::format("'{}-grey'", name));
    replace_all(svg, "\"gnuplot_", fmt::format("\"{}-", name));
    replace_all(svg, "<title>Gnuplot</title>\n", "");
    replace_all(svg, "\t", " ");
    drop_empty_groups(svg);
    return svg;
}

std::string fit_for_file(const std::string& svg) {
    const std::size_t head_end = svg.find('>');
    if (head_end == std::string::npos) return svg;
    return svg.substr(0, head_end + 1) +
           "\n<style>svg{color:#24292f;background:#fff}"
           "@media(prefers-color-scheme:dark){svg{color:#d0d7de;background:#16191d}}</style>" +
           svg.substr(head_end + 1);
}

Result<std::string> draw(const std::string& name, const std::string& script) {
    const auto program = bench::find_program("gnuplot", "gnuplot-nox", "./dev setup test");
    if (!program) return std::unexpected(program.error());
    bench::Tool gnuplot("gnuplot");
    // Whatever the user draws with otherwise.
    if (auto started = gnuplot.start({*program, "--default-settings"}, {"GNUTERM"}, script);
        !started) {
        return std::unexpected(started.error());
    }
    auto drawn = gnuplot.finish(patience_ns, most_svg_bytes);
    if (!drawn) return std::unexpected(drawn.error());
    const std::size_t begin = drawn->find("<?xml");  // behind warnings
    if (begin == std::string::npos || !drawn->ends_with("</svg>\n\n")) {
        return fail("gnuplot did not draw {}: {}", name, bench::shown(*drawn));
    }
    return fit_for_page(drawn->substr(begin), name);
}

}  // namespace via::report
