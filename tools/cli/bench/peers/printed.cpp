#include "bench/peers/printed.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "bench/tool.hpp"

namespace via::bench {

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        const std::size_t begin = text.find_first_not_of(at);
        if (begin == std::string_view::npos) break;
        text.remove_prefix(begin);
        const std::size_t length = std::min(text.find_first_of(at), text.size());
        parts.push_back(text.substr(0, length));
        text.remove_prefix(length);
    }
    return parts;
}

double positive_number_in(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end && std::isfinite(value) && value > 0 ? value : 0;
}

PrintedRow::PrintedRow(std::string_view printed, std::string_view first_name,
                       std::string_view between) {
    const std::vector<std::string_view> lines = split(printed, "\n");
    const auto head = std::find_if(lines.begin(), lines.end(), [&](std::string_view line) {
        return line.starts_with(first_name);
    });
    if (head == lines.end() || head + 1 == lines.end()) return;
    names_ = split(*head, between);
    numbers_ = split(*(head + 1), between);
    if (names_.size() != numbers_.size()) names_.clear();
}

double PrintedRow::number(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) return 0;
    return positive_number_in(numbers_[static_cast<std::size_t>(at - names_.begin())]);
}

bool agree(double a, double b, double part) { return std::abs(a - b) <= part * std::max(a, b); }

std::unexpected<Failure> makes_no_sense(std::string_view program, std::string_view printed) {
    return fail("{} printed what makes no sense here: {}", program, shown(printed));
}

}  // namespace via::bench
