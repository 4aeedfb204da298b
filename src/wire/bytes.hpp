// Numbers in packets and frames, at any address. The wire is little-endian, and so are we.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

namespace via::wire {

static_assert(std::endian::native == std::endian::little);

template <class T>
void put(std::byte* bytes, T value) {
    std::memcpy(bytes, &value, sizeof value);
}

template <class T>
T get(const std::byte* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

}  // namespace via::wire
