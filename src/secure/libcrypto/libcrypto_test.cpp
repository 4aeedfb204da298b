#include "secure/libcrypto/libcrypto.hpp"

#include <gtest/gtest.h>

#include "secure/hkdf.hpp"
#include "secure/libcrypto/secure_test_support.hpp"

namespace via::secure::libcrypto_test {
namespace {

using test::Buffer;
using test::from_digits;
using test::library;
using test::secret_of;
using test::text_of;

/// RFC 7748, section 5.2: each result is the next private key, each key the next point.
TEST(Libcrypto, x25519) {
    Secret key = secret_of("0900000000000000000000000000000000000000000000000000000000000000");
    PublicKey point;
    std::ranges::copy(key.bytes(), point.begin());
    for (int n = 1; n <= 1000; ++n) {
        Secret result;
        ASSERT_TRUE(library().agree(key, point, result));
        std::ranges::copy(key.bytes(), point.begin());
        key = result;
        if (n != 1 && n != 1000) continue;
        const Secret expected =
            secret_of(n == 1 ? "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
                             : "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
        EXPECT_TRUE(std::ranges::equal(key.bytes(), expected.bytes())) << n;
    }
    EXPECT_FALSE(library().agree(key, PublicKey{}, key)) << "no point of the curve's group";
}

/// FIPS 180-2, appendix B.1.
TEST(Libcrypto, sha256_of_two_pieces) {
    Hash hash;
    ASSERT_TRUE(library().hash(text_of("a"), text_of("bc"), hash));
    EXPECT_TRUE(std::ranges::equal(
        hash.bytes(),
        from_digits("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
}

/// As Python's module hmac has it.
TEST(Libcrypto, hkdf_as_another_implementation) {
    Secret chain;
    for (std::size_t n = 0; n < key_length; ++n) chain.room()[n] = static_cast<std::byte>(n);
    Secret second;
    Secret* const outputs[] = {&chain, &second};
    ASSERT_TRUE(hkdf(library(), chain, text_of("input"), outputs));
    const Secret expected[] = {
        secret_of("6652e076ecbcbe76627293d67fcc22d29dee719f3c185066ea867eaf1e6f4c47"),
        secret_of("5c709f4c8626825d850cc12e878c9ea7a08159016a009bc36b8109676b9c074b")};
    EXPECT_TRUE(std::ranges::equal(chain.bytes(), expected[0].bytes()));
    EXPECT_TRUE(std::ranges::equal(second.bytes(), expected[1].bytes()));
}

TEST(Libcrypto, seals_in_place_and_opens_in_place) {
    for (const CipherKind kind : {CipherKind::chacha20_poly1305, CipherKind::aes_256_gcm}) {
        const auto sealer = library().sealer(kind, secret_of(1));
        const auto opener = library().opener(kind, secret_of(1));
        ASSERT_TRUE(sealer && opener);
        for (const std::size_t length : {0U, 1U, 15U, 16U, 17U, 1400U, 65000U}) {
            Buffer bytes(length + tag_length, std::byte{7});
            const Room plain = std::span(bytes).first(length);
            ASSERT_TRUE(sealer->seal(length, text_of("header"), plain, bytes));
            if (length > 16) {
                EXPECT_NE(Buffer(plain.begin(), plain.end()), Buffer(length, std::byte{7}));
            }
            ASSERT_TRUE(opener->open(length, text_of("header"), bytes, plain));
            EXPECT_EQ(Buffer(plain.begin(), plain.end()), Buffer(length, std::byte{7}));
        }
    }
}

TEST(Libcrypto, a_secret_is_overwritten_when_it_goes) {
    alignas(Secret) std::byte room[sizeof(Secret)];
    Secret* const secret = new (room) Secret(secret_of(1));
    EXPECT_NE(room[0], std::byte{0});
    secret->~Secret();
    EXPECT_EQ(Buffer(room, room + sizeof room), Buffer(sizeof room));
}

}  // namespace
}  // namespace via::secure::libcrypto_test
