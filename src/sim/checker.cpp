#include "sim/checker.hpp"

namespace via::sim {

void Checker::violate(const char* format, ...) {
    if (!violation_.empty()) return;
    char text[300];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    violation_ = text;
}

}  // namespace via::sim
