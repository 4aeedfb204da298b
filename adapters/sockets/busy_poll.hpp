// Busy polling of the kernel, for connections to other hosts.
#pragma once

#include <sched.h>

#include <atomic>

#include "clock.hpp"

namespace via::sockets {

/// Owns whether busy polling pays for one descriptor: a connection to another host, or a set that
/// has one. Bytes between hosts come through the kernel alone, in which falling asleep and waking
/// up take longer than most answers of a network nearby. Any thread.
class BusyPoll {
public:
    void begin(bool on) {
        on_.store(on, std::memory_order_relaxed);
        misses_.store(0, std::memory_order_relaxed);
    }
    void turn_on() { on_.store(true, std::memory_order_relaxed); }
    bool is_on() const { return on_.load(std::memory_order_relaxed); }

    /// Asks again and again for `length` ticks; where that was in vain several times, seldom.
    /// true: `ask` said that there is an answer. Otherwise the caller sleeps.
    template <class Ask>
    bool finds(std::uint64_t length, const Ask& ask) {
        if (!is_on() || length == 0) return false;
        const std::uint32_t misses = misses_.load(std::memory_order_relaxed);
        if (misses < patience || misses % seldom == 0) {
            const std::uint64_t until = ticks() + length;
            do {
                if (ask()) {
                    misses_.store(0, std::memory_order_relaxed);
                    return true;
                }
                sched_yield();  // to whoever else wants this processor
            } while (ticks() < until);
        }
        misses_.store(misses + 1, std::memory_order_relaxed);
        return false;
    }

    static constexpr std::uint32_t patience = 8;  ///< misses one after the other
    static constexpr std::uint32_t seldom = 64;   ///< waits, of which one busy polls then

private:
    std::atomic<bool> on_{false};
    std::atomic<std::uint32_t> misses_{0};
};

}  // namespace via::sockets
