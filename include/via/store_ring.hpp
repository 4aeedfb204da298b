// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/store_ring.hpp
 * @brief What the two ends of a via::MessageChannel share: lines that carry messages by stores.
 */
#pragma once

#include <via/segment.hpp>

#include <atomic>
#include <bit>

namespace via {

/** @cond */
namespace detail {

/// How a message travels. The numbers are seen by the peer.
enum class Way : std::uint32_t { none = 0, stored = 1, posted = 2, written = 3 };

/// A cache line of the ring. The word is never payload: what a line's former use left in it can not
/// be taken for a message. Bits 16 to 63: the place of the line since the beginning, plus 1;
/// 14 and 15: the way; 0 to 13: the length of a stored message.
struct alignas(64) StoreLine {
    std::uint64_t word;
    std::array<std::byte, 56> payload;
};

/// The head of an exported segment; its owner and the peer have a line each to write in.
struct SharedWords {
    alignas(64) std::uint32_t asleep;       ///< 1: by the owner, before it sleeps; 0: who wakes it
    alignas(64) std::uint64_t lines_taken;  ///< by the peer: of the lines stored there
    std::uint64_t messages_taken;           ///< by the peer: of the messages posted to it
    alignas(64) std::uint64_t answer_address;  ///< by the peer: where to write a large message
    std::uint64_t answer_handle;
    std::uint64_t answer_number;  ///< written last: which large message, from 1
};

/// Words that two processes share.
template <class T>
T load(T& word) noexcept {
    return std::atomic_ref(word).load(std::memory_order_acquire);
}
template <class T>
void store(T& word, std::type_identity_t<T> value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_release);
}

inline void relax_processor() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// What the first line of a message says.
struct StoreSlot {
    Way way = Way::none;
    std::uint64_t length = 0;  ///< bytes of the message; not checked
};

/// The lines behind SharedWords, seen from either side. A value.
class StoreRing {
public:
    static constexpr std::size_t line_payload = sizeof(StoreLine::payload);
    static constexpr std::uint64_t longest = 0x3FFF;  ///< what the length in a word can say
    static constexpr std::uint32_t fewest_lines = 16;
    static constexpr std::uint32_t most_lines = 1 << 20;

    static constexpr std::uint64_t lines_of(std::uint64_t length) noexcept {
        return length <= line_payload ? 1 : (length + line_payload - 1) / line_payload;
    }
    /// The longest stored message: two of them must fit, for credits come back by quarters.
    static constexpr std::uint64_t longest_in(std::uint32_t lines) noexcept {
        return std::min<std::uint64_t>(longest, lines / 2 * line_payload);
    }
    static constexpr std::size_t segment_size(std::uint32_t lines) noexcept {
        return sizeof(SharedWords) + lines * sizeof(StoreLine);
    }

    StoreRing() noexcept = default;
    /// @param lines  a power of two; `segment` has segment_size(lines) bytes
    StoreRing(std::span<std::byte> segment, std::uint32_t lines) noexcept
        : words_(reinterpret_cast<SharedWords*>(segment.data())),
          first_(reinterpret_cast<StoreLine*>(segment.data() + sizeof(SharedWords))),
          mask_(lines - 1) {}

    SharedWords& words() const noexcept { return *words_; }
    std::uint64_t lines() const noexcept { return mask_ + 1; }

    /// Stores a message at place `at`, which must be free: the payload, then the word.
    void write(std::uint64_t at, std::span<const std::byte> message) const noexcept {
        for (std::uint64_t n = lines_of(message.size()); n-- > 0;) {
            const auto part = piece(message, n);
            if (!part.empty()) std::memcpy(line(at + n).payload.data(), part.data(), part.size());
        }
        release(at, Way::stored, message.size());
    }
    /// Says in one line that a message of `length` bytes comes another way.
    void announce(std::uint64_t at, Way way, std::uint64_t length) const noexcept {
        announced_length(at).store(length, std::memory_order_relaxed);
        release(at, way, 0);
    }
    /// What lies at place `at`, read once; nothing, if it has not been stored yet.
    std::optional<StoreSlot> look(std::uint64_t at) const noexcept {
        const std::uint64_t word = load(line(at).word);
        if (word >> 16 != tag(at) >> 16) return std::nullopt;
        const Way way = static_cast<Way>(word >> 14 & 3);
        return StoreSlot{way, way == Way::stored
                                  ? word & longest
                                  : announced_length(at).load(std::memory_order_relaxed)};
    }
    /// Copies out a stored message of to.size() bytes. The peer may change it meanwhile.
    void read(std::uint64_t at, std::span<std::byte> to) const noexcept {
        for (std::uint64_t n = 0; n * line_payload < to.size(); ++n) {
            const auto part = piece(to, n);
            std::memcpy(part.data(), line(at + n).payload.data(), part.size());
        }
    }

private:
    StoreLine& line(std::uint64_t at) const noexcept { return first_[at & mask_]; }
    static constexpr std::uint64_t tag(std::uint64_t at) noexcept { return (at + 1) << 16; }
    std::atomic_ref<std::uint64_t> announced_length(std::uint64_t at) const noexcept {
        return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(line(at).payload.data()));
    }
    void release(std::uint64_t at, Way way, std::uint64_t length) const noexcept {
        store(line(at).word, tag(at) | static_cast<std::uint64_t>(way) << 14 | length);
    }
    template <class Byte>
    static std::span<Byte> piece(std::span<Byte> of, std::uint64_t number) noexcept {
        const auto rest = of.subspan(number * line_payload);
        return rest.first(std::min(rest.size(), line_payload));
    }

    SharedWords* words_ = nullptr;
    StoreLine* first_ = nullptr;
    std::uint64_t mask_ = 0;
};

}  // namespace detail
/** @endcond */

}  // namespace via
