// One key of an AEAD in one direction.
#pragma once

#include <memory>

#include "secure/crypto.hpp"
#include "secure/ipsec_mb/functions.hpp"

namespace via::secure::ipsec_mb {

/// Is it made here, and faster than elsewhere?
bool has(const Functions& library, CipherKind kind);
/// Of a kind that it has.
std::unique_ptr<Sealer> make_sealer(const Functions& library, CipherKind kind, const Secret& key);
std::unique_ptr<Opener> make_opener(const Functions& library, CipherKind kind, const Secret& key);

}  // namespace via::secure::ipsec_mb
