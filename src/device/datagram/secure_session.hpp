// One path as SecurePort knows it: its handshake, then its keys.
#pragma once

#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "secure/handshake.hpp"
#include "secure/packet_keys.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace via::device::datagram {

/// What a cluster's key stands for: all who have it are one identity.
struct ClusterKey {
    secure::Identity identity;  ///< the cipher is not set
    secure::PublicKey peer{};   ///< everybody's
    secure::Secret admission;   ///< who has it may have a handshake carried out
};
/// False: the library failed.
bool make_cluster_key(secure::Crypto& crypto, const secure::Secret& key, ClusterKey& made);

/// What says of a hello that its maker may have a handshake: two keyed hashes, since thousands of
/// strangers' are looked at in a second, and all that it decides is whether to go on.
using Admission = std::array<std::byte, wire::sealed::admission_length>;
Admission admission_of(const secure::Secret& key, std::span<const std::byte> hello);

/// What both ends know of a hello and no stranger may change.
std::array<std::byte, 17> prologue(std::uint64_t connection, std::uint64_t target,
                                   secure::CipherKind cipher);

struct SecureSession {
    HostAddress peer;
    bool asks = false;
    std::uint64_t ours = 0;    ///< who answers has it when he welcomes
    std::uint64_t theirs = 0;  ///< who asks has it when he is welcomed
    std::optional<secure::Handshake> handshake;
    secure::CipherKind cipher{};
    std::vector<std::byte> first;   ///< the handshake's first message
    std::vector<std::byte> second;  ///< who answers: its second one
    wire::Hello hello;              ///< what the first one holds
    bool is_refused = false;        ///< who asks: somebody says so, in the open
    bool asked_again = false;       ///< since then
    std::optional<secure::SealingKeys> sealing;
    std::optional<secure::OpeningKeys> opening;
    bool is_over = false;
    Time over_at{};

    /// After the second message.
    bool take_keys(secure::Crypto& crypto, const secure::KeyLimits& limits);
};

}  // namespace via::device::datagram
