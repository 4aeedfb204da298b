#include "bench/libfabric_tool.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace via::bench {

namespace {

constexpr std::size_t shown_bytes = 200;  // of what makes no sense, to a person

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

// Finite and positive, or 0.
double number_in(std::string_view text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end && std::isfinite(value) && value > 0 ? value : 0;
}

std::unexpected<Failure> makes_no_sense(std::string_view printed) {
    std::string shown(printed.substr(0, shown_bytes));
    std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
    return fail("fi_pingpong printed what makes no sense here: {}", shown);
}

}  // namespace

Result<double> one_way_us_of(std::string_view printed, std::uint64_t size) {
    const std::vector<std::string_view> lines = split(printed, "\n");
    const auto head = std::find_if(lines.begin(), lines.end(), [](std::string_view line) {
        return line.starts_with("bytes") && line.find("usec/xfer") != std::string_view::npos;
    });
    if (head == lines.end() || head + 1 == lines.end()) return makes_no_sense(printed);
    const auto names = split(*head, " ");
    const auto figures = split(*(head + 1), " ");
    if (figures.size() != names.size()) return makes_no_sense(printed);
    const auto figure = [&](std::string_view name) {
        const auto at = std::find(names.begin(), names.end(), name);
        return at == names.end() ? 0
                                 : number_in(figures[static_cast<std::size_t>(at - names.begin())]);
    };
    const double us = figure("usec/xfer");
    const double rate = figure("MB/sec");
    if (us <= 0 || rate <= 0) return makes_no_sense(printed);
    // Both are rounded to hundredths.
    const double expected = static_cast<double>(size) / us;
    const double allowed = 0.01 + expected * (0.01 + 0.01 / us);
    if (std::abs(rate - expected) > allowed) return makes_no_sense(printed);
    return us;
}

Result<std::string> find_pingpong() {
    const char* path = std::getenv("PATH");
    for (const std::string_view folder : split(path == nullptr ? "/usr/bin" : path, ":")) {
        const std::string file = fmt::format("{}/fi_pingpong", folder);
        if (::access(file.c_str(), X_OK) == 0) return file;
    }
    return fail(
        "there is no program fi_pingpong: install Debian's package libfabric-bin "
        "('./dev setup --peers' does)");
}

}  // namespace via::bench
