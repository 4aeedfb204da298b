// What every tool says: complaints, and output, which is written or else complained of.
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

/// fflush(stdout). False: something since the start of the program could not be written.
bool flush_output();

/// What a tool's main() does: runs `body`, with the standard descriptors open, and returns its exit
/// code; `failed` where standard output could not be written or an exception came, and says so.
int run(std::string_view tool, int failed, const std::function<int()>& body);

}  // namespace via::console
