#include "secure/handshake.hpp"

#include <algorithm>
#include <string_view>

#include "secure/hkdf.hpp"
#include "secure/mutation.hpp"

namespace via::secure {
namespace {

Bytes protocol_name(CipherKind cipher, bool shared) {
    using namespace std::string_view_literals;
    const bool aes = cipher == CipherKind::aes_256_gcm;
    const std::string_view name =
        shared ? (aes ? "Noise_IKpsk2_25519_AESGCM_SHA256"sv
                      : "Noise_IKpsk2_25519_ChaChaPoly_SHA256"sv)
               : (aes ? "Noise_IK_25519_AESGCM_SHA256"sv : "Noise_IK_25519_ChaChaPoly_SHA256"sv);
    return std::as_bytes(std::span(name));
}

/// The faults of steps one behind the other: the first one counts, and later steps do not happen.
template <class... Steps>
Fault in_turn(Steps... steps) {
    Fault fault = Fault::none;
    static_cast<void>(((fault = steps(), fault == Fault::none) && ...));
    return fault;
}

}  // namespace

bool prepare(Crypto& crypto, const PublicKey* peer, Ephemeral& ephemeral) {
    if (!crypto.public_key(ephemeral.own, ephemeral.own_public.emplace())) {
        ephemeral.own_public.reset();
        return false;
    }
    if (peer == nullptr) return true;
    ephemeral.peer = *peer;
    if (crypto.agree(ephemeral.own, *peer, ephemeral.with_peer.emplace())) return true;
    ephemeral.with_peer.reset();
    return false;
}

Handshake::Handshake(Crypto& crypto, const Identity& identity, bool asks)
    : crypto_(&crypto), identity_(identity), asks_(asks) {
    if (identity.own_public) {
        own_public_ = *identity.own_public;
    } else if (!crypto.public_key(identity.own, own_public_)) {
        broken_ = Fault::library;
    }
}

Handshake Handshake::ask(Crypto& crypto, const Identity& identity, const PublicKey& peer,
                         Bytes prologue) {
    Handshake result(crypto, identity, true);
    result.state_.peer = peer;
    result.begin(peer, prologue);
    return result;
}

Handshake Handshake::answer(Crypto& crypto, const Identity& identity, Bytes prologue) {
    Handshake result(crypto, identity, false);
    result.begin(result.own_public_, prologue);
    return result;
}

void Handshake::begin(const PublicKey& answerer, Bytes prologue) {
    if (broken_ != Fault::none) return;
    State& state = state_;
    const Bytes name = protocol_name(identity_.cipher, identity_.shared.has_value());
    if (name.size() <= hash_length) {
        std::ranges::copy(name, state.hash.room().begin());
    } else if (!crypto_->hash(name, {}, state.hash)) {
        broken_ = Fault::library;
        return;
    }
    state.chain = state.hash;
    if (mutated(Mutation::skip_prologue)) prologue = {};
    broken_ = in_turn([&] { return mix_hash(state, prologue); },
                      [&] { return mix_hash(state, answerer); });
}

// The two messages --------------------------------------------------------------------------------

Fault Handshake::write(const Ephemeral& ephemeral, Bytes payload, Room message) {
    if (broken_ != Fault::none) return broken_;
    if (step_ == Step::done || asks_ != (step_ == Step::first)) return Fault::out_of_turn;
    const std::size_t overhead = asks_ ? first_overhead : second_overhead;
    if (message.size() < overhead || message.size() - overhead != payload.size())
        return Fault::length;
    State next = state_;
    next.ephemeral = ephemeral;
    const Fault fault =
        asks_ ? write_first(next, payload, message) : write_second(next, payload, message);
    if (fault != Fault::none) {
        erase(message);
        return fault;
    }
    state_ = next;
    step_ = asks_ ? Step::second : Step::done;
    return Fault::none;
}

Fault Handshake::read(Bytes message, Room payload) {
    if (broken_ != Fault::none) return broken_;
    if (step_ == Step::done || asks_ == (step_ == Step::first)) return Fault::out_of_turn;
    const std::size_t overhead = asks_ ? second_overhead : first_overhead;
    if (message.size() < overhead || message.size() - overhead != payload.size())
        return Fault::length;
    State next = state_;
    const Fault fault =
        asks_ ? read_second(next, message, payload) : read_first(next, message, payload);
    if (fault != Fault::none) {
        erase(payload);
        if (mutated(Mutation::keep_after_fault)) state_ = next;
        return fault;
    }
    state_ = next;
    step_ = asks_ ? Step::done : Step::second;
    return Fault::none;
}

/// e, es, s, ss
Fault Handshake::write_first(State& state, Bytes payload, Room message) {
    constexpr std::size_t sealed_key = key_length + tag_length;
    return in_turn(
        [&] { return put_ephemeral(state, message); },
        [&] { return mix_ephemeral_and_peer(state); },
        [&] { return seal(state, own_public_, message.subspan(key_length, sealed_key)); },
        [&] { return mix_identities(state); },
        [&] { return seal(state, payload, message.subspan(key_length + sealed_key)); });
}

Fault Handshake::read_first(State& state, Bytes message, Room payload) {
    constexpr std::size_t sealed_key = key_length + tag_length;
    return in_turn([&] { return take_ephemeral(state, message); },
                   [&] { return mix_agreement(state, identity_.own, state.peer_ephemeral); },
                   [&] { return open(state, message.subspan(key_length, sealed_key), state.peer); },
                   [&] { return mix_identities(state); },
                   [&] { return open(state, message.subspan(key_length + sealed_key), payload); });
}

/// e, ee, se, psk
Fault Handshake::write_second(State& state, Bytes payload, Room message) {
    return in_turn([&] { return put_ephemeral(state, message); },
                   [&] { return mix_agreement(state, state.ephemeral.own, state.peer_ephemeral); },
                   [&] { return mix_ephemeral_and_peer(state); }, [&] { return mix_shared(state); },
                   [&] { return seal(state, payload, message.subspan(key_length)); });
}

Fault Handshake::read_second(State& state, Bytes message, Room payload) {
    return in_turn([&] { return take_ephemeral(state, message); },
                   [&] { return mix_agreement(state, state.ephemeral.own, state.peer_ephemeral); },
                   [&] { return mix_agreement(state, identity_.own, state.peer_ephemeral); },
                   [&] { return mix_shared(state); },
                   [&] { return open(state, message.subspan(key_length), payload); });
}

Fault Handshake::take_keys(ConnectionKeys& keys) {
    if (!complete()) return Fault::out_of_turn;
    if (broken_ != Fault::none) return broken_;
    Secret* const outputs[] = {&keys.from_asker, &keys.from_answerer};
    const bool done = hkdf(*crypto_, state_.chain, {}, outputs);
    // Nobody needs them any more, and who gets hold of them could read what the keys protect.
    if (!mutated(Mutation::keep_handshake_keys)) {
        state_.chain = state_.key = Secret{};
        state_.ephemeral = Ephemeral{Secret{}};
        identity_ = Identity{};
    }
    broken_ = done ? Fault::out_of_turn : Fault::library;
    return done ? Fault::none : Fault::library;
}

// Noise's steps -----------------------------------------------------------------------------------

Fault Handshake::put_ephemeral(State& state, Room to) {
    PublicKey key;
    if (state.ephemeral.own_public)
        key = *state.ephemeral.own_public;
    else if (!crypto_->public_key(state.ephemeral.own, key))
        return Fault::library;
    std::ranges::copy(key, to.begin());
    const Fault fault = mix_hash(state, key);
    if (fault != Fault::none || !identity_.shared) return fault;
    return mix_key(state, key);
}

Fault Handshake::take_ephemeral(State& state, Bytes from) {
    std::ranges::copy(from.first(key_length), state.peer_ephemeral.begin());
    const Fault fault = mix_hash(state, state.peer_ephemeral);
    if (fault != Fault::none || !identity_.shared) return fault;
    return mix_key(state, state.peer_ephemeral);
}

Fault Handshake::mix_hash(State& state, Bytes bytes) {
    return crypto_->hash(state.hash.bytes(), bytes, state.hash) ? Fault::none : Fault::library;
}

Fault Handshake::mix_key(State& state, Bytes input) {
    Secret* const outputs[] = {&state.chain, &state.key};
    if (!hkdf(*crypto_, state.chain, input, outputs)) return Fault::library;
    state.number = 0;
    return Fault::none;
}

Fault Handshake::mix_agreement(State& state, const Secret& own, const PublicKey& peer) {
    Secret shared;
    if (!crypto_->agree(own, peer, shared) && !mutated(Mutation::accept_any_point))
        return Fault::key;
    return mix_key(state, shared.bytes());
}

Fault Handshake::mix_ephemeral_and_peer(State& state) {
    const Ephemeral& ephemeral = state.ephemeral;
    if (ephemeral.with_peer &&
        (ephemeral.peer == state.peer || mutated(Mutation::take_prepared_for_any)))
        return mix_key(state, ephemeral.with_peer->bytes());
    return mix_agreement(state, ephemeral.own, state.peer);
}

/// Who asks has the private key of the one that he says he is.
Fault Handshake::mix_identities(State& state) {
    if (mutated(Mutation::skip_own_agreement)) return Fault::none;
    if (identity_.with_own && state.peer == own_public_)
        return mix_key(state, identity_.with_own->bytes());
    return mix_agreement(state, identity_.own, state.peer);
}

Fault Handshake::mix_shared(State& state) {
    if (!identity_.shared || mutated(Mutation::skip_shared_key)) return Fault::none;
    Secret for_hash;
    Secret* const outputs[] = {&state.chain, &for_hash, &state.key};
    if (!hkdf(*crypto_, state.chain, identity_.shared->bytes(), outputs)) return Fault::library;
    state.number = 0;
    return mix_hash(state, for_hash.bytes());
}

Fault Handshake::seal(State& state, Bytes plain, Room sealed) {
    const auto sealer = crypto_->sealer(identity_.cipher, state.key);
    if (!sealer || !sealer->seal(state.number++, state.hash.bytes(), plain, sealed))
        return Fault::library;
    return mutated(Mutation::forget_transcript) ? Fault::none : mix_hash(state, sealed);
}

Fault Handshake::open(State& state, Bytes sealed, Room plain) {
    const auto opener = crypto_->opener(identity_.cipher, state.key);
    if (!opener) return Fault::library;
    if (!opener->open(state.number++, state.hash.bytes(), sealed, plain)) return Fault::forged;
    return mutated(Mutation::forget_transcript) ? Fault::none : mix_hash(state, sealed);
}

}  // namespace via::secure
