#include "sim/trace.hpp"

#include <algorithm>
#include <charconv>
#include <cstdarg>
#include <cstdio>

namespace via::sim {

void Trace::line(Time now, const char* format, ...) {
    char text[text_max + 1];
    std::va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const auto length = static_cast<std::size_t>(std::max(wanted, 0));
    add(now, {text, std::min(length, text_max)});
}

void Trace::add(Time now, std::string_view text) {
    char line[text_max + 1];
    char* at = std::to_chars(line, line + text_max, now.ns).ptr;
    *at++ = ' ';
    const auto room = static_cast<std::size_t>(line + text_max - at);
    at = std::ranges::copy(text.substr(0, room), at).out;
    *at++ = '\n';
    const std::string_view whole(line, static_cast<std::size_t>(at - line));
    for (const char letter : whole)
        hash_ = (hash_ ^ static_cast<unsigned char>(letter)) * 0x100000001B3ULL;
    ++lines_;
    if (sink_) sink_(whole);
}

}  // namespace via::sim
