// `via keys`: makes and shows the keys of an authenticated wire.
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "agent/addresses.hpp"
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

std::string until_text(const agent::Expiry& until) {
    if (!until) return "";
    return fmt::format("  until {}{}", agent::day_of(*until),
                       *until <= time(nullptr) ? ", which is over" : "");
}

int show(const agent::WireKeys& keys) {
    auto crypto = secure::load_libcrypto();
    if (!crypto) return failed("OpenSSL's library cannot be loaded: " + crypto.error());
    fmt::print("{}\n", keys.file);
    const auto use = [](std::size_t n) { return n == 0 ? "asks and answers" : "answers"; };
    for (std::size_t n = 0; n < keys.keys.size(); ++n)
        fmt::print("  key {}  {}{}\n", fingerprint(**crypto, keys.keys[n].key), use(n),
                   until_text(keys.keys[n].until));
    for (std::size_t n = 0; n < keys.own.size(); ++n) {
        secure::PublicKey key{};
        if (!(*crypto)->public_key(keys.own[n].key, key))
            return failed("OpenSSL's library made nothing of a key");
        fmt::print("  own {}  {}{}\n", agent::to_text(key), use(n), until_text(keys.own[n].until));
    }
    for (const agent::TrustedHost& host : keys.hosts)
        fmt::print("  host {} {}{}\n", agent::host_text(host.host), agent::to_text(host.key),
                   until_text(host.until));
    return exit_good;
}

/// Where the command writes to. Empty: it was told why there is none.
std::string file_of(const KeysOptions& options) {
    std::string file = options.system ? system_keys : agent::own_wire_keys_file();
    if (file.empty()) failed("you have no home for a file; --system is for all users");
    return file;
}

/// False: it was told what is wrong.
bool read_until(const KeysOptions& options, agent::Expiry& until) {
    if (options.until.empty()) return true;
    until = agent::parse_day(options.until);
    if (!until) failed(fmt::format("--until {}: that is no day, YYYY-MM-DD", options.until));
    return until.has_value();
}

/// The numbers that the name stands for, without ports; none: nobody knows it.
std::vector<HostAddress> addresses_of(const std::string& host) {
    if (const auto address = agent::parse_address(host)) return {*address};
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    std::vector<HostAddress> addresses;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return addresses;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        HostAddress address;
        if (one->ai_family == AF_INET) {
            const auto* const at = reinterpret_cast<const sockaddr_in*>(one->ai_addr);
            address.length = 6;
            std::memcpy(address.bytes.data(), &at->sin_addr, 4);
        } else if (one->ai_family == AF_INET6) {
            const auto* const at = reinterpret_cast<const sockaddr_in6*>(one->ai_addr);
            address.length = 18;
            std::memcpy(address.bytes.data(), &at->sin6_addr, 16);
        } else {
            continue;
        }
        addresses.push_back(address);
    }
    freeaddrinfo(found);
    return addresses;
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
    const std::string file = file_of(options);
    agent::WireKey key;
    if (file.empty() || !read_until(options, key.until)) return exit_failed;
    const auto present = agent::read_wire_keys(file);
    if (!present) return failed(present.error());
    const bool has_one = *present && !(options.host ? (*present)->own : (*present)->keys).empty();
    if (has_one && !options.beside)
        return failed(fmt::format("{} has {} already; --beside adds one, which answers at first",
                                  file, options.host ? "a key of this host" : "a key"));
    if (getrandom(key.key.room().data(), key.key.room().size(), 0) != secure::key_length)
        return failed(std::string("no random key (getrandom): ") + strerror(errno));
    const auto kind = options.host ? agent::WireKeyKind::own : agent::WireKeyKind::cluster;
    if (const auto added = agent::add_wire_key(file, kind, key); !added)
        return failed(added.error());
    const auto made = agent::read_wire_keys(file);
    if (!made) return failed(made.error());
    return show(**made);
}

int run_keys_trust(const KeysOptions& options) {
    const std::string file = file_of(options);
    agent::TrustedHost trusted;
    if (file.empty() || !read_until(options, trusted.until)) return exit_failed;
    const auto key = agent::parse_public_key(options.trusted_key);
    if (!key)
        return failed(
            "a host's key is 64 hexadecimal digits in small letters, as 'via keys show' "
            "prints there behind \"own\"");
    trusted.key = *key;
    const std::vector<HostAddress> addresses = addresses_of(options.trusted_host);
    if (addresses.empty())
        return failed(fmt::format("no host is called \"{}\"", options.trusted_host));
    for (const HostAddress& address : addresses) {
        trusted.host = address;
        if (const auto added = agent::add_trusted_host(file, trusted); !added)
            return failed(added.error());
        fmt::print("{} {} is trusted\n", agent::host_text(address), agent::to_text(*key));
    }
    return exit_good;
}

}  // namespace via::cli
