// What an event of the wait handle is about.
#pragma once

#include <cstdint>

namespace via::device::shm {

enum class Watched : std::uint64_t { listener, handshake, socket, process };

/// 2 bits kind, 30 bits serial (tells later users of an index apart), 32 bits path or handshake.
constexpr std::uint64_t make_key(Watched kind, std::uint32_t serial, std::uint32_t index) {
    return static_cast<std::uint64_t>(kind) << 62 | std::uint64_t{serial & 0x3FFFFFFF} << 32 |
           index;
}
constexpr Watched key_kind(std::uint64_t key) { return static_cast<Watched>(key >> 62); }
constexpr std::uint32_t key_index(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

}  // namespace via::device::shm
