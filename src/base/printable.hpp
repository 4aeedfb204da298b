// Words of others, which are shown to people: they may go to a terminal.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace via {

/// `text` with a '?' in place of whatever is no printable ASCII.
inline std::string printable(std::string_view text) {
    std::string shown(text);
    std::ranges::replace_if(shown, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    return shown;
}

}  // namespace via
