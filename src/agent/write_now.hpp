// Writing that waits for no reader.
#pragma once

#include <sys/stat.h>

#include <string_view>

namespace via::agent {

/// Writes `text` to a descriptor that may be anything and anybody's, whose flags are not changed.
/// False: not all of it was taken, because nobody reads there, or for another reason. Not a
/// cancellation point; no signal comes of it.
bool write_now(int file, std::string_view text);
/// The same where it is known what the descriptor is.
bool write_now(int file, const struct stat& status, std::string_view text);

}  // namespace via::agent
