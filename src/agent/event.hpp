// Eventfds, by calls that are no cancellation points: a thread of the program that is cancelled in
// one of ours would leave locks behind.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace via::agent {

/// Makes it readable. False: errno says why.
inline bool set_event(int descriptor) {
    const std::uint64_t one = 1;
    return syscall(SYS_write, descriptor, &one, sizeof one) >= 0 || errno == EAGAIN;
}

/// Ends that.
inline bool clear_event(int descriptor) {
    std::uint64_t count = 0;
    return syscall(SYS_read, descriptor, &count, sizeof count) >= 0 || errno == EAGAIN;
}

}  // namespace via::agent
