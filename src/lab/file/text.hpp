// A file that people wrote, whole.
#pragma once

#include <expected>
#include <string>

namespace via::lab::file {

/// Or why it cannot be read, in the system's words.
std::expected<std::string, std::string> read_text(const std::string& name);

}  // namespace via::lab::file
