// SPDX-License-Identifier: Apache-2.0
// A lock that somebody else has.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common.hpp"

namespace via::fabric {
namespace {

constexpr int looks_alone = 100;
constexpr int yields_alone = 16;

}  // namespace

/// A wake-up may be missed, for unlock() has no fence, so it sleeps for a moment only. Sleeping is
/// for whom yielding does not help: others want the processor as well, or may have it first.
void SpinLock::wait_and_lock() noexcept {
    const auto try_lock = [this] {
        return locked_.load(std::memory_order_relaxed) == 0 &&
               locked_.exchange(1, std::memory_order_acquire) == 0;
    };
    for (int looks = 0; looks < looks_alone; ++looks)
        if (try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    for (int yields = 0; !try_lock(); ++yields) {
        if (yields < yields_alone) {
            sched_yield();
            continue;
        }
        constexpr timespec moment{0, 200'000};
        syscall(SYS_futex, &locked_, FUTEX_WAIT_PRIVATE, 1, &moment, nullptr, 0);
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void SpinLock::give_way() noexcept {
    syscall(SYS_futex, &locked_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    sched_yield();
}

}  // namespace via::fabric
