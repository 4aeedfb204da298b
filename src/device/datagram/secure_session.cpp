#include "device/datagram/secure_session.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "device/datagram/siphash.hpp"
#include "secure/hkdf.hpp"
#include "wire/bytes.hpp"

namespace via::device::datagram {
namespace {

bool derive(secure::Crypto& crypto, const secure::Secret& key, std::string_view what,
            secure::Secret& derived) {
    return secure::hmac(crypto, key, std::as_bytes(std::span(what)), {}, derived);
}

bool publish(secure::Crypto& crypto, Credential& made) {
    return crypto.public_key(made.identity.own, made.identity.own_public.emplace());
}

}  // namespace

bool make_cluster_key(secure::Crypto& crypto, const secure::Secret& key, Credential& made) {
    made.identity.shared.emplace();
    return derive(crypto, key, "OpenVIA 1 static", made.identity.own) &&
           derive(crypto, key, "OpenVIA 1 shared", *made.identity.shared) &&
           derive(crypto, key, "OpenVIA 1 admission", made.admission) && publish(crypto, made) &&
           crypto.agree(made.identity.own, *made.identity.own_public,
                        made.identity.with_own.emplace());
}

bool make_admission(secure::Crypto& crypto, const secure::PublicKey& key, secure::Secret& made) {
    return derive(crypto, secure::Secret(key), "OpenVIA 1 admission of a host", made);
}

bool make_own_key(secure::Crypto& crypto, const secure::Secret& key, Credential& made) {
    made.identity.own = key;
    made.is_own = true;
    return publish(crypto, made) &&
           make_admission(crypto, *made.identity.own_public, made.admission);
}

HostNumber number_of(const HostAddress& address) {
    constexpr std::size_t port_length = 2;
    constexpr std::size_t ipv4_length = 4;
    HostNumber number{};
    const std::size_t length = std::min<std::size_t>(
        std::max<std::size_t>(address.length, port_length) - port_length, number.size());
    std::size_t at = 0;
    if (length == ipv4_length) {
        at = number.size() - ipv4_length;
        number[at - 2] = number[at - 1] = std::byte{0xFF};
    }
    std::memcpy(number.data() + at, address.bytes.data(), length);
    return number;
}

Admission admission_of(const secure::Secret& key, std::span<const std::byte> hello) {
    const auto bytes = hello.subspan(4, wire::sealed::hello_admission - 4);
    const auto part = [&](std::size_t n) {
        const std::byte* const half = key.bytes().data() + n * sizeof(HashKey);
        return siphash({wire::get<std::uint64_t>(half), wire::get<std::uint64_t>(half + 8)}, bytes);
    };
    static_assert(sizeof(HashKey) == 16 && 2 * sizeof(HashKey) == secure::key_length);
    Admission admission;
    wire::put(admission.data(), part(0));
    wire::put(admission.data() + 8, part(1));
    return admission;
}

std::array<std::byte, 17> prologue(std::uint64_t connection, std::uint64_t target,
                                   secure::CipherKind cipher) {
    std::array<std::byte, 17> bytes;
    wire::put(bytes.data(), connection);
    wire::put(bytes.data() + 8, target);
    wire::put(bytes.data() + 16, cipher);
    return bytes;
}

bool SecureSession::take_keys(secure::Crypto& crypto, const secure::KeyLimits& limits,
                              const KeyLog& log) {
    secure::ConnectionKeys keys;
    if (handshake->take_keys(keys) != secure::Fault::none) return false;
    const secure::Secret& from_us = asks ? keys.from_asker : keys.from_answerer;
    const secure::Secret& from_peer = asks ? keys.from_answerer : keys.from_asker;
    sealing.emplace(crypto, cipher, from_us, limits);
    opening.emplace(crypto, cipher, from_peer, limits);
    if (log) log({peer, ours, theirs, cipher, limits.packets, from_us, from_peer});
    handshake.reset();
    return true;
}

}  // namespace via::device::datagram
