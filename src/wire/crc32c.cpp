// CRC32C, the checksum of iSCSI, SCTP and ext4 (polynomial 0x1EDC6F41, reflected). Debian has no
// library of it; a processor's own instruction does 8 bytes in each step.
#include <array>

#include "wire/bytes.hpp"
#include "wire/packet.hpp"

namespace via::wire {

namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;

/// What one byte makes of the sum.
constexpr std::array<std::uint32_t, 256> byte_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t value = 0; value < 256; ++value) {
        std::uint32_t sum = value;
        for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? polynomial : 0);
        table[value] = sum;
    }
    return table;
}();

std::uint32_t extend_by_table(std::uint32_t sum, const std::byte* at, std::size_t length) {
    for (; length != 0; --length, ++at)
        sum = (sum >> 8) ^ byte_table[(sum ^ static_cast<std::uint32_t>(*at)) & 255];
    return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t extend_by_instruction(std::uint32_t sum,
                                                                      const std::byte* at,
                                                                      std::size_t length) {
    std::uint64_t wide = sum;
    for (; length >= 8; length -= 8, at += 8)
        wide = __builtin_ia32_crc32di(wide, get<std::uint64_t>(at));
    sum = static_cast<std::uint32_t>(wide);
    for (; length != 0; --length, ++at)
        sum = __builtin_ia32_crc32qi(sum, static_cast<std::uint8_t>(*at));
    return sum;
}

const auto extend = __builtin_cpu_supports("sse4.2") != 0 ? extend_by_instruction : extend_by_table;
#else
constexpr auto extend = extend_by_table;
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
    return ~extend(~std::uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace via::wire
