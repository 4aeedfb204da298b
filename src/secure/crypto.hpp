// What an authenticated wire asks of a library of cryptography. The state machines of this module
// are in the deterministic zone and know this interface alone; libcrypto and ipsec_mb implement it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace via::secure {

constexpr std::size_t key_length = 32;   ///< of X25519, of both ciphers, and of a shared secret
constexpr std::size_t hash_length = 32;  ///< SHA-256
constexpr std::size_t tag_length = 16;   ///< what a sealed text is longer than the plain one

using Bytes = std::span<const std::byte>;
using Room = std::span<std::byte>;
using Pieces = std::span<const Bytes>;  ///< one text, which does not lie in one place
using PublicKey = std::array<std::byte, key_length>;

/// Writes zeros, also where nobody reads the room again.
void erase(Room room);
/// In constant time: how many bytes were right is not to be learned.
bool is_same(Bytes one, Bytes other);

/// 32 bytes that nobody else may know, overwritten when they go.
class Secret {
public:
    Secret() = default;
    explicit Secret(std::span<const std::byte, key_length> bytes);
    Secret(const Secret&) = default;
    Secret& operator=(const Secret&) = default;
    ~Secret() { erase(bytes_); }

    std::span<const std::byte, key_length> bytes() const { return bytes_; }
    std::span<std::byte, key_length> room() { return bytes_; }

private:
    std::array<std::byte, key_length> bytes_{};
};
/// Of one hash, or of a key that is being derived.
using Hash = Secret;
static_assert(hash_length == key_length);

enum class CipherKind : std::uint8_t { chacha20_poly1305, aes_256_gcm };

/// One key in the direction of who sends. A number is used once: two texts under one number give
/// both away. Not thread-safe.
class Sealer {
public:
    virtual ~Sealer() = default;
    /// `sealed` has tag_length bytes more than all of `plain`; a single piece may begin where
    /// `sealed` does. Each byte of it is read once, so others may write to it meanwhile.
    /// `associated` is authenticated, not hidden. False: the library failed.
    virtual bool seal(std::uint64_t number, Bytes associated, Pieces plain, Room sealed) = 0;
    bool seal(std::uint64_t number, Bytes associated, Bytes plain, Room sealed) {
        return seal(number, associated, Pieces(&plain, 1), sealed);
    }
};

/// One key in the direction of who receives. Not thread-safe.
class Opener {
public:
    virtual ~Opener() = default;
    /// False: not what a sealer of this key made of that number and `associated`; `plain`, which
    /// may begin where `sealed` does, then holds zeros.
    virtual bool open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) = 0;
};

/// Calls that say false or nullptr: the library failed (it has no memory), and nothing was made.
class Crypto {
public:
    virtual ~Crypto() = default;
    virtual bool public_key(const Secret& own, PublicKey& key) = 0;
    /// X25519. False also where the result does not depend on `own`: such keys are refused.
    virtual bool agree(const Secret& own, const PublicKey& peer, Secret& shared) = 0;
    /// SHA-256 of the one behind the other. `hash` may be any of the two.
    virtual bool hash(Bytes first, Bytes second, Hash& hash) = 0;
    virtual std::unique_ptr<Sealer> sealer(CipherKind kind, const Secret& key) = 0;
    virtual std::unique_ptr<Opener> opener(CipherKind kind, const Secret& key) = 0;
};

}  // namespace via::secure
