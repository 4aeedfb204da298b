// CRC32C, the checksum of iSCSI, SCTP and ext4 (polynomial 0x1EDC6F41, bits reflected). Debian has
// no library of it, and processors have an instruction for 8 bytes in each step. A step waits for
// the one before it, so three thirds of the bytes are summed beside each other: a sum that L zero
// bytes were to follow is the sum times x^8L modulo the polynomial. By the same rule processors
// that multiply in vectors fold 256 bytes into the next 256, which is faster still.
#include <array>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/packet.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

namespace via::wire {

namespace {

constexpr std::uint32_t polynomial = 0x82F63B78;

constexpr std::uint32_t times_x(std::uint32_t value) {
    return (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
}

/// x^places.
constexpr std::uint32_t power_of_x(int places) {
    std::uint32_t power = 0x80000000;
    for (; places != 0; --places) power = times_x(power);
    return power;
}

/// What one byte makes of the sum.
constexpr std::array<std::uint32_t, 256> byte_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t value = 0; value < 256; ++value) {
        table[value] = value;
        for (int bit = 0; bit < 8; ++bit) table[value] = times_x(table[value]);
    }
    return table;
}();

std::uint32_t extend_by_table(std::uint32_t sum, const std::byte* at, std::size_t length) {
    for (; length != 0; --length, ++at)
        sum = (sum >> 8) ^ byte_table[(sum ^ static_cast<std::uint32_t>(*at)) & 255];
    return sum;
}

#if defined(__x86_64__)

/// Words of each third, at most; of fewer than the least, a single sum is as fast.
constexpr std::size_t third_max = 64;
constexpr std::size_t third_least = 4;

/// x^(64n - 33) for n words: what the product's own 33 places complete.
constexpr std::array<std::uint32_t, 2 * third_max + 1> powers = [] {
    std::array<std::uint32_t, 2 * third_max + 1> table{};
    std::uint32_t power = power_of_x(31);
    for (std::size_t words = 1; words < table.size(); ++words) {
        table[words] = power;
        for (int place = 0; place < 64; ++place) power = times_x(power);
    }
    return table;
}();

#define VIA_WITH_CRC32 __attribute__((target("sse4.2,pclmul")))

VIA_WITH_CRC32 inline std::uint64_t times(std::uint64_t sum, std::uint32_t power) {
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(sum)),
                                               _mm_cvtsi32_si128(static_cast<int>(power)), 0)));
}

VIA_WITH_CRC32 std::uint32_t extend_by_instruction(std::uint32_t sum, const std::byte* at,
                                                   std::size_t length) {
    // First what is no word: in packets the words behind it are fields, or two of them, and a
    // processor that reads what it just wrote as it wrote it need not wait.
    for (; length % 4 != 0; --length, ++at) sum = _mm_crc32_u8(sum, get<std::uint8_t>(at));
    if (length % 8 != 0) {
        sum = _mm_crc32_u32(sum, get<std::uint32_t>(at));
        length -= 4;
        at += 4;
    }
    std::uint64_t first = sum;
    while (length >= 24 * third_least) {
        const std::size_t words = length / 24 < third_max ? length / 24 : third_max;
        const std::byte* const end = at + 8 * words;
        std::uint64_t second = 0;
        std::uint64_t third = 0;
        for (; at != end; at += 8) {
            first = _mm_crc32_u64(first, get<std::uint64_t>(at));
            second = _mm_crc32_u64(second, get<std::uint64_t>(at + 8 * words));
            third = _mm_crc32_u64(third, get<std::uint64_t>(at + 16 * words));
        }
        first = third ^
                _mm_crc32_u64(0, times(first, powers[2 * words]) ^ times(second, powers[words]));
        at += 16 * words;
        length -= 24 * words;
    }
    for (; length != 0; length -= 8, at += 8) first = _mm_crc32_u64(first, get<std::uint64_t>(at));
    return static_cast<std::uint32_t>(first);
}

bool has_instruction() {
    return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}

#define VIA_WITH_VECTORS __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))

constexpr std::size_t vector_bytes = 64;
constexpr std::size_t vectors = 4;  ///< beside each other

/// For each 16 bytes, their halves' factors when the fold ends `bytes` further on; the product of
/// two reflected values is x times what it should be.
VIA_WITH_VECTORS inline __m512i factors(const std::array<std::uint32_t, 2>& powers_of_x) {
    const auto first = static_cast<std::int64_t>(std::uint64_t{powers_of_x[0]} << 32);
    const auto second = static_cast<std::int64_t>(std::uint64_t{powers_of_x[1]} << 32);
    return _mm512_set_epi64(second, first, second, first, second, first, second, first);
}
template <std::size_t bytes>
constexpr std::array<std::uint32_t, 2> fold_powers{power_of_x(8 * int{bytes} + 63),
                                                   power_of_x(8 * int{bytes} - 1)};

VIA_WITH_VECTORS inline __m512i fold(__m512i sum, __m512i by, __m512i onto) {
    constexpr int xor_of_three = 0x96;
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, by, 0x00),
                                     _mm512_clmulepi64_epi128(sum, by, 0x11), onto, xor_of_three);
}

/// Words of the first step, each a bit: where the bytes begin that it is filled with. What stands
/// before them counts as zeros, and those change no sum; so nothing is left behind the last step.
struct FirstStep {
    std::ptrdiff_t at;  ///< of its first byte, perhaps before all that may be read
    std::uint64_t words;
    std::uint64_t first_word;
    std::uint32_t before;  ///< the sum so far, which goes into the first word
};

/// Bytes that are read once, and copied to `to`, or not.
template <bool copies>
struct Source {
    const std::byte* from;
    std::byte* to;
    std::size_t ahead;  ///< so far ahead of those that are read more will be, or 0

    VIA_WITH_VECTORS __m512i load(std::ptrdiff_t at) const {
        const __m512i value = _mm512_loadu_si512(from + at);
        if constexpr (copies) {
            _mm_prefetch(from + at + ahead, _MM_HINT_T0);
            _mm512_storeu_si512(to + at, value);
        }
        return value;
    }
    VIA_WITH_VECTORS __m512i load_first(const FirstStep& step, unsigned n) const {
        const unsigned shift = 16 * n;
        const std::ptrdiff_t at = step.at + static_cast<std::ptrdiff_t>(n * vector_bytes);
        const auto there = static_cast<__mmask16>(step.words >> shift);
        const auto first = static_cast<__mmask16>(step.first_word >> shift);
        const __m512i value = _mm512_maskz_loadu_epi32(there, from + at);
        if constexpr (copies) _mm512_mask_storeu_epi32(to + at, there, value);
        return _mm512_xor_si512(
            value, _mm512_maskz_set1_epi32(first, static_cast<std::int32_t>(step.before)));
    }
    template <class Value>
    Value take(std::ptrdiff_t at) const {
        const auto value = get<Value>(from + at);
        if constexpr (copies) put(to + at, value);
        return value;
    }
    VIA_WITH_VECTORS std::uint32_t add_byte(std::uint32_t sum, std::ptrdiff_t at) const {
        return _mm_crc32_u8(sum, take<std::uint8_t>(at));
    }
    VIA_WITH_VECTORS std::uint32_t add_word(std::uint32_t sum, std::ptrdiff_t at) const {
        return _mm_crc32_u32(sum, take<std::uint32_t>(at));
    }
    /// Do so many bytes before `at` lie in another page? What is masked there is no fault, but
    /// where there is no page a processor takes as long to find that out as for kilobytes.
    bool leaves_page(std::ptrdiff_t at, std::ptrdiff_t before) const {
        const auto leaves = [&](const std::byte* bytes) {
            return (reinterpret_cast<std::uintptr_t>(bytes + at) & 4095) <
                   static_cast<std::uintptr_t>(before);
        };
        return leaves(from) || (copies && leaves(to));
    }
};

/// Where the bytes are fewer, the vectors' beginning and end cost more than they spare.
constexpr std::size_t vectors_least = 192;

/// Of at least `vectors_least` bytes.
template <bool copies>
VIA_WITH_VECTORS std::uint32_t extend_by_vectors(std::uint32_t sum, Source<copies> source,
                                                 std::ptrdiff_t length) {
    constexpr std::ptrdiff_t step = vectors * vector_bytes;
    std::ptrdiff_t at = 0;
    for (; (length - at) % 4 != 0; ++at) sum = source.add_byte(sum, at);
    std::ptrdiff_t zeros = (step - (length - at) % step) % step;
    if (source.leaves_page(at, zeros)) {
        for (; (length - at) % step != 0; at += 4) sum = source.add_word(sum, at);
        if (at == length) return sum;
        zeros = 0;
    }
    const FirstStep first{at - zeros, ~std::uint64_t{0} << zeros / 4, std::uint64_t{1} << zeros / 4,
                          sum};
    __m512i a = source.load_first(first, 0);
    __m512i b = source.load_first(first, 1);
    __m512i c = source.load_first(first, 2);
    __m512i d = source.load_first(first, 3);
    const __m512i far = factors(fold_powers<step>);
    for (at = first.at + step; at != length; at += step) {
        constexpr std::ptrdiff_t next = vector_bytes;
        a = fold(a, far, source.load(at));
        b = fold(b, far, source.load(at + next));
        c = fold(c, far, source.load(at + 2 * next));
        d = fold(d, far, source.load(at + 3 * next));
    }
    c = fold(a, factors(fold_powers<2 * vector_bytes>), c);
    d = fold(b, factors(fold_powers<2 * vector_bytes>), d);
    d = fold(c, factors(fold_powers<vector_bytes>), d);
    // What is left is as long as a vector and has the same sum as all that was folded.
    std::byte rest[vector_bytes];
    _mm512_storeu_si512(rest, d);
    _mm256_zeroupper();  // else what follows, in this program, goes on slowly; compilers forget it
    std::uint64_t last = 0;
    for (std::size_t n = 0; n < vector_bytes; n += 8)
        last = _mm_crc32_u64(last, get<std::uint64_t>(rest + n));
    return static_cast<std::uint32_t>(last);
}

bool has_vectors() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

std::uint32_t extend_by_either(std::uint32_t sum, const std::byte* at, std::size_t length) {
    if (length < vectors_least) return extend_by_instruction(sum, at, length);
    return extend_by_vectors<false>(sum, {at, nullptr, 0}, static_cast<std::ptrdiff_t>(length));
}

#elif defined(__aarch64__)

__attribute__((target("+crc"))) std::uint32_t extend_by_instruction(std::uint32_t sum,
                                                                    const std::byte* at,
                                                                    std::size_t length) {
    for (; length >= 8; length -= 8, at += 8) sum = __crc32cd(sum, get<std::uint64_t>(at));
    for (; length != 0; --length, ++at) sum = __crc32cb(sum, static_cast<std::uint8_t>(*at));
    return sum;
}

/// Linux lets programs read this register.
bool has_instruction() {
    std::uint64_t features = 0;
    asm("mrs %0, ID_AA64ISAR0_EL1" : "=r"(features));
    return (features >> 16 & 15) != 0;
}

#else

constexpr auto extend_by_instruction = extend_by_table;
bool has_instruction() { return false; }

#endif

using Extend = std::uint32_t (*)(std::uint32_t sum, const std::byte* at, std::size_t length);
const Extend extend = [] {
#if defined(__x86_64__)
    if (has_instruction() && has_vectors()) return Extend{extend_by_either};
#endif
    return has_instruction() ? Extend{extend_by_instruction} : Extend{extend_by_table};
}();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
    return ~extend(~std::uint32_t{0}, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::uint32_t sum, std::span<const std::byte> bytes) {
    return ~extend(~sum, bytes.data(), bytes.size());
}

std::uint32_t crc32c_copy(std::uint32_t sum, std::span<const std::byte> bytes, std::byte* to,
                          std::size_t more) {
    // The processor alone looks ahead by less, and not by pages: from memory that takes 1.6 times
    // as long.
    constexpr std::size_t ahead = 4096;
#if defined(__x86_64__)
    if (extend == extend_by_either && bytes.size() >= vectors_least)
        return ~extend_by_vectors<true>(~sum, {bytes.data(), to, more >= ahead ? ahead : 0},
                                        static_cast<std::ptrdiff_t>(bytes.size()));
#endif
    constexpr std::size_t line = 64;
    if (more >= ahead)
        for (std::size_t at = 0; at < bytes.size(); at += line)
            __builtin_prefetch(bytes.data() + ahead + at);
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return crc32c(sum, {to, bytes.size()});  // others may write to the bytes meanwhile
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) {
    return ~extend_by_table(~std::uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace via::wire
