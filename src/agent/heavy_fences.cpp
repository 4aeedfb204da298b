#include "agent/heavy_fences.hpp"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.hpp"
#include "base/asymmetric_fence.hpp"

namespace via::agent {

namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

template <int command>
void fence() {
    VIA_ASSERT(membarrier(command));  // tried when it was offered, it has no other answer
}

/// Filters of system calls may let one command through and not the other: each is tried.
template <int enlist, int command>
bool offer(FenceReach reach) {
    if (!membarrier(enlist) || !membarrier(command)) return false;
    set_heavy_fence(reach, &fence<command>);
    return true;
}

}  // namespace

int offer_heavy_fences() {
    if (!offer<MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED>(
            FenceReach::process) ||
        !offer<MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_GLOBAL_EXPEDITED>(
            FenceReach::host))
        return errno;
    return 0;
}

}  // namespace via::agent
