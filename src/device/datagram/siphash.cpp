#include "device/datagram/siphash.hpp"

#include <bit>
#include <cstring>

namespace via::device::datagram {

namespace {

struct State {
    std::uint64_t v0, v1, v2, v3;

    void round() {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    }
    void take(std::uint64_t word) {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
};

}  // namespace

std::uint64_t siphash(const HashKey& key, std::span<const std::byte> bytes) {
    State state{key[0] ^ 0x736F6D6570736575ULL, key[1] ^ 0x646F72616E646F6DULL,
                key[0] ^ 0x6C7967656E657261ULL, key[1] ^ 0x7465646279746573ULL};
    const std::uint64_t length = bytes.size();
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data(), 8);
        state.take(word);
    }
    std::uint64_t last = length << 56;
    for (std::size_t n = 0; n < bytes.size(); ++n)
        last |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[n])} << (8 * n);
    state.take(last);
    state.v2 ^= 0xFF;
    for (int n = 0; n < 4; ++n) state.round();
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace via::device::datagram
