// Keys of one direction of a connection: every packet has a number of its own, which is its nonce,
// and which of the direction's keys it is under follows from the number. So no message tells of a
// new key, none can be lost, and who lost thousands of packets still knows the key of the next.
#pragma once

#include <array>
#include <optional>

#include "base/time.hpp"
#include "secure/crypto.hpp"
#include "secure/replay_window.hpp"

namespace via::secure {

struct KeyLimits {
    /// After so many packets the key is another one: half of what RFC 9001, section 6.6, has for
    /// AES-GCM with packets of any length. Both ends have to say the same.
    std::uint64_t packets = std::uint64_t{1} << 22;
    /// So many forged packets, and a key opens nothing any more: section 6.6 for ChaCha20-Poly1305,
    /// which has the lower bound there.
    std::uint64_t forged = std::uint64_t{1} << 36;
    /// So long after its first packet the next one is under another key: whoever learns a key of a
    /// path that says little reads little. Only who seals looks at it.
    Duration age = seconds(120);
};

/// The next key, and `key` is overwritten: who learns a key does not learn those before it.
bool renew(Crypto& crypto, CipherKind kind, Secret& key);

/// Keys of who sends. Numbers count from 0, each is used once. One that was copied (by a fork) must
/// not go on in both: the copy is to be destroyed unused.
class SealingKeys {
public:
    SealingKeys(Crypto& crypto, CipherKind kind, const Secret& first, const KeyLimits& limits);
    SealingKeys(SealingKeys&&) = default;
    SealingKeys& operator=(SealingKeys&&) = default;

    /// As Sealer::seal(); `number` is what the packet has to say openly. False: the library failed
    /// or no numbers are left, and this connection sends nothing any more.
    [[nodiscard]] bool seal(Bytes associated, Pieces plain, Room sealed, std::uint64_t& number);
    [[nodiscard]] bool seal(Bytes associated, Bytes plain, Room sealed, std::uint64_t& number) {
        return seal(associated, Pieces(&plain, 1), sealed, number);
    }
    /// Before seal(): what time it is. Changes the key when it is old enough.
    void note(Time now);
    /// The next packet is under the next key.
    void change();
    std::uint64_t next_number() const { return next_; }

private:
    bool reach(std::uint64_t generation);

    Crypto* crypto_;
    CipherKind kind_;
    std::uint64_t per_key_;
    Duration age_;
    Secret key_;
    std::unique_ptr<Sealer> sealer_;
    std::uint64_t generation_ = 0;
    std::uint64_t next_ = 0;
    std::optional<std::uint64_t> timed_;  ///< the generation that is in use since `since_`
    Time since_{};
    bool broken_ = false;
};

enum class Opened : std::uint8_t {
    genuine,
    replayed,  ///< came before, or is so old that nobody knows
    far,       ///< under a key that is not to be expected yet, or not kept any more
    forged,
    worn_out,  ///< too many forged ones: this connection opens nothing any more
};

/// Keys of who receives.
class OpeningKeys {
public:
    /// Keys that may be skipped, all of whose packets were lost.
    static constexpr std::uint64_t ahead_max = 3;

    OpeningKeys(Crypto& crypto, CipherKind kind, const Secret& first, const KeyLimits& limits);
    OpeningKeys(OpeningKeys&&) = default;
    OpeningKeys& operator=(OpeningKeys&&) = default;

    /// As Opener::open(). Only what is genuine changes anything that counts; a forged number has at
    /// most `ahead_max` keys derived, once for each key of the peer.
    [[nodiscard]] Opened open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain);

private:
    /// One before the newest that was seen, for packets that come late; it; and those ahead.
    static constexpr std::size_t kept = 2 + ahead_max;

    Opener* opener_of(std::uint64_t generation);
    void advance(std::uint64_t generation);

    Crypto* crypto_;
    CipherKind kind_;
    KeyLimits limits_;
    Secret last_;                   ///< of generation derived_ - 1
    std::uint64_t derived_ = 0;     ///< keys that were derived
    std::uint64_t generation_ = 0;  ///< of the newest genuine packet
    std::uint64_t forged_ = 0;      ///< since then
    std::array<std::unique_ptr<Opener>, kept> openers_;
    std::unique_ptr<ReplayWindow> window_ = std::make_unique<ReplayWindow>();
};

}  // namespace via::secure
