#include "support/fault.hpp"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace system_test {

namespace {

/// A kernel never refuses to wake somebody: who sleeps would sleep for ever, whatever we did.
bool can_fail(const seccomp_data& call) {
    if (call.nr != SYS_futex) return true;
    const auto operation = static_cast<int>(call.args[1]) & FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

}  // namespace

int stop_at_calls(int call) {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(program), program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return static_cast<int>(
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

FaultGiver::FaultGiver(const Child& child, int listener, const Fault& fault) : fault_(fault) {
    const int process = static_cast<int>(syscall(SYS_pidfd_open, child.pid(), 0));
    require_call(process >= 0, "pidfd_open");
    listener_ = static_cast<int>(syscall(SYS_pidfd_getfd, process, listener, 0));
    close(process);
    require_call(listener_ >= 0, "pidfd_getfd");
    thread_ = std::thread([this] { serve(); });
}

FaultGiver::~FaultGiver() {
    stop_ = true;
    thread_.join();
    close(listener_);
}

void FaultGiver::serve() {
    while (!stop_) {
        pollfd entry{listener_, POLLIN, 0};
        if (poll(&entry, 1, 20) != 1) continue;
        if ((entry.revents & POLLIN) == 0 || !answer()) return;  // the child is gone
    }
}

bool FaultGiver::answer() {
    seccomp_notif asked{};
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
        return errno == EINTR || errno == ENOENT;
    seccomp_notif_resp response{};
    response.id = asked.id;
    if (armed_ && can_fail(asked.data) && ++calls_ == fault_.nth) {
        response.error = -fault_.error;
        given_ = true;
    } else {
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    }
    return ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0 || errno == ENOENT;
}

}  // namespace system_test
