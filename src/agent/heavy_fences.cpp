#include "agent/heavy_fences.hpp"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "base/asymmetric_fence.hpp"

namespace via::agent {

namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

/// A processor writes what a thread has stored as soon as it has the line, which takes nanoseconds
/// or some microseconds, and before it runs anything else. So after this long all threads have made
/// what amounts to a full fence. No cancellation point: who makes a fence may hold a lock.
void wait_for_stores() {
    using namespace std::chrono_literals;
    constexpr auto surely_written = 1ms;
    constexpr timespec moment{0, 100'000};
    atomic_fence(std::memory_order_seq_cst);
    const auto until = std::chrono::steady_clock::now() + surely_written;
    while (std::chrono::steady_clock::now() < until)
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr);
    atomic_fence(std::memory_order_seq_cst);
}

/// It worked when it was offered. A filter of system calls that came later may forbid it: then
/// nobody else counts on it, and for those who do already it takes longer.
template <int command, FenceReach reach>
void fence() {
    if (membarrier(command)) return;
    withdraw_heavy_fence(reach);
    wait_for_stores();
}

/// Filters of system calls may let one command through and not the other: each is tried. 0 or
/// errno; a forked child that may not what its parent could offers it no more.
template <int enlist, int command, FenceReach reach>
int offer() {
    if (!membarrier(enlist) || !membarrier(command)) {
        const int error = errno;
        withdraw_heavy_fence(reach);
        return error;
    }
    set_heavy_fence(reach, &fence<command, reach>);
    return 0;
}

}  // namespace

int offer_heavy_fences() {
    const int of_process = offer<MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
                                 MEMBARRIER_CMD_PRIVATE_EXPEDITED, FenceReach::process>();
    const int of_host = offer<MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
                              MEMBARRIER_CMD_GLOBAL_EXPEDITED, FenceReach::host>();
    return of_process != 0 ? of_process : of_host;
}

}  // namespace via::agent
