#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "wire/packet.hpp"

namespace via::wire {
namespace {

std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t length) {
    Random random(seed);
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    return bytes;
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
    std::string rising;
    for (int value = 0; value < 32; ++value) rising.push_back(static_cast<char>(value));
    for (const auto sum : {crc32c, crc32c_by_table}) {
        const auto of = [&](const std::string& text) {
            return sum(std::as_bytes(std::span(text)));
        };
        EXPECT_EQ(of(""), 0U);
        EXPECT_EQ(of("123456789"), 0xE3069283U);
        EXPECT_EQ(of(std::string(32, '\0')), 0x8A9136AAU);
        EXPECT_EQ(of(std::string(32, '\xFF')), 0x62A8AB43U);
        EXPECT_EQ(of(rising), 0x46DD794EU);
    }
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
    for (std::size_t length = 0; length < 3500; ++length) {
        const std::vector<std::byte> exact = random_bytes(length, length);
        ASSERT_EQ(crc32c(exact), crc32c_by_table(exact)) << length;
    }
    const std::vector<std::byte> longest = random_bytes(1, packet_length_max);
    for (std::size_t from = 0; from < 9; ++from) {
        const auto part = std::span(longest).subspan(from);
        EXPECT_EQ(crc32c(part), crc32c_by_table(part)) << from;
    }
}

}  // namespace
}  // namespace via::wire
