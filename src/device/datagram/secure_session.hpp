// One path as SecurePort knows it: its handshake, then its keys.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "secure/handshake.hpp"
#include "secure/packet_keys.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::device::datagram {

/// What a key of ours stands for: a cluster's, all of whose hosts are one identity, or this host's
/// own private one.
struct Credential {
    secure::Identity
        identity;  ///< the cipher is not set; has its public half, by which we are asked
    secure::Secret admission;  ///< who has it may have a handshake carried out
    bool is_own = false;
    Time until = Time::never();  ///< not good any more from then on
};
/// False: the library failed.
bool make_cluster_key(secure::Crypto& crypto, const secure::Secret& key, Credential& made);
bool make_own_key(secure::Crypto& crypto, const secure::Secret& key, Credential& made);
/// Of who knows a host's public key, which no observer learns.
bool make_admission(secure::Crypto& crypto, const secure::PublicKey& key, secure::Secret& made);

/// A host without its port: IPv6's bytes, or IPv4's as IPv6 writes them.
using HostNumber = std::array<std::byte, 16>;
HostNumber number_of(const HostAddress& address);

/// Another host's public key, which its user told ours.
struct PinnedKey {
    HostNumber host{};
    secure::PublicKey key{};
    Time until = Time::never();
};
static_assert(sizeof(PinnedKey) <= 64, "there may be a hundred thousand");

/// What says of a hello that its maker may have a handshake: two keyed hashes, since thousands of
/// strangers' are looked at in a second, and all that it decides is whether to go on.
using Admission = std::array<std::byte, wire::sealed::admission_length>;
Admission admission_of(const secure::Secret& key, std::span<const std::byte> hello);

/// What both ends know of a hello and no stranger may change.
std::array<std::byte, 17> prologue(std::uint64_t connection, std::uint64_t target,
                                   secure::CipherKind cipher);

/// What who reads captures wants to know of a path.
struct LoggedKeys {
    HostAddress peer;
    std::uint64_t ours = 0;    ///< identifiers of the path, as packets to us have it
    std::uint64_t theirs = 0;  ///< and packets to the peer
    secure::CipherKind cipher{};
    std::uint64_t packets_per_key = 0;
    const secure::Secret& from_us;  ///< the first key of each direction
    const secure::Secret& from_peer;
};
using KeyLog = std::function<void(const LoggedKeys&)>;

struct SecureSession {
    HostAddress peer;
    bool asks = false;
    std::uint64_t ours = 0;    ///< who answers has it when he welcomes
    std::uint64_t theirs = 0;  ///< who asks has it when he is welcomed
    std::optional<secure::Handshake> handshake;
    secure::CipherKind cipher{};
    secure::PublicKey peer_key{};   ///< who is asked: the asker's
    secure::Secret admission;       ///< who asks: to whom he is asked
    std::vector<std::byte> first;   ///< the handshake's first message
    std::vector<std::byte> second;  ///< who answers: its second one
    wire::Hello hello;              ///< what the first one holds
    bool is_refused = false;        ///< who asks: somebody says so, in the open
    bool asked_again = false;       ///< since then
    std::optional<secure::SealingKeys> sealing;
    std::optional<secure::OpeningKeys> opening;
    std::optional<Time> doubted;  ///< when it was last in doubt whether the peer hears us
    bool is_over = false;
    Time over_at{};

    /// After the second message, when both identifiers are known.
    bool take_keys(secure::Crypto& crypto, const secure::KeyLimits& limits, const KeyLog& log);
};

}  // namespace via::device::datagram
