#include "sim/trace.hpp"

#include <cstdarg>
#include <cstdio>

namespace via::sim {

void Trace::line(Time now, const char* format, ...) {
    char text[340];
    constexpr std::size_t text_max = sizeof text - 1;  // room for the line's end
    auto used = static_cast<std::size_t>(
        std::snprintf(text, sizeof text, "%lld ", static_cast<long long>(now.ns)));
    std::va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(text + used, text_max - used, format, arguments);
    va_end(arguments);
    used += wanted < 0 ? 0 : static_cast<std::size_t>(wanted);
    if (used > text_max - 1) used = text_max - 1;
    text[used++] = '\n';
    for (std::size_t n = 0; n < used; ++n)
        hash_ = (hash_ ^ static_cast<unsigned char>(text[n])) * 0x100000001B3ULL;
    ++lines_;
    if (sink_) sink_({text, used});
}

}  // namespace via::sim
