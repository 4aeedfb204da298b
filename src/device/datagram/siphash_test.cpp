#include "device/datagram/siphash.hpp"

#include <gtest/gtest.h>

namespace via::device::datagram::siphash_test {
namespace {

/// Of the paper's appendix A and of its authors' table: key 00 01 .. 0f, message 00 01 ...
TEST(Siphash, reference) {
    const HashKey key{0x0706050403020100ULL, 0x0F0E0D0C0B0A0908ULL};
    std::byte message[16];
    for (int n = 0; n < 16; ++n) message[n] = static_cast<std::byte>(n);
    const std::span<const std::byte> bytes(message);
    EXPECT_EQ(siphash(key, bytes.first(0)), 0x726FDB47DD0E0E31ULL);
    EXPECT_EQ(siphash(key, bytes.first(1)), 0x74F839C593DC67FDULL);
    EXPECT_EQ(siphash(key, bytes.first(8)), 0x93F5F5799A932462ULL);
    EXPECT_EQ(siphash(key, bytes.first(15)), 0xA129CA6149BE45E5ULL);
}

}  // namespace
}  // namespace via::device::datagram::siphash_test
