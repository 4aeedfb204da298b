#include "secure/packet_keys.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "secure/mutation.hpp"

namespace via::secure {
namespace {

/// No packet has it: a key's last text is the next key (Noise, section 11.3).
constexpr std::uint64_t number_of_renewal = ~std::uint64_t{0};

}  // namespace

bool renew(Crypto& crypto, CipherKind kind, Secret& key) {
    const auto sealer = crypto.sealer(kind, key);
    const std::array<std::byte, key_length> zeros{};
    std::array<std::byte, key_length + tag_length> sealed;
    if (!sealer || !sealer->seal(number_of_renewal, {}, zeros, sealed)) return false;
    key = Secret(std::span(sealed).first<key_length>());
    erase(sealed);
    return true;
}

SealingKeys::SealingKeys(Crypto& crypto, CipherKind kind, const Secret& first,
                         const KeyLimits& limits)
    : crypto_(&crypto),
      kind_(kind),
      per_key_(limits.packets),
      age_(limits.age),
      key_(first),
      sealer_(crypto.sealer(kind, first)) {
    VIA_ASSERT(per_key_ != 0);
    broken_ = sealer_ == nullptr;
}

bool SealingKeys::seal(Bytes associated, Pieces plain, Room sealed, std::uint64_t& number) {
    const bool early = mutated(Mutation::change_key_early) && next_ != 0;
    const bool at_end = next_ == number_of_renewal && !mutated(Mutation::begin_numbers_anew);
    if (broken_ || at_end || !reach((early ? next_ - 1 : next_) / per_key_)) {
        broken_ = true;
        return false;
    }
    // Used from here on, whatever comes of it.
    number = next_++;
    if (mutated(Mutation::reuse_number)) number &= ~std::uint64_t{1};
    if (mutated(Mutation::skip_header_check)) associated = {};
    broken_ = !sealer_->seal(number, associated, plain, sealed);
    return !broken_;
}

void SealingKeys::note(Time now) {
    if (timed_ == next_ / per_key_) {
        if (now - since_ < age_ || mutated(Mutation::keep_old_key)) return;
        change();
    }
    timed_ = next_ / per_key_;
    since_ = now;
}

void SealingKeys::change() {
    const std::uint64_t generation = next_ / per_key_ + 1;
    next_ = generation > number_of_renewal / per_key_ ? number_of_renewal : generation * per_key_;
}

bool SealingKeys::reach(std::uint64_t generation) {
    if (generation == generation_ || mutated(Mutation::keep_key)) return true;
    for (; generation_ < generation; ++generation_)
        if (!renew(*crypto_, kind_, key_)) return false;
    sealer_ = crypto_->sealer(kind_, key_);
    return sealer_ != nullptr;
}

OpeningKeys::OpeningKeys(Crypto& crypto, CipherKind kind, const Secret& first,
                         const KeyLimits& limits)
    : crypto_(&crypto), kind_(kind), limits_(limits), last_(first) {
    VIA_ASSERT(limits.packets != 0);
}

Opened OpeningKeys::open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) {
    if (!window_->is_new(number) && !mutated(Mutation::forget_replay_window))
        return Opened::replayed;
    if (forged_ >= limits_.forged) return Opened::worn_out;
    const std::uint64_t generation = number / limits_.packets;
    Opener* const opener = number == number_of_renewal ? nullptr : opener_of(generation);
    if (opener == nullptr) return Opened::far;
    if (mutated(Mutation::skip_header_check)) associated = {};
    if (mutated(Mutation::advance_unproved) && generation > generation_) advance(generation);
    if (!opener->open(number, associated, sealed, plain) && !mutated(Mutation::skip_tag_check)) {
        forged_ += mutated(Mutation::forgive_forgeries) ? 0 : 1;
        return Opened::forged;
    }
    window_->note(number);
    if (generation > generation_) advance(generation);
    return Opened::genuine;
}

/// nullptr: that key is not kept, or not to be expected yet.
Opener* OpeningKeys::opener_of(std::uint64_t generation) {
    const std::uint64_t ahead = mutated(Mutation::expect_any_key) ? 4 * ahead_max : ahead_max;
    if (generation + 1 < generation_ || generation > generation_ + ahead) return nullptr;
    for (; derived_ <= generation; ++derived_) {
        if (derived_ != 0 && !mutated(Mutation::keep_key) && !renew(*crypto_, kind_, last_))
            return nullptr;
        openers_[derived_ % kept] = crypto_->opener(kind_, last_);
    }
    return openers_[generation % kept].get();
}

/// Keys older than the one before this are forgotten.
void OpeningKeys::advance(std::uint64_t generation) {
    for (std::uint64_t old = generation_ == 0 ? 0 : generation_ - 1; old + 1 < generation; ++old)
        openers_[old % kept].reset();
    generation_ = generation;
    forged_ = 0;
}

}  // namespace via::secure
