#include "device/udp/wait_set.hpp"

#include <cerrno>

namespace via::device::udp {

bool WaitSet::open() {
    epoll_ = Descriptor(system_, system_.epoll_create());
    return epoll_.valid();
}

bool WaitSet::add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    return system_.epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool WaitSet::watch(int socket, bool for_room) {
    epoll_event event{};
    event.events = EPOLLIN | (for_room ? std::uint32_t{EPOLLOUT} : 0);
    int operation = EPOLL_CTL_ADD;
    for (int tries = 0; tries < 2; ++tries) {
        if (system_.epoll_ctl(epoll_.get(), operation, socket, &event) == 0) return true;
        if (errno == EEXIST) operation = EPOLL_CTL_MOD;
    }
    return false;
}

bool WaitSet::forget(int socket) {
    epoll_event event{};
    for (int tries = 0; tries < 2; ++tries)
        if (system_.epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, &event) == 0 || errno == ENOENT)
            return true;
    return false;
}

}  // namespace via::device::udp
