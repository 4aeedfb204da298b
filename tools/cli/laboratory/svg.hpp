// Pictures that gnuplot has no shape for: where time goes as stacked bars, and one message's
// timeline.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lab/ledger.hpp"
#include "lab/study/explain.hpp"

namespace via::cli {

/// How each picture begins, and what it looks like in the dark; pixels.
std::string svg_head(double width, double height, int font_size);

struct Stack {
    std::string label;
    std::array<double, lab::share_count> parts_ns{};
};

/// A bar for each stack, all to one scale; if the longest is more than 12 times as long as the
/// shortest, each in percent of its whole, which stands beside it. The shares that nobody has are
/// left out.
std::string stacks_svg(const std::string& title, const std::vector<Stack>& stacks);

/// A line for each resource, in the order in which the message comes to them; what was its way is
/// dark, what went on beside it light. Each piece says what it is when it is pointed at.
std::string timeline_svg(const std::string& title, const lab::study::Explanation& explanation);

/// Numbers in percent, a row and a column for each; `values` row by row. The larger the darker, by
/// the square root of its part of the largest, since most are small.
struct Heat {
    std::string corner;
    std::vector<std::string> rows;
    std::vector<std::string> columns;
    std::vector<std::vector<double>> values;
};
std::string heat_svg(const std::string& title, const Heat& heat);

}  // namespace via::cli
