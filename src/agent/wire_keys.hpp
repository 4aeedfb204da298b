// The keys of an authenticated wire: files that nobody else may read (docs/guide/keys.md). Lines of
// "key DIGITS", 64 hexadecimal digits each, and comments behind '#'. The first key is the one that
// we ask with; each of them is good for who asks us, so that old and new may stand side by side.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "secure/crypto.hpp"

namespace via::agent {

struct WireKeys {
    std::string file;
    std::vector<secure::Secret> keys;  ///< at least one
};

/// More are a mistake: one is in use, one is on its way in, one on its way out.
constexpr std::size_t wire_keys_max = 8;

/// What a file's text says. Error: file, line and reason, never anything of a key.
std::expected<WireKeys, std::string> parse_wire_keys(const std::string& file,
                                                     std::string_view text);
/// One file: a regular one of ours or of root's, which nobody else may read or write; root's may be
/// readable for its group. Nothing: it is not there.
std::expected<std::optional<WireKeys>, std::string> read_wire_keys(const std::string& file);
/// The user's file if it is there, else /etc/openvia's. Nothing: there is neither. A file that is
/// not as it should be is an error and not passed over: who has a key wants it to be used.
std::expected<std::optional<WireKeys>, std::string> find_wire_keys();

/// Where the user's file is. Empty: he has no home.
std::string own_wire_keys_file();
/// Adds the key as the last line, to a file of mode 0600 that is made if it is not there, with its
/// folder. Error: why not.
std::expected<void, std::string> add_wire_key(const std::string& file, const secure::Secret& key);

}  // namespace via::agent
