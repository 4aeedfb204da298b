#include "board.hpp"

namespace via::sockets {

std::uint64_t Board::mark(std::uint32_t bit) {
    // Set already: whoever takes it looks behind that.
    if ((word(bit).load(std::memory_order_relaxed) & mask(bit)) == 0) word(bit).fetch_or(mask(bit));
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against sleep()
    return asleep_.load(std::memory_order_relaxed);
}

void Board::woken(std::uint64_t sleep) { asleep_.compare_exchange_strong(sleep, 0); }

void Board::sleep(std::uint64_t number) {
    asleep_.store(number, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // against mark()
}

bool Board::any(std::uint32_t words) const {
    for (std::uint32_t at = 0; at < words; ++at)
        if (bits_[at].load(std::memory_order_relaxed) != 0) return true;
    return false;
}

void Board::reset() {
    asleep_.store(0);
    for (std::atomic<std::uint64_t>& each : bits_) each.store(0, std::memory_order_relaxed);
}

}  // namespace via::sockets
