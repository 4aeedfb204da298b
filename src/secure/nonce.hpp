// How both ciphers write a packet's number into a nonce.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "secure/crypto.hpp"

namespace via::secure {

constexpr std::size_t nonce_length = 12;
using Nonce = std::array<unsigned char, nonce_length>;

/// Noise, section 12: four zeros, then the number, little-endian or big-endian.
inline Nonce nonce_of(CipherKind kind, std::uint64_t number) {
    static_assert(std::endian::native == std::endian::little);
    if (kind == CipherKind::aes_256_gcm) number = __builtin_bswap64(number);
    Nonce nonce{};
    std::memcpy(nonce.data() + nonce_length - sizeof number, &number, sizeof number);
    return nonce;
}

}  // namespace via::secure
