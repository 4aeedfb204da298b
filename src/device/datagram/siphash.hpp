// SipHash-2-4 (Aumasson and Bernstein, 2012): a hash that nobody without the key can foretell.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace via::device::datagram {

using HashKey = std::array<std::uint64_t, 2>;

std::uint64_t siphash(const HashKey& key, std::span<const std::byte> bytes);

}  // namespace via::device::datagram
