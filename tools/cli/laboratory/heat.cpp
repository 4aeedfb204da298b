// A heat map: numbers as cells of a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "laboratory/svg.hpp"
#include "report/page.hpp"

namespace via::cli {
namespace {

constexpr double cell_width = 92;
constexpr double cell_height = 18;
constexpr double label_width = 110;
constexpr double heads = 54;

std::string heat_text(double x, double y, const char* anchor, const std::string& text) {
    return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                       anchor, report::escaped_markup(text));
}

std::string cell(double x, double y, double value, double most) {
    const double dark = most > 0 ? std::sqrt(value / most) : 0;
    return fmt::format(
               "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
               "fill=\"#e0383e\" fill-opacity=\"{:.3f}\"/>\n",
               x, y, cell_width - 2, cell_height - 2, 0.9 * dark) +
           heat_text(x + cell_width - 10, y + 13, "end", fmt::format("{:.2f}", value));
}

}  // namespace

std::string heat_svg(const std::string& title, const Heat& heat) {
    double most = 0;
    for (const auto& row : heat.values)
        for (const double value : row) most = std::max(most, value);
    const double width = label_width + cell_width * static_cast<double>(heat.columns.size()) + 20;
    const double height = heads + cell_height * static_cast<double>(heat.rows.size()) + 20;
    std::string text = svg_head(width, height, 12);
    text += heat_text(10, 20, "start", title) + heat_text(10, heads - 8, "start", heat.corner);
    for (std::size_t column = 0; column < heat.columns.size(); ++column) {
        const double x = label_width + cell_width * static_cast<double>(column + 1) - 10;
        text += heat_text(x, heads - 8, "end", heat.columns[column]);
    }
    for (std::size_t row = 0; row < heat.rows.size(); ++row) {
        const double y = heads + cell_height * static_cast<double>(row);
        text += heat_text(10, y + 13, "start", heat.rows[row]);
        for (std::size_t column = 0; column < heat.values[row].size(); ++column)
            text += cell(label_width + cell_width * static_cast<double>(column), y,
                         heat.values[row][column], most);
    }
    return text + "</svg>\n";
}

}  // namespace via::cli
