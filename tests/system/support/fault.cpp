#include "support/fault.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "call_filter.hpp"

namespace system_test {

namespace {

/// A kernel never refuses to wake somebody: who sleeps would sleep for ever, whatever we did.
bool can_fail(const seccomp_data& call) {
    if (call.nr != SYS_futex) return true;
    const auto operation = static_cast<int>(call.args[1]) & FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
}

}  // namespace

int stop_at_calls(int call) { return call_filter::hold(call); }

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
