// `via keys`: makes and shows the keys of an authenticated wire.
#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "agent/wire_keys.hpp"
#include "commands.hpp"
#include "console/output.hpp"
#include "secure/libcrypto/libcrypto.hpp"

namespace via::cli {

namespace {

constexpr const char* system_keys = "/etc/openvia/wire.keys";
constexpr std::size_t fingerprint_bytes = 8;

int failed(const std::string& why) {
    console::complain("via keys: {}", why);
    return exit_failed;
}

/// By which two hosts tell whether they have the same key, and from which nobody gets at it.
std::string fingerprint(secure::Crypto& crypto, const secure::Secret& key) {
    constexpr std::string_view of = "OpenVIA fingerprint";
    secure::Hash hash;
    if (!crypto.hash(std::as_bytes(std::span(of)), key.bytes(), hash)) return "unknown";
    std::string text;
    for (const std::byte byte : hash.bytes().first<fingerprint_bytes>())
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

int show(const agent::WireKeys& keys) {
    auto crypto = secure::load_libcrypto();
    if (!crypto) return failed("OpenSSL's library cannot be loaded: " + crypto.error());
    fmt::print("{}\n", keys.file);
    for (std::size_t n = 0; n < keys.keys.size(); ++n)
        fmt::print("  key {}  {}\n", fingerprint(**crypto, keys.keys[n]),
                   n == 0 ? "asks and answers" : "answers");
    return exit_good;
}

}  // namespace

int run_keys_show() {
    const auto keys = agent::find_wire_keys();
    if (!keys) return failed(keys.error());
    if (*keys) return show(**keys);
    fmt::print("no key: the wire between hosts is open to who sees it; 'via keys new' makes one\n");
    return exit_good;
}

int run_keys_new(const KeysOptions& options) {
    const std::string file = options.system ? system_keys : agent::own_wire_keys_file();
    if (file.empty()) return failed("you have no home for a file; --system is for all users");
    const auto present = agent::read_wire_keys(file);
    if (!present) return failed(present.error());
    if (*present && !options.beside)
        return failed(file + " has a key already; --beside adds one, which answers at first");
    secure::Secret key;
    if (getrandom(key.room().data(), key.room().size(), 0) != secure::key_length)
        return failed(std::string("no random key (getrandom): ") + strerror(errno));
    if (const auto added = agent::add_wire_key(file, key); !added) return failed(added.error());
    const auto made = agent::read_wire_keys(file);
    if (!made) return failed(made.error());
    return show(**made);
}

}  // namespace via::cli
