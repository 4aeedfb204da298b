// Numbers that are the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conformance {

/// A small generator (splitmix64).
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t word = state_ += 0x9E3779B97F4A7C15U;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9U;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBU;
        return word ^ (word >> 31);
    }
    /// From 0 to bound - 1.
    std::size_t below(std::size_t bound) { return next() % bound; }

private:
    std::uint64_t state_;
};

}  // namespace conformance
