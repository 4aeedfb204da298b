#include "laboratory/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/page.hpp"

namespace via::cli {
namespace {

constexpr double chart_width = 640;
constexpr double line_height = 22;
constexpr double top = 40;

// A colour for each share; they tell apart on white and on black.
constexpr std::array<const char*, lab::share_count> colours{
    "#6f8f2f", "#b8860b", "#e08a00", "#e0383e", "#d94fa0", "#c0653a", "#a668d8", "#2f81d6",
    "#7a8cff", "#2aa8c4", "#1fa37a", "#57a8d9", "#8f6fd8", "#c252b0", "#8a7f72", "#b0b0b0"};

std::string colour_of(lab::Share share) { return colours[static_cast<std::size_t>(share)]; }

/// Room for the longest label.
double left_of(const auto& labels, const auto& text_of_label) {
    std::size_t longest = 10;
    for (const auto& one : labels) longest = std::max(longest, text_of_label(one).size());
    return 20 + 7 * static_cast<double>(longest);
}

std::string begin(const std::string& title, double left, double height) {
    return svg_head(left + chart_width + 50, height, 13) +
           fmt::format("<text x=\"10\" y=\"22\" font-size=\"15\">{}</text>\n",
                       report::escaped_markup(title));
}

std::string label(double left, double y, const std::string& text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 8,
                       y + line_height * 0.68, report::escaped_markup(text));
}

std::string piece(double x, double y, double wide, lab::Share share, double opacity,
                  const std::string& says) {
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\" "
        "fill-opacity=\"{}\"><title>{}</title></rect>\n",
        x, y + 2, std::max(wide, 0.5), line_height - 4, colour_of(share), opacity,
        report::escaped_markup(says));
}

double sum_of(const Stack& stack) {
    double sum = 0;
    for (const double part : stack.parts_ns) sum += part;
    return sum;
}

/// Round steps of 1, 2 or 5 that make some five of them.
double step_of(double most) {
    double step = 1e-3;
    while (most / step > 8) step *= 10;
    for (const double part : {0.2, 0.5})
        if (most / (step * part) <= 8) return step * part;
    return step;
}

std::string axis(double left, double y, double most, const char* unit) {
    std::string text;
    const double step = step_of(most);
    for (int n = 0; n * step <= most; ++n) {
        const double x = left + n * step / most * chart_width;
        text += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
            "stroke=\"currentColor\" stroke-opacity=\"0.25\"/>\n"
            "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4:g}</text>\n",
            x, top, y, y + 16, n * step);
    }
    return text + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                              left + chart_width + 20, y + 16, unit);
}

std::string key(double left, double y, const std::array<bool, lab::share_count>& used) {
    std::string text;
    double x = 10;
    for (std::size_t share = 0; share < lab::share_count; ++share) {
        if (!used[share]) continue;
        const std::string name = lab::name_of(static_cast<lab::Share>(share));
        if (x > left + chart_width - 60) x = 10, y += line_height;
        text += fmt::format(
            "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>"
            "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
            x, y, colours[share], x + 17, y + 11, name);
        x += 40 + 8 * static_cast<double>(name.size());
    }
    return text;
}

}  // namespace

std::string svg_head(double width, double height, int font_size) {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
        "<style>svg{{color:#24292f;background:#fff}}text{{fill:currentColor}}"
        "@media(prefers-color-scheme:dark){{svg{{color:#d0d7de;background:#16191d}}}}</style>\n",
        width, height, font_size);
}

std::string stacks_svg(const std::string& title, const std::vector<Stack>& stacks) {
    double most = 1, least = 0;
    std::array<bool, lab::share_count> used{};
    for (const Stack& stack : stacks) {
        const double sum = sum_of(stack);
        for (std::size_t share = 0; share < lab::share_count; ++share)
            used[share] = used[share] || stack.parts_ns[share] > 0;
        most = std::max(most, sum);
        least = least == 0 ? sum : std::min(least, sum);
    }
    // Of bars that differ by much only the longest could be read.
    constexpr double readable = 12;
    const bool parts = most > readable * least;
    const auto label_of = [parts](const Stack& one) {
        return parts ? fmt::format("{}, {:.1f} us", one.label, sum_of(one) / 1e3) : one.label;
    };
    const double left = left_of(stacks, label_of);
    const double end = top + line_height * static_cast<double>(stacks.size());
    std::string text = begin(title, left, end + 90);
    text += parts ? axis(left, end, 100, "%") : axis(left, end, most / 1e3, "us");
    for (std::size_t n = 0; n < stacks.size(); ++n) {
        const double y = top + line_height * static_cast<double>(n);
        text += label(left, y, label_of(stacks[n]));
        const double whole = parts ? std::max(sum_of(stacks[n]), 1.0) : most;
        double x = left;
        for (std::size_t share = 0; share < lab::share_count; ++share) {
            const double part = stacks[n].parts_ns[share];
            if (part <= 0) continue;
            const auto kind = static_cast<lab::Share>(share);
            const double wide = part / whole * chart_width;
            text += piece(x, y, wide, kind, 0.9,
                          fmt::format("{}: {:.2f} us", lab::name_of(kind), part / 1e3));
            x += wide;
        }
    }
    return text + key(left, end + 30, used) + "</svg>\n";
}

std::string timeline_svg(const std::string& title, const lab::study::Explanation& explanation) {
    std::vector<std::string> resources;
    std::array<bool, lab::share_count> used{};
    for (const auto& one : explanation.happenings) {
        used[static_cast<std::size_t>(one.share)] = true;
        if (std::ranges::find(resources, one.resource) == resources.end())
            resources.push_back(one.resource);
    }
    const double left = left_of(resources, [](const std::string& one) { return one; });
    const double most = static_cast<double>(std::max<std::int64_t>(explanation.total_ns, 1));
    const double end = top + line_height * static_cast<double>(resources.size());
    std::string text = begin(title + " (pale: beside its way)", left, end + 90) +
                       axis(left, end, most / 1e3, "us");
    for (std::size_t n = 0; n < resources.size(); ++n)
        text += label(left, top + line_height * static_cast<double>(n), resources[n]);
    for (const auto& one : explanation.happenings) {
        const auto row = std::ranges::find(resources, one.resource) - resources.begin();
        const double until = std::min(static_cast<double>(one.end_ns), most);
        const double start = static_cast<double>(one.start_ns);
        text +=
            piece(left + start / most * chart_width, top + line_height * static_cast<double>(row),
                  (until - start) / most * chart_width, one.share, one.on_path ? 1 : 0.35,
                  fmt::format("{}: {:.3f} to {:.3f} us{}", one.what, start / 1e3,
                              static_cast<double>(one.end_ns) / 1e3,
                              one.on_path ? "" : ", beside the message's way"));
    }
    return text + key(left, end + 30, used) + "</svg>\n";
}

}  // namespace via::cli
