// Which of an epoll set's sockets something has come for, and whether a thread sleeps in it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace via::sockets {

/// In the arena of the set's process. Peers that have stored bytes, or made room, set the bit of
/// the descriptor: a wait costs what is ready and not what is open, and a process that sleeps is
/// woken once and not once for each connection.
class alignas(64) Board {
public:
    static constexpr std::uint32_t bits_max = 65536;

    /// By a peer, after a full fence behind what it stored. Which sleep it has to end by a byte,
    /// and then says so to woken(); 0: nobody sleeps.
    std::uint64_t mark(std::uint32_t bit);
    /// Behind the byte: somebody who stops in front of it keeps nobody else from waking. A late
    /// one does not end the sleep that came next.
    void woken(std::uint64_t sleep);

    /// By its owner. Before a sleep, and then a look at any(); `number` is no other sleep's, nor 0.
    void sleep(std::uint64_t number);
    void end_sleep() { asleep_.store(0, std::memory_order_relaxed); }
    bool any(std::uint32_t words) const;
    void clear(std::uint32_t bit) { word(bit).fetch_and(~mask(bit)); }
    void reset();
    /// Takes the bits out and hands each on. What it stands for is stored before the bit is seen,
    /// and looked at after: what comes behind that look sets the bit again.
    template <class Do>
    void take(std::uint32_t words, const Do& what) {
        for (std::uint32_t at = 0; at < words; ++at) {
            if (bits_[at].load(std::memory_order_relaxed) == 0) continue;
            for (std::uint64_t set = bits_[at].exchange(0); set != 0; set &= set - 1)
                what(at * 64 + static_cast<std::uint32_t>(std::countr_zero(set)));
        }
        std::atomic_thread_fence(std::memory_order_seq_cst);  // against mark()
    }

private:
    std::atomic<std::uint64_t>& word(std::uint32_t bit) { return bits_[bit / 64]; }
    static std::uint64_t mask(std::uint32_t bit) { return 1ull << (bit % 64); }

    std::atomic<std::uint64_t> asleep_;  ///< the number of a sleep, or 0
    std::array<std::atomic<std::uint64_t>, bits_max / 64> bits_;
};

/// What a peer has to know of a board to mark one descriptor there. A word.
struct Mark {
    std::uint64_t board = 0;  ///< offset in the arena of the descriptor's process; 0: none
    std::uint32_t bit = 0;
    bool room = false;  ///< also when there is room

    std::uint64_t word() const {
        return board << 17 | static_cast<std::uint64_t>(room) << 16 | (bit & 0xFFFF);
    }
    static Mark of(std::uint64_t word) {
        return {word >> 17, static_cast<std::uint32_t>(word & 0xFFFF), (word >> 16 & 1) != 0};
    }
};

}  // namespace via::sockets
