// What reading the command line has in common.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>

namespace via::console {

/// Says the help that was asked for, or what is wrong. Returns the exit code, `usage` for the
/// latter.
inline int answer(const CLI::App& app, const CLI::ParseError& error, int usage) {
    std::ostringstream text;
    const bool good = app.exit(error, text, text) == 0;
    std::fputs(text.str().c_str(), good ? stdout : stderr);
    return good ? 0 : usage;
}

/// As CLI::Range, which takes also what is no number (nan): that is neither too small nor too
/// large.
inline CLI::Validator real_range(double min, double max) {
    const std::string range = fmt::format("in [{} - {}]", min, max);
    const auto check = [=](std::string& text) {
        double value = 0;
        const bool good = CLI::detail::lexical_cast(text, value) && value >= min && value <= max;
        return good ? std::string() : fmt::format("Value {} not {}", text, range);
    };
    return {check, "FLOAT " + range};
}

/// For 64 bits. CLI's own conversion takes -1, and cuts off what is too large.
inline CLI::Validator whole_number() {
    const std::string range = fmt::format("in [0 - {}]", std::numeric_limits<std::uint64_t>::max());
    const auto check = [range](std::string& text) {
        errno = 0;
        std::strtoull(text.c_str(), nullptr, 0);
        const bool good = !text.empty() && text[0] >= '0' && text[0] <= '9' && errno == 0;
        return good ? std::string() : fmt::format("Value {} is no number {}", text, range);
    };
    return {check, "UINT " + range};
}

}  // namespace via::console
