// Sleeping on one word of ours, with the call that every kernel has.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "agent/process.hpp"
#include "base/atomic.hpp"
#include "base/time.hpp"

namespace via::agent {

inline timespec to_timespec(Time time) {
    return {time.ns / 1'000'000'000, time.ns % 1'000'000'000};
}

/// While it is 0, until the deadline or wake_sleeper().
inline void sleep_on_own(const Atomic<std::uint32_t>& word, Time deadline) {
    const timespec until = to_timespec(deadline);
    const long result =
        syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                deadline.is_never() ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result < 0 && errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT)
        log(0, "cannot sleep (futex): %s", strerror(errno));
}

inline void wake_sleeper(const Atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

}  // namespace via::agent
