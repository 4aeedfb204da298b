// What tests of the module have in common: the library, bytes from digits, keys from numbers.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "secure/handshake.hpp"
#include "secure/libcrypto/libcrypto.hpp"

namespace via::secure::test {

using Buffer = std::vector<std::byte>;

inline Crypto& library() {
    static const auto loaded = load_libcrypto();
    if (!loaded) {
        ADD_FAILURE() << loaded.error();
        std::abort();
    }
    return **loaded;
}

inline std::byte from_digit(char digit) {
    return static_cast<std::byte>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}
inline Buffer from_digits(std::string_view digits) {
    Buffer bytes;
    for (std::size_t n = 0; n + 1 < digits.size(); n += 2)
        bytes.push_back(from_digit(digits[n]) << 4 | from_digit(digits[n + 1]));
    return bytes;
}
inline Secret secret_of(std::string_view digits) {
    return Secret(std::span<const std::byte, key_length>(from_digits(digits)));
}
inline Secret secret_of(std::uint64_t seed) {
    Random random(seed);
    Secret secret;
    for (std::byte& byte : secret.room()) byte = static_cast<std::byte>(random.next());
    return secret;
}
inline PublicKey public_of(const Secret& own) {
    PublicKey key{};
    EXPECT_TRUE(library().public_key(own, key));
    return key;
}
inline Buffer text_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

}  // namespace via::secure::test
