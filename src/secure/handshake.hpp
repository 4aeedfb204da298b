// The handshake Noise IK over X25519 and SHA-256 (Noise Protocol Framework, revision 34), with a
// pre-shared key IKpsk2: who asks knows the other's public key; one message each way; an observer
// learns neither key. Keys of the connection come out of it, and both know whom they talk to.
#pragma once

#include <optional>

#include "secure/crypto.hpp"

namespace via::secure {

enum class Fault : std::uint8_t {
    none,
    out_of_turn,  ///< not the message that is next, or the handshake is over
    length,       ///< too short for a message, or no room for what it makes
    key,          ///< a public key that no honest one has
    forged,       ///< not made by who has the keys, or not for us
    library,      ///< the library of cryptography failed
};

/// What one end brings along.
struct Identity {
    CipherKind cipher{};
    Secret own;                    ///< the private key
    std::optional<Secret> shared;  ///< the pre-shared key
    /// The public half of `own`, where it is known: to make it takes a multiplication.
    std::optional<PublicKey> own_public{};
    /// What `own` and `own_public` agree on, where it is known: peers may have the same pair.
    std::optional<Secret> with_own{};
};

/// Of the two directions; who asks sends with the first.
struct ConnectionKeys {
    Secret from_asker;
    Secret from_answerer;
};

/// A fresh random key, used for one handshake and nothing else. What takes a multiplication may be
/// made beforehand, when nobody waits for it.
struct Ephemeral {
    Ephemeral(const Secret& key) : own(key) {}  // NOLINT(google-explicit-constructor)

    Secret own;
    std::optional<PublicKey> own_public{};
    PublicKey peer{};  ///< a static key
    /// What `own` and `peer` agree on.
    std::optional<Secret> with_peer{};
};
/// Makes the rest of it, for a handshake with who has `peer`; nullptr: nobody knows who that is.
/// False: the library failed.
bool prepare(Crypto& crypto, const PublicKey* peer, Ephemeral& ephemeral);

class Handshake {
public:
    /// Bytes of the messages that stand before and behind the payload, together.
    static constexpr std::size_t first_overhead = 2 * key_length + 2 * tag_length;
    static constexpr std::size_t second_overhead = key_length + tag_length;

    /// `prologue`: what both ends know already and have to agree about. `crypto` outlives it.
    static Handshake ask(Crypto& crypto, const Identity& identity, const PublicKey& peer,
                         Bytes prologue);
    static Handshake answer(Crypto& crypto, const Identity& identity, Bytes prologue);

    /// The next message, if it is ours.
    Fault write(const Ephemeral& ephemeral, Bytes payload, Room message);
    /// The next message, if it is the peer's. A fault leaves the handshake as it was: a forged
    /// answer does not keep the true one out. `payload` is as long as the message's; zeros after a
    /// fault.
    Fault read(Bytes message, Room payload);

    /// Both messages are done. The keys may be taken once.
    bool complete() const { return step_ == Step::done; }
    Fault take_keys(ConnectionKeys& keys);
    /// Whom we talk to: known to who answers when the first message was read. That is no proof that
    /// it is he who sends now: the message may be a copy. Who opens what the keys seal proves it.
    const PublicKey& peer() const { return state_.peer; }
    /// Of all that both said: the same at both ends of one handshake, at no other.
    Bytes transcript() const { return state_.hash.bytes(); }

private:
    enum class Step : std::uint8_t { first, second, done };
    /// All that a message changes: a copy is worked on, and kept if the message was good.
    struct State {
        Hash hash;
        Secret chain;
        Secret key;
        std::uint64_t number = 0;  ///< of texts under `key`
        Ephemeral ephemeral{Secret{}};
        PublicKey peer{};
        PublicKey peer_ephemeral{};
    };

    Handshake(Crypto& crypto, const Identity& identity, bool asks);
    void begin(const PublicKey& answerer, Bytes prologue);
    Fault write_first(State& state, Bytes payload, Room message);
    Fault write_second(State& state, Bytes payload, Room message);
    Fault read_first(State& state, Bytes message, Room payload);
    Fault read_second(State& state, Bytes message, Room payload);
    Fault put_ephemeral(State& state, Room to);
    Fault take_ephemeral(State& state, Bytes from);
    Fault mix_hash(State& state, Bytes bytes);
    Fault mix_key(State& state, Bytes input);
    Fault mix_agreement(State& state, const Secret& own, const PublicKey& peer);
    Fault mix_ephemeral_and_peer(State& state);
    Fault mix_identities(State& state);
    Fault mix_shared(State& state);
    Fault seal(State& state, Bytes plain, Room sealed);
    Fault open(State& state, Bytes sealed, Room plain);

    Crypto* crypto_;
    Identity identity_;
    PublicKey own_public_{};
    bool asks_;
    Step step_ = Step::first;
    Fault broken_ = Fault::none;  ///< the library failed at the beginning
    State state_;
};

}  // namespace via::secure
