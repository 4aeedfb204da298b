#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "wire/packet.hpp"

namespace via::wire::crc32c_test {
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

TEST(Crc32c, IsThatOfTheCopyWhichItMakes) {
    constexpr std::size_t room = 3500 + 16;
    for (std::size_t length = 0; length < 3500; ++length) {
        const std::vector<std::byte> exact = random_bytes(length, length);
        // Of exactly this length and at every alignment, for the address sanitizer.
        std::vector<std::byte> to(length % 8 + length);
        const std::span<std::byte> copy = std::span(to).subspan(length % 8);
        ASSERT_EQ(crc32c_copy(7, exact, copy.data(), length * 8), crc32c(7, exact)) << length;
        ASSERT_TRUE(std::equal(exact.begin(), exact.end(), copy.begin())) << length;
        std::vector<std::byte> wide(room, std::byte{0x5A});
        crc32c_copy(7, exact, wide.data() + 8);
        for (std::size_t n = 0; n < 8; ++n) {
            ASSERT_EQ(wide[n], std::byte{0x5A}) << "nothing before it, " << length;
            ASSERT_EQ(wide[8 + length + n], std::byte{0x5A}) << "nor behind it, " << length;
        }
    }
}

/// What lies before the bytes is masked; where it has no page there is another way.
TEST(Crc32c, LooksAtNothingBeforeTheBytes) {
    constexpr std::size_t page = 4096;
    auto* const pages = static_cast<std::byte*>(
        ::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
    ASSERT_EQ(::mprotect(pages, page, PROT_NONE), 0);
    ASSERT_EQ(::mprotect(pages + 3 * page, page, PROT_NONE), 0);
    std::byte* const begin = pages + page;
    const std::vector<std::byte> bytes = random_bytes(2, 2 * page);
    std::copy(bytes.begin(), bytes.end(), begin);
    for (std::size_t before = 0; before < 300; before += 3)
        for (const std::size_t length :
             {0U, 1U, 7U, 191U, 192U, 250U, 255U, 256U, 257U, 512U, 1000U, 1400U, 1408U, 4099U}) {
            const std::span<const std::byte> part{begin + before, length};
            const std::uint32_t expected = crc32c_by_table(part);
            ASSERT_EQ(crc32c(part), expected) << before << ", " << length;
            std::vector<std::byte> copy(length);
            ASSERT_EQ(crc32c_copy(0, part, copy.data()), expected) << before << ", " << length;
            ASSERT_TRUE(std::equal(copy.begin(), copy.end(), part.begin()));
        }
    // The last bytes that there are.
    const std::span<const std::byte> last{begin + 2 * page - 1400, 1400};
    EXPECT_EQ(crc32c(last), crc32c_by_table(last));
    EXPECT_EQ(crc32c_copy(0, last, begin), crc32c_by_table(last)) << "to where a page begins";
    EXPECT_EQ(::munmap(pages, 4 * page), 0);
}

}  // namespace
}  // namespace via::wire::crc32c_test
