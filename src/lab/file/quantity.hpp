// "0.33 us/word" and its like.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "lab/machine.hpp"

namespace via::lab::file {

/// The number in the base of its unit (machine.hpp), or what was wanted instead.
std::expected<std::int64_t, std::string> quantity(std::string_view text, Unit unit);

}  // namespace via::lab::file
