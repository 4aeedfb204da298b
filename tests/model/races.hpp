#pragma once
// Finds data races: two accesses to a byte by different threads, one of them a write, not both
// atomic, neither of which happens before the other.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "clock.hpp"

namespace via::model {

enum class Touch : std::uint8_t { plain_read, plain_write, atomic_read, atomic_write };

class Races {
public:
    void reset();
    // Notes the access. True if it races with an earlier one, which describe() then tells.
    bool touch(unsigned thread, const void* at, std::size_t bytes, Touch touch,
               const SyncClock& clock);
    const std::string& describe() const { return description_; }

private:
    // The time of each thread's latest access of each kind; 0 is never.
    struct Byte {
        std::array<std::array<std::uint16_t, max_threads>, 4> time{};
    };
    struct Word {
        unsigned run = 0;  // the execution to which the bytes belong
        std::array<Byte, 8> bytes{};
    };

    std::unordered_map<std::uintptr_t, Word> words_;
    unsigned run_ = 1;
    std::string description_;
};

}  // namespace via::model
