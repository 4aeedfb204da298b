// Every message carries proof of which message it is, and every receiver's processor reads it: a
// figure for bytes that nobody wrote or nobody read would be worth nothing.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/link.hpp"

namespace via::bench {

// Word that message `i` carries; never 0.
inline std::uint64_t word_of(std::uint64_t i) { return i + 1; }

// Last byte of a message under eight bytes: differs from what its buffer, one of `count` (a power
// of two), held before; never 0.
inline std::uint8_t byte_of(std::uint64_t i, std::uint32_t count) {
    return static_cast<std::uint8_t>(1 + (i >> std::countr_zero(count)) % 255);
}

inline void store_word(std::byte* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

inline std::uint64_t load_word(const std::byte* from) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    return word;
}

// Writes the proof of message `i` into its buffer: the first and the last word.
inline void stamp(std::byte* buffer, std::uint64_t size, std::uint64_t i, std::uint32_t count) {
    if (size >= 8) {
        store_word(buffer, word_of(i));
        store_word(buffer + size - 8, word_of(i));
    } else if (size > 0) {
        buffer[size - 1] = std::byte{byte_of(i, count)};
    }
}

// Whether the end of message `i` is there. Good for spinning on: memory is read each time.
inline bool tail_arrived(const std::byte* buffer, std::uint64_t size, std::uint64_t i,
                         std::uint32_t count) {
    asm volatile("" ::: "memory");
    const bool there = size >= 8 ? load_word(buffer + size - 8) == word_of(i)
                                 : size == 0 || buffer[size - 1] == std::byte{byte_of(i, count)};
    if (there) std::atomic_thread_fence(std::memory_order_acquire);
    return there;
}

// Reads one word of every cache line, as an application that looks at its message would.
inline void read_payload(const std::byte* buffer, std::uint64_t size) {
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at + 8 <= size; at += 64) sum ^= load_word(buffer + at);
    asm volatile("" : : "r"(sum) : "memory");
}

// Reads message `i` and tells whether it is that message and whole. From 16 bytes on the first
// word counts too; below, the two words overlap.
inline bool read_and_check(const std::byte* buffer, std::uint64_t size, std::uint64_t i,
                           std::uint32_t count) {
    read_payload(buffer, size);
    if (size >= 16 && load_word(buffer) != word_of(i)) return false;
    return tail_arrived(buffer, size, i, count);
}

// Removes old proofs from a pool.
inline void wipe(const Pool& pool, std::uint64_t size) {
    for (std::uint32_t i = 0; i < pool.total(); ++i) {
        std::byte* const buffer = pool.buffer(i);
        if (size >= 8) {
            store_word(buffer, 0);
            store_word(buffer + size - 8, 0);
        } else if (size > 0) {
            buffer[size - 1] = std::byte{0};
        }
    }
}

// For checks of every byte: byte `at` of message `i` sent by side `from`.
inline std::byte pattern_byte(std::uint64_t at, std::uint64_t i, std::size_t from) {
    const std::uint64_t mixed = (at ^ at >> 8 ^ at >> 16) * 167 + i * 59 + from * 97 + 13;
    return static_cast<std::byte>(mixed & 0xff);
}

// What a receive buffer holds before a message that is checked whole.
inline constexpr std::byte untouched_byte{0xa5};

inline void fill(std::byte* buffer, std::uint64_t size, std::uint64_t i, std::size_t from) {
    for (std::uint64_t at = 0; at < size; ++at) buffer[at] = pattern_byte(at, i, from);
}

// Index of the first byte of the buffer that is neither the message's nor untouched behind it;
// `stride` when all is well. Makes the buffer untouched again.
inline std::uint64_t first_wrong_byte(std::byte* buffer, std::uint64_t size, std::uint64_t stride,
                                      std::uint64_t i, std::size_t from) {
    std::uint64_t at = 0;
    while (at < size && buffer[at] == pattern_byte(at, i, from)) ++at;
    if (at == size) {
        while (at < stride && buffer[at] == untouched_byte) ++at;
    }
    std::memset(buffer, std::to_integer<int>(untouched_byte), stride);
    return at;
}

}  // namespace via::bench
