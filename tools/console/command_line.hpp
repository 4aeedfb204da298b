// What reading the command line has in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>

namespace via::console {

/// Says the help that was asked for, or what is wrong. Returns the exit code, `usage` for the
/// latter.
inline int answer(const CLI::App& app, const CLI::ParseError& error, int usage) {
    std::ostringstream text;
    const bool good = app.exit(error, text, text) == 0;
    std::fputs(text.str().c_str(), good ? stdout : stderr);
    return good ? 0 : usage;
}

}  // namespace via::console
