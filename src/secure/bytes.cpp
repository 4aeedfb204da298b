#include <algorithm>
#include <cstring>

#include "secure/crypto.hpp"

namespace via::secure {

void erase(Room room) {
    if (room.empty()) return;
    std::memset(room.data(), 0, room.size());
    // The bytes count as read, or the compiler would leave the stores out.
    asm volatile("" : : "r"(room.data()) : "memory");
}

bool is_same(Bytes one, Bytes other) {
    if (one.size() != other.size()) return false;
    std::byte difference{0};
    for (std::size_t n = 0; n < one.size(); ++n) difference |= one[n] ^ other[n];
    return difference == std::byte{0};
}

Secret::Secret(std::span<const std::byte, key_length> bytes) {
    std::ranges::copy(bytes, bytes_.begin());
}

}  // namespace via::secure
