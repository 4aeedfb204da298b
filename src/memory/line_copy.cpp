#include "memory/line_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace via::memory {

namespace {

// Two runs in different pages keep two of the processor's streams of prefetches busy, and with them
// twice as many lines under way: that is what a copy from another core's cache waits for.
constexpr std::size_t run_max = 4096;  ///< bytes: prefetches end with the page

/// Under two lines. A memcpy of so few becomes an instruction that first waits for all stores.
void copy_few(std::byte* to, const std::byte* from, std::size_t length) {
    const auto part = [&]<std::size_t bytes>() {
        if ((length & bytes) == 0) return;
        std::memcpy(to, from, bytes);
        to += bytes;
        from += bytes;
    };
    part.template operator()<64>();
    part.template operator()<32>();
    part.template operator()<16>();
    part.template operator()<8>();
    part.template operator()<4>();
    part.template operator()<2>();
    part.template operator()<1>();
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void past_avx512(std::byte* to, const std::byte* from,
                                                    std::size_t lines, std::size_t apart) {
    const auto copy = [](std::byte* target, const std::byte* source)
                          __attribute__((target("avx512f"), always_inline)) {
                              const __m512i bytes = _mm512_loadu_si512(source);
                              _mm512_stream_si512(reinterpret_cast<__m512i*>(target), bytes);
                          };
    for (; lines != 0; --lines, to += line_bytes, from += line_bytes) {
        copy(to, from);
        copy(to + apart, from + apart);
    }
}

__attribute__((target("avx2"))) void past_avx2(std::byte* to, const std::byte* from,
                                               std::size_t lines, std::size_t apart) {
    const auto copy = [](std::byte* target, const std::byte* source)
                          __attribute__((target("avx2"), always_inline)) {
                              auto* at = reinterpret_cast<__m256i*>(target);
                              const auto* bytes = reinterpret_cast<const __m256i*>(source);
                              const __m256i low = _mm256_loadu_si256(bytes);
                              const __m256i high = _mm256_loadu_si256(bytes + 1);
                              _mm256_stream_si256(at, low);
                              _mm256_stream_si256(at + 1, high);
                          };
    for (; lines != 0; --lines, to += line_bytes, from += line_bytes) {
        copy(to, from);
        copy(to + apart, from + apart);
    }
}

void past_sse2(std::byte* to, const std::byte* from, std::size_t lines, std::size_t apart) {
    const auto copy = [](std::byte* target, const std::byte* source) {
        for (std::size_t part = 0; part < line_bytes; part += 16)
            _mm_stream_si128(reinterpret_cast<__m128i*>(target + part),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + part)));
    };
    for (; lines != 0; --lines, to += line_bytes, from += line_bytes) {
        copy(to, from);
        copy(to + apart, from + apart);
    }
}

constexpr LineCopy all[] = {{"avx512", past_avx512}, {"avx2", past_avx2}, {"sse2", past_sse2}};
#endif

}  // namespace

std::span<const LineCopy> line_copies() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return std::span(all);
    if (__builtin_cpu_supports("avx2")) return std::span(all).subspan(1);
    return std::span(all).subspan(2);
#else
    return {};
#endif
}

void copy_by(TwoRuns runs, std::byte* to, const std::byte* from, std::size_t length) {
    const std::size_t skew = -reinterpret_cast<std::uintptr_t>(to) & (line_bytes - 1);
    const std::size_t head = std::min(skew, length);
    copy_few(to, from, head);
    std::size_t done = head;
    // What is left behind the runs is not foreseen by the processor, and would be waited for.
    const std::size_t rest = (length - head) % (2 * line_bytes);
    for (std::size_t back = 0; back < rest; back += line_bytes)
        __builtin_prefetch(from + length - 1 - back);
    while (length - done >= 2 * line_bytes) {
        const std::size_t run = std::min((length - done) / 2 & ~(line_bytes - 1), run_max);
        runs(to + done, from + done, run / line_bytes, run);
        done += 2 * run;
    }
    copy_few(to + done, from + done, length - done);
}

}  // namespace via::memory
