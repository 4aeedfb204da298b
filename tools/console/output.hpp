// What every tool says: complaints, and output that was written or is said not to be.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace via::console {

/// A line on standard error. Unlike fmt::print() it does not throw where that cannot be written.
void complain_line(std::string line);

template <class... Arguments>
void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    complain_line(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace via::console
