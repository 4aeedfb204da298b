#include "secure/packet_reader.hpp"

#include "base/assert.hpp"
#include "secure/packet_keys.hpp"

namespace via::secure {

PacketReader::PacketReader(Crypto& crypto, CipherKind kind, const Secret& first,
                           std::uint64_t packets_per_key)
    : crypto_(&crypto),
      kind_(kind),
      per_key_(packets_per_key),
      first_(first),
      key_(first),
      opener_(crypto.opener(kind, first)) {
    VIA_ASSERT(per_key_ != 0);
}

bool PacketReader::open(std::uint64_t number, Bytes associated, Bytes sealed, Room plain) {
    const std::uint64_t generation = number / per_key_;
    if (generation > reach_max_ || !reach(generation) ||
        !opener_->open(number, associated, sealed, plain))
        return false;
    if (!seen_ || generation + ahead_max > reach_max_) reach_max_ = generation + ahead_max;
    seen_ = true;
    return true;
}

/// Back begins anew: it is seldom, and near where keys change.
bool PacketReader::reach(std::uint64_t generation) {
    if (generation == generation_) return opener_ != nullptr;
    if (generation < generation_) {
        key_ = first_;
        generation_ = 0;
    }
    for (; generation_ < generation; ++generation_)
        if (!renew(*crypto_, kind_, key_)) return false;
    opener_ = crypto_->opener(kind_, key_);
    return opener_ != nullptr;
}

}  // namespace via::secure
