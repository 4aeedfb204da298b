// The keys of an authenticated wire: files that nobody else may read (docs/guide/keys.md). Lines,
// and comments behind '#'; DIGITS are 64 hexadecimal ones:
//   key DIGITS            all hosts of a cluster have it
//   own DIGITS            this host's private key
//   host ADDRESS DIGITS   the public key of another one
// each with "until YYYY-MM-DD" behind it if it is good until that day begins (UTC). The first key
// of its kind, or of a host, that is still good is the one that we ask with; each of them is good
// for who asks us, so that old and new may stand side by side.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/nic_options.hpp"
#include "base/address.hpp"
#include "secure/crypto.hpp"

namespace via::agent {

/// Seconds since 1970, UTC: from then on a key is not good any more. Nothing: it is good for ever.
using Expiry = std::optional<std::int64_t>;

struct WireKey {
    secure::Secret key;
    Expiry until;
};
struct TrustedHost {
    HostAddress host;  ///< its port means nothing
    secure::PublicKey key{};
    Expiry until;
};
struct WireKeys {
    std::string file;
    std::vector<WireKey> keys;       ///< the cluster's
    std::vector<WireKey> own;        ///< this host's private ones
    std::vector<TrustedHost> hosts;  ///< not all three are empty
};

/// Of a kind; more are a mistake: one is in use, one is on its way in, one on its way out.
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

/// What protects packets between a NIC that is opened now and that host, and why, for people.
std::string protection_of(const std::optional<WireKeys>& keys, Secure wanted,
                          const HostAddress& host, std::int64_t now_seconds);

/// Where the user's file is. Empty: he has no home.
std::string own_wire_keys_file();
enum class WireKeyKind : std::uint8_t { cluster, own };
/// Each adds a last line to a file of mode 0600 that is made if it is not there, with its folder.
/// Error: why not.
std::expected<void, std::string> add_wire_key(const std::string& file, WireKeyKind kind,
                                              const WireKey& key);
std::expected<void, std::string> add_trusted_host(const std::string& file, const TrustedHost& host);

/// 64 digits. Nothing: they are not.
std::optional<secure::PublicKey> parse_public_key(std::string_view digits);
std::string to_text(const secure::PublicKey& key);
/// Without its port.
std::string host_text(const HostAddress& host);
/// "YYYY-MM-DD": when that day begins. Nothing: there is no such day.
Expiry parse_day(std::string_view text);
std::string day_of(std::int64_t seconds);

}  // namespace via::agent
