// One system call decided by a filter (seccomp) of the tests: it fails, as in careful containers,
// or waits until somebody answers for the kernel.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace call_filter {

/// From now on `action` (SECCOMP_RET_...) is what comes of `call`, made by this thread or its
/// children; `flags` (SECCOMP_FILTER_FLAG_...) may say: by all threads, or answered at a
/// descriptor. Returns that descriptor, or 0; less than 0 with errno: filters are not allowed here.
inline int decide(long call, std::uint32_t action, unsigned flags = 0) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof program / sizeof *program, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
}

/// `call` fails with `error`.
inline bool forbid(long call, int error, unsigned flags = 0) {
    return decide(call, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error), flags) == 0;
}

/// Each such call waits for an answer (SECCOMP_IOCTL_NOTIF_SEND) at the descriptor that is
/// returned.
inline int hold(long call) {
    return decide(call, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

}  // namespace call_filter
