#include "memory/copy.hpp"

#include <cstring>

#include "base/atomic.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)
constexpr std::size_t line = 64;

__attribute__((target("avx512f"))) void stream_avx512(std::byte* to, const std::byte* from,
                                                      std::size_t lines) {
    for (; lines != 0; --lines, to += line, from += line)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to),
                            _mm512_loadu_si512(reinterpret_cast<const void*>(from)));
}

__attribute__((target("avx2"))) void stream_avx2(std::byte* to, const std::byte* from,
                                                 std::size_t lines) {
    for (; lines != 0; --lines, to += line, from += line)
        for (std::size_t part = 0; part < line; part += 32)
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + part),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + part)));
}

void stream_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
    for (; lines != 0; --lines, to += line, from += line)
        for (std::size_t part = 0; part < line; part += 16)
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
}

using Streamer = void (*)(std::byte*, const std::byte*, std::size_t);

struct Choice {
    Streamer stream;
    const char* name;
};

Choice choose() {
    if (__builtin_cpu_supports("avx512f")) return {stream_avx512, "avx512"};
    if (__builtin_cpu_supports("avx2")) return {stream_avx2, "avx2"};
    return {stream_sse2, "sse2"};
}

const Choice choice = choose();
#endif

}  // namespace

void place(std::byte* target, const std::byte* source, std::size_t length) {
    if (length == 0) return;
    const std::size_t tail = last_word(target + length, length);
    const std::size_t body = length - tail;
    if (body != 0) {
        std::memcpy(target, source, body);
        atomic_fence(std::memory_order_release);
    }
    store_word(target + body, source + body, tail);
}

void gather(std::byte* slot, const std::byte* source, std::size_t length, bool stream) {
    if (length == 0) return;  // either place may be null then, which memcpy forbids
#if defined(__x86_64__)
    if (stream) {
        const std::size_t skew = -reinterpret_cast<std::uintptr_t>(slot) & (line - 1);
        const std::size_t head = skew < length ? skew : length;
        std::memcpy(slot, source, head);
        const std::size_t lines = (length - head) / line;
        choice.stream(slot + head, source + head, lines);
        const std::size_t done = head + lines * line;
        std::memcpy(slot + done, source + done, length - done);
        return;
    }
#else
    (void)stream;
#endif
    std::memcpy(slot, source, length);
}

const char* streaming_stores() {
#if defined(__x86_64__)
    return choice.name;
#else
    return "none";
#endif
}

}  // namespace via::memory
