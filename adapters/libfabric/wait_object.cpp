// SPDX-License-Identifier: Apache-2.0
#include "wait_object.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <new>

namespace via::fabric {

WaitObject::WaitObject()
    : descriptor_(epoll_create1(EPOLL_CLOEXEC)), own_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ >= 0 && own_ >= 0 && add(own_)) return;
    const Refused why =
        refused(FI_LOG_CQ, "a queue's descriptor (epoll_create1, eventfd, epoll_ctl)");
    ::close(descriptor_);
    ::close(own_);
    throw why;
}

WaitObject::~WaitObject() {
    ::close(descriptor_);
    ::close(own_);
}

bool WaitObject::add(int readable) {
    epoll_event event{EPOLLIN, {}};
    return epoll_ctl(descriptor_, EPOLL_CTL_ADD, readable, &event) == 0;
}

void WaitObject::show(bool wanted) noexcept {
    const std::lock_guard guard(lock_);
    if (wanted == shown_) return;
    shown_ = wanted;
    std::uint64_t value = 1;
    const ssize_t done =
        wanted ? ::write(own_, &value, sizeof value) : ::read(own_, &value, sizeof value);
    if (done < 0) refused(FI_LOG_CQ, "the completion queue's descriptor (write, read)");
}

int WaitObject::sleep(Clock::time_point end, bool for_good) const {
    int left = -1;
    if (!for_good) {
        left = static_cast<int>(
            std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count());
        if (left <= 0) return -FI_EAGAIN;
    }
    pollfd waited{descriptor_, POLLIN, 0};
    if (::poll(&waited, 1, left) >= 0 || errno == EINTR) return 0;
    return -refused(FI_LOG_CQ, "waiting for completions (poll)").error;
}

}  // namespace via::fabric
