#include "compose/protect.hpp"

#include <sys/random.h>

#include <utility>

#include "agent/addresses.hpp"
#include "agent/process.hpp"
#include "agent/wire_keys.hpp"
#include "device/datagram/secure_port.hpp"
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
    if (!*keys && wanted == agent::Secure::configured) return port;
    if (!*keys) return std::unexpected("secure=require, and there is no key (docs/guide/keys.md)");
    auto crypto = secure::load_libcrypto();
    if (!crypto)
        return std::unexpected((*keys)->file +
                               " has keys, and OpenSSL's library for them cannot "
                               "be loaded: " +
                               crypto.error());
    SecureOptions secure;
    secure.instance = options.instance;
    secure.cookie_key = options.cookie_key;
    for (const secure::Secret& key : (*keys)->keys)
        if (!make_cluster_key(**crypto, key, secure.keys.emplace_back()))
            return std::unexpected((*keys)->file + ": OpenSSL's library made nothing of a key");
    secure.cipher = fast_cipher();
    secure.random = fill;
    secure.report = report;
    return std::make_unique<device::datagram::SecurePort>(std::move(port), std::move(*crypto),
                                                          std::move(secure));
}

}  // namespace via
