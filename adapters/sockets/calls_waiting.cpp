// poll(), select(), epoll_wait() and the like.
#include <errno.h>

#include "connection.hpp"
#include "epoll_set.hpp"

using namespace via::sockets;

namespace {

std::int64_t ns_of(const timespec* time) {
    return time == nullptr ? -1 : time->tv_sec * 1000000000 + time->tv_nsec;
}
std::int64_t ns_of(int ms) { return ms < 0 ? -1 : std::int64_t{ms} * 1000000; }

bool has_ours(pollfd* fds, nfds_t count) {
    for (nfds_t at = 0; fds != nullptr && at < count; ++at)
        if (socket_entry(fds[at].fd) != nullptr || epoll_entry(fds[at].fd) != nullptr) return true;
    return false;
}

bool has_ours(int count, const fd_set* one, const fd_set* two, const fd_set* three) {
    for (int fd = 0; fd < count; ++fd) {
        if (socket_entry(fd) == nullptr && epoll_entry(fd) == nullptr) continue;
        for (const fd_set* const set : {one, two, three})
            if (set != nullptr &&
                (reinterpret_cast<const unsigned long*>(set)[fd / 64] >> (fd % 64) & 1) != 0)
                return true;
    }
    return false;
}

int new_set(int fd) {
    if (fd >= 0) opened(fd, Kind::epoll);
    return fd;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int poll(pollfd* fds, nfds_t count, int ms) {
    if (!has_ours(fds, count)) return real().poll(fds, count, ms);
    return poll_all(fds, count, ns_of(ms), nullptr);
}
int __poll_chk(pollfd* fds, nfds_t count, int ms, size_t room);
int __poll_chk(pollfd* fds, nfds_t count, int ms, size_t room) {
    if (count > room / sizeof(pollfd)) __builtin_trap();
    return poll(fds, count, ms);
}
int ppoll(pollfd* fds, nfds_t count, const timespec* time, const sigset_t* mask) {
    if (!has_ours(fds, count)) return real().ppoll(fds, count, time, mask);
    return poll_all(fds, count, ns_of(time), mask);
}
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* time, const sigset_t* mask, size_t room);
int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* time, const sigset_t* mask,
                size_t room) {
    if (count > room / sizeof(pollfd)) __builtin_trap();
    return ppoll(fds, count, time, mask);
}

int select(int count, fd_set* reads, fd_set* writes, fd_set* others, timeval* time) {
    if (!has_ours(count, reads, writes, others))
        return real().select(count, reads, writes, others, time);
    std::int64_t left = 0;
    const std::int64_t timeout =
        time == nullptr ? -1 : time->tv_sec * 1000000000 + time->tv_usec * 1000;
    const int ready = select_all(count, reads, writes, others, timeout, nullptr, &left);
    if (time != nullptr) *time = {left / 1000000000, left % 1000000000 / 1000};
    return ready;
}
int pselect(int count, fd_set* reads, fd_set* writes, fd_set* others, const timespec* time,
            const sigset_t* mask) {
    if (!has_ours(count, reads, writes, others))
        return real().pselect(count, reads, writes, others, time, mask);
    return select_all(count, reads, writes, others, ns_of(time), mask, nullptr);
}

int epoll_create(int size) noexcept { return new_set(real().epoll_create(size)); }
int epoll_create1(int flags) noexcept { return new_set(real().epoll_create1(flags)); }

int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
    if (epoll_entry(set) == nullptr) return real().epoll_ctl(set, operation, fd, event);
    return EpollSet::control(set, operation, fd, event);
}
int epoll_wait(int set, epoll_event* events, int most, int ms) {
    if (epoll_entry(set) == nullptr) return real().epoll_wait(set, events, most, ms);
    return EpollSet::wait(set, events, most, ns_of(ms), nullptr);
}
int epoll_pwait(int set, epoll_event* events, int most, int ms, const sigset_t* mask) {
    if (epoll_entry(set) == nullptr) return real().epoll_pwait(set, events, most, ms, mask);
    return EpollSet::wait(set, events, most, ns_of(ms), mask);
}
int epoll_pwait2(int set, epoll_event* events, int most, const timespec* time,
                 const sigset_t* mask) {
    if (epoll_entry(set) == nullptr) return real().epoll_pwait2(set, events, most, time, mask);
    return EpollSet::wait(set, events, most, ns_of(time), mask);
}

}  // extern "C"
#pragma GCC visibility pop
