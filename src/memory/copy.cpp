#include "memory/copy.hpp"

#include <cstring>

#include "base/atomic.hpp"
#include "memory/line_copy.hpp"

namespace via::memory {

namespace {

/// Stores the last `tail` bytes (1, 2, 4 or 8, aligned at the target) with one instruction.
void store_word(std::byte* target, const std::byte* source, std::size_t tail) {
    switch (tail) {
        case 8: {
            std::uint64_t word;
            std::memcpy(&word, source, 8);
            __atomic_store_n(reinterpret_cast<std::uint64_t*>(target), word, __ATOMIC_RELAXED);
            return;
        }
        case 4: {
            std::uint32_t word;
            std::memcpy(&word, source, 4);
            __atomic_store_n(reinterpret_cast<std::uint32_t*>(target), word, __ATOMIC_RELAXED);
            return;
        }
        case 2: {
            std::uint16_t word;
            std::memcpy(&word, source, 2);
            __atomic_store_n(reinterpret_cast<std::uint16_t*>(target), word, __ATOMIC_RELAXED);
            return;
        }
        default:
            __atomic_store_n(reinterpret_cast<unsigned char*>(target),
                             *reinterpret_cast<const unsigned char*>(source), __ATOMIC_RELAXED);
    }
}

/// Bytes of the largest aligned word that ends where the target ends.
std::size_t last_word(const std::byte* end, std::size_t length) {
    const auto address = reinterpret_cast<std::uintptr_t>(end);
    const std::size_t aligned = address & (~address + 1);  // lowest set bit
    std::size_t word = aligned == 0 || aligned > 8 ? 8 : aligned;
    while (word > length) word /= 2;
    return word;
}

const std::span<const LineCopy> choices = line_copies();
const TwoRuns runs_past = choices.empty() ? nullptr : choices.front().past;

}  // namespace

void place_any(std::byte* target, const std::byte* source, std::size_t length) {
    if (length == 0) return;
    const std::size_t tail = last_word(target + length, length);
    const std::size_t body = length - tail;
    if (body != 0) {
        std::memcpy(target, source, body);
        atomic_fence(std::memory_order_release);
    }
    store_word(target + body, source + body, tail);
}

void gather_any(std::byte* slot, const std::byte* source, std::size_t length, bool stream) {
    if (length == 0) return;  // either place may be null then, which memcpy forbids
    if (stream && runs_past != nullptr)
        copy_by(runs_past, slot, source, length);
    else
        std::memcpy(slot, source, length);
}

const char* streaming_stores() { return choices.empty() ? "none" : choices.front().name; }

}  // namespace via::memory
