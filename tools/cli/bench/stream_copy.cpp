#include "bench/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace via::bench {

namespace {

void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}

#if defined(__x86_64__)

// Bytes until `to` is aligned to `width`, at most `bytes`.
std::size_t head_of(const std::byte* to, std::size_t width, std::size_t bytes) {
    const std::size_t head = (width - reinterpret_cast<std::uintptr_t>(to) % width) % width;
    return head < bytes ? head : bytes;
}

void copy_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
    const std::size_t head = head_of(to, 16, bytes);
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        const auto* source = reinterpret_cast<const __m128i*>(from + at);
        auto* target = reinterpret_cast<__m128i*>(to + at);
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to + at, from + at, bytes - at);
    _mm_sfence();
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t bytes) {
    const std::size_t head = head_of(to, 32, bytes);
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        const auto* source = reinterpret_cast<const __m256i*>(from + at);
        auto* target = reinterpret_cast<__m256i*>(to + at);
        const __m256i a = _mm256_loadu_si256(source);
        const __m256i b = _mm256_loadu_si256(source + 1);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
    }
    std::memcpy(to + at, from + at, bytes - at);
    _mm_sfence();
}

__attribute__((target("avx512f"))) void copy_avx512(std::byte* to, const std::byte* from,
                                                    std::size_t bytes) {
    const std::size_t head = head_of(to, 64, bytes);
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        const __m512i a = _mm512_loadu_si512(from + at);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), a);
    }
    std::memcpy(to + at, from + at, bytes - at);
    _mm_sfence();
}

#endif

}  // namespace

std::vector<Copy> available_copies() {
    std::vector<Copy> copies{Copy::plain};
#if defined(__x86_64__)
    copies.push_back(Copy::sse2);
    if (__builtin_cpu_supports("avx2")) copies.push_back(Copy::avx2);
    if (__builtin_cpu_supports("avx512f")) copies.push_back(Copy::avx512);
#endif
    return copies;
}

CopyFunction function_of(Copy copy) {
    switch (copy) {
#if defined(__x86_64__)
        case Copy::sse2:
            return copy_sse2;
        case Copy::avx2:
            return copy_avx2;
        case Copy::avx512:
            return copy_avx512;
#endif
        default:
            return copy_plain;
    }
}

std::string_view name_of(Copy copy) {
    switch (copy) {
        case Copy::plain:
            return "memcpy";
        case Copy::sse2:
            return "SSE2 streaming stores";
        case Copy::avx2:
            return "AVX2 streaming stores";
        case Copy::avx512:
            return "AVX-512 streaming stores";
    }
    return "?";
}

}  // namespace via::bench
