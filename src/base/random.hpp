// Seeded random numbers (SplitMix64). Seeds come from outside; nothing here asks the system.
#pragma once

#include <cstdint>

namespace via {

class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }

    /// Uniform in [0, bound); bound must not be 0. The bias of at most bound/2^64 is accepted.
    constexpr std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }

    /// Uniform in [low, high], both included.
    constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        const std::uint64_t count = high - low + 1;
        return count == 0 ? next() : low + below(count);  // 0: all there are
    }

    /// True `percent` times in a hundred.
    constexpr bool chance(std::uint64_t percent) { return below(100) < percent; }

private:
    std::uint64_t state_;
};

}  // namespace via
