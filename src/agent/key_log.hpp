// A file of the keys that sealed paths have, for who reads captures of the wire ('via keys
// decrypt'), as TLS has with SSLKEYLOGFILE. A line for each direction of a path:
//   sealed CONNECTION CIPHER PACKETS KEY
// packets with that identifier (16 hexadecimal digits) are under that key (64) and those that
// follow from it, each for so many packets.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "agent/file.hpp"
#include "secure/crypto.hpp"

namespace via::agent {

struct LoggedKey {
    std::uint64_t connection = 0;
    secure::CipherKind cipher{};
    std::uint64_t packets_per_key = 1;
    secure::Secret key;
};

/// With its end.
std::string to_line(const LoggedKey& key);
/// Without it. Nothing: it is none.
std::optional<LoggedKey> parse_logged_key(std::string_view line);

/// Names the file, where keys are wanted in one. nullptr: they are not, as for who has rights that
/// its user has not.
const char* key_log_asked();
/// To append to, of mode 0600, made if it is not there. Error: why not, and nothing is logged: it
/// may not be one that others can read, nor another user's.
std::expected<File, std::string> open_key_log(const std::string& path);

}  // namespace via::agent
