// Waiting for something to be true.
#pragma once

#include <sched.h>
#include <time.h>

#include <string>

#include "support/must.hpp"

namespace system_test {

/// Only ends a test that hangs; nothing is synchronised by it.
constexpr int watchdog_ms = 60'000;

/// Milliseconds on a clock that only goes forward.
inline double now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Calls `done` until it is true, letting others run between; fails when the watchdog bites.
template <class Done>
void until(const std::string& what, Done done, Where where = Where::current()) {
    const double start = now_ms();
    while (!done()) {
        if (now_ms() - start > watchdog_ms) fail("it never came true that " + what, where);
        sched_yield();
    }
}

}  // namespace system_test
