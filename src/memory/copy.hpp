// The two ways bytes move: out of registered memory into a device's slot (gather), and out of a
// frame into registered memory (place); and how a word of it is changed in one step (change).
// Extents were checked by the table before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace via::memory {

void place_any(std::byte* target, const std::byte* source, std::size_t length);
void gather_any(std::byte* slot, const std::byte* source, std::size_t length, bool stream);

/// Writes received bytes to their place. Lower addresses become visible no later than the last
/// aligned word, which is one store (VIPL 4.24; memcpy shows tails before bodies).
/// `source` may lie in memory that a peer changes meanwhile; each byte of it is read once.
[[gnu::always_inline]] inline void place(std::byte* target, const std::byte* source,
                                         std::size_t length) {
    constexpr std::size_t few = 5;
    constexpr std::size_t word_length = sizeof(std::uint64_t);
    const auto place_word = [=](std::size_t at) {
        std::uint64_t word;
        std::memcpy(&word, source + at, sizeof word);
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(target + at), word, __ATOMIC_RELEASE);
    };
    if (length > few * word_length ||
        (reinterpret_cast<std::uintptr_t>(target) | length) % word_length != 0)
        return place_any(target, source, length);
    // A message is often one word, or a few with what a library puts in front of it.
    if (length == word_length) return place_word(0);
    for (std::size_t at = 0; at != length; at += word_length) place_word(at);
}

/// What is done to a word of registered memory: one step for everybody who changes it by atomic
/// instructions, the program's own threads and other processes that have it included.
struct WordChange {
    bool adds = false;          ///< false: compares and swaps
    std::uint64_t operand = 0;  ///< what is added, or expected there
    std::uint64_t desired = 0;  ///< what shall be there, if what is expected is
};

/// Returns the word as it was. `target` is a multiple of 8.
inline std::uint64_t change(std::uint64_t target, const WordChange& how) {
    auto* const word = reinterpret_cast<std::uint64_t*>(target);
    if (how.adds) return __atomic_fetch_add(word, how.operand, __ATOMIC_SEQ_CST);
    std::uint64_t was = how.operand;
    __atomic_compare_exchange_n(word, &was, how.desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return was;
}

/// Fills a device's slot. `stream` stores past the cache where the processor can: right for large
/// payloads that another core reads next. The device fences before it publishes. Of no bytes,
/// either place may be null.
[[gnu::always_inline]] inline void gather(std::byte* slot, const std::byte* source,
                                          std::size_t length, bool stream) {
    if (length != sizeof(std::uint64_t)) return gather_any(slot, source, length, stream);
    std::memcpy(slot, source, sizeof(std::uint64_t));
}

/// Which streaming stores gather() uses here: "avx512", "avx2", "sse2" or "none".
const char* streaming_stores();

}  // namespace via::memory
