// HMAC (RFC 2104) and HKDF as Noise has it, of SHA-256.
#pragma once

#include "secure/crypto.hpp"

namespace via::secure {

/// HMAC of `first` and `second`, one behind the other.
bool hmac(Crypto& crypto, const Secret& key, Bytes first, Bytes second, Hash& result);

/// Fills the outputs in their order, at most three; they may be `chain` itself. False: the library
/// failed.
bool hkdf(Crypto& crypto, const Secret& chain, Bytes input, std::span<Secret* const> outputs);

}  // namespace via::secure
