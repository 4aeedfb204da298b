// One key of an AEAD in one direction.
#pragma once

#include <memory>

#include "secure/crypto.hpp"
#include "secure/libcrypto/functions.hpp"

namespace via::secure::libcrypto {

/// nullptr: the library failed.
std::unique_ptr<Sealer> make_sealer(const Functions& library, CipherKind kind, const Secret& key);
std::unique_ptr<Opener> make_opener(const Functions& library, CipherKind kind, const Secret& key);

}  // namespace via::secure::libcrypto
