#include "compose/protect.hpp"

#include <sys/random.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "agent/addresses.hpp"
#include "agent/key_log.hpp"
#include "agent/process.hpp"
#include "agent/wire_keys.hpp"
#include "agent/write_now.hpp"
#include "device/datagram/secure_port.hpp"
#include "secure/ipsec_mb/ipsec_mb.hpp"
#include "secure/libcrypto/libcrypto.hpp"

namespace via {
namespace {

using device::datagram::SecureOptions;

/// AES where the processor has instructions for it: without them it is slow, and its tables show in
/// the cache what they are asked.
secure::CipherKind fast_cipher() {
#if defined(__x86_64__)
    const bool aes = __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    const bool aes = false;
#endif
    return aes ? secure::CipherKind::aes_256_gcm : secure::CipherKind::chacha20_poly1305;
}

bool fill(secure::Secret& secret) {
    const auto room = secret.room();
    return getrandom(room.data(), room.size(), 0) == static_cast<ssize_t>(room.size());
}

/// On the port's clock.
Time end_of(const agent::Expiry& until, Time now, std::int64_t wall_seconds) {
    if (!until) return Time::never();
    constexpr std::int64_t century_seconds = std::int64_t{100} * 366 * 86400;
    const std::int64_t left = *until - wall_seconds;
    if (left <= 0) return Time{};
    return now + seconds(std::min(left, century_seconds));
}

/// False: the library failed.
bool add_keys(const agent::WireKeys& keys, secure::Crypto& crypto, Time now,
              SecureOptions& options) {
    const std::int64_t wall = time(nullptr);
    for (const agent::WireKey& key : keys.keys) {
        if (!make_cluster_key(crypto, key.key, options.keys.emplace_back())) return false;
        options.keys.back().until = end_of(key.until, now, wall);
    }
    for (const agent::WireKey& key : keys.own) {
        if (!make_own_key(crypto, key.key, options.keys.emplace_back())) return false;
        options.keys.back().until = end_of(key.until, now, wall);
    }
    for (const agent::TrustedHost& host : keys.hosts)
        options.hosts.push_back(
            {device::datagram::number_of(host.host), host.key, end_of(host.until, now, wall)});
    return true;
}

/// Where a user asks for it, each path's keys go to a file; whoever looks after the process sees
/// so.
device::datagram::KeyLog key_log() {
    const char* const path = agent::key_log_asked();
    if (path == nullptr) return {};
    auto opened = agent::open_key_log(path);
    if (!opened) {
        agent::log(0, "no keys are logged (OPENVIA_KEY_LOG): %s", opened.error().c_str());
        return {};
    }
    agent::log(0,
               "the keys of this NIC's paths are written to %s (OPENVIA_KEY_LOG): anybody who "
               "reads that file can read what is sent",
               path);
    const auto file = std::make_shared<agent::File>(std::move(*opened));
    return [file](const device::datagram::LoggedKeys& keys) {
        const std::string lines =
            agent::to_line({keys.theirs, keys.cipher, keys.packets_per_key, keys.from_us}) +
            agent::to_line({keys.ours, keys.cipher, keys.packets_per_key, keys.from_peer});
        if (!agent::write_now(file->get(), lines))
            agent::log(0, "a path's keys could not be written to the file of OPENVIA_KEY_LOG");
    };
}

void report(const HostAddress& whom, const char* what) {
    agent::log(1, "%s %s", agent::to_text(whom).c_str(), what);
}

}  // namespace

std::expected<std::unique_ptr<device::datagram::Port>, std::string> protect(
    std::unique_ptr<device::datagram::Port> port, const device::datagram::DatagramOptions& options,
    agent::Secure wanted) {
    if (wanted == agent::Secure::never) return port;
    const auto keys = agent::find_wire_keys();
    if (!keys) return std::unexpected(keys.error());
    if (!*keys && wanted != agent::Secure::require) return port;
    if (!*keys) return std::unexpected("secure=require, and there is no key (docs/guide/keys.md)");
    if ((*keys)->keys.empty() && (*keys)->own.empty())
        return std::unexpected((*keys)->file +
                               " trusts hosts, and there is no key of this one (via keys new "
                               "--host)");
    auto crypto = secure::load_libcrypto();
    if (!crypto)
        return std::unexpected((*keys)->file +
                               " has keys, and OpenSSL's library for them cannot "
                               "be loaded: " +
                               crypto.error());
    SecureOptions secure;
    secure.instance = options.instance;
    secure.cookie_key = options.cookie_key;
    if (!add_keys(**keys, **crypto, port->now(), secure))
        return std::unexpected((*keys)->file + ": OpenSSL's library made nothing of a key");
    secure.prefer = wanted == agent::Secure::prefer;
    secure.cipher = fast_cipher();
    secure.random = fill;
    secure.log_keys = key_log();
    secure.report = report;
    return std::make_unique<device::datagram::SecurePort>(
        std::move(port), secure::with_ipsec_mb(std::move(*crypto)), std::move(secure));
}

}  // namespace via
