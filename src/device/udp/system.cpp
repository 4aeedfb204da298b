#include "device/udp/system.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "posix/not_cancelled.hpp"

namespace via::device::udp {

namespace {

/// What the kernel takes for the length of a set of signals, though none is given.
constexpr std::size_t kernel_sigset_bytes = 8;

}  // namespace

// Where libc's function is a cancellation point the call is made without it, but for close().

int System::socket(int family) {
    const int type = family == AF_PACKET ? SOCK_RAW : SOCK_DGRAM;
    return ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}
int System::bind(int fd, const sockaddr* address, socklen_t length) {
    return ::bind(fd, address, length);
}
int System::connect(int fd, const sockaddr* address, socklen_t length) {
    return static_cast<int>(::syscall(SYS_connect, fd, address, length));
}
int System::getsockname(int fd, sockaddr* address, socklen_t* length) {
    return ::getsockname(fd, address, length);
}
int System::setsockopt(int fd, int level, int option, int value) {
    return ::setsockopt(fd, level, option, &value, sizeof value);
}
int System::choose_socket(int fd, std::uint32_t index) {
    sock_filter always{BPF_RET | BPF_K, 0, 0, index};
    const sock_fprog program{1, &always};
    return ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}
int System::getsockopt(int fd, int level, int option, int* value) {
    socklen_t length = sizeof *value;
    return ::getsockopt(fd, level, option, value, &length);
}
// Of the data path: a cancellation point would cost a process with threads two locked operations a
// call, too.
ssize_t System::sendto(int fd, const void* bytes, std::size_t length, const sockaddr* address,
                       socklen_t address_length) {
    return ::syscall(SYS_sendto, fd, bytes, length, MSG_DONTWAIT, address, address_length);
}
int System::sendmmsg(int fd, mmsghdr* messages, unsigned count) {
    return static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, MSG_DONTWAIT));
}
ssize_t System::recvfrom(int fd, void* buffer, std::size_t length, sockaddr* address,
                         socklen_t* address_length) {
    return ::syscall(SYS_recvfrom, fd, buffer, length, MSG_DONTWAIT, address, address_length);
}
ssize_t System::recvmsg(int fd, msghdr* message, int flags) {
    return ::syscall(SYS_recvmsg, fd, message, flags | MSG_DONTWAIT);
}
int System::recvmmsg(int fd, mmsghdr* messages, unsigned count) {
    return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, count, MSG_DONTWAIT, nullptr));
}
int System::poll(pollfd* entries, nfds_t count) {
    timespec at_once{};
    return static_cast<int>(
        ::syscall(SYS_ppoll, entries, count, &at_once, nullptr, kernel_sigset_bytes));
}
int System::epoll_create() { return ::epoll_create1(EPOLL_CLOEXEC); }
int System::epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
    return ::epoll_ctl(epoll, operation, fd, event);
}
int System::inotify_init() { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }
int System::inotify_add_watch(int fd, const char* path, std::uint32_t events) {
    return ::inotify_add_watch(fd, path, events);
}
ssize_t System::read(int fd, void* buffer, std::size_t length) {
    return ::syscall(SYS_read, fd, buffer, length);
}
int System::interface_mtu(int fd, ifreq* request) { return ::ioctl(fd, SIOCGIFMTU, request); }
int System::getifaddrs(ifaddrs** list) { return ::getifaddrs(list); }

int System::openat(int directory, const char* path, int flags) {
    constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    return static_cast<int>(::syscall(SYS_openat, directory, path, flags | always, 0600));
}
int System::open_below(int directory, const char* path) {
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}
int System::fstat(int fd, struct stat* status) { return ::fstat(fd, status); }
int System::lstatat(int directory, const char* name, struct stat* status) {
    return ::fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW);
}
int System::fchmod(int fd, mode_t mode) { return ::fchmod(fd, mode); }
int System::close(int fd) { return posix::close_uncancelled(fd); }
int System::flock(int fd, int operation) { return ::flock(fd, operation); }
int System::lock(int fd) {
    struct flock whole{};
    whole.l_type = F_WRLCK;
    return ::fcntl(fd, F_OFD_SETLK, &whole);
}
int System::is_locked(int fd) {
    // Only a lock for writing is in the way of one for reading.
    struct flock whole{};
    whole.l_type = F_RDLCK;
    if (::fcntl(fd, F_OFD_GETLK, &whole) < 0) return -1;
    return whole.l_type == F_UNLCK ? 0 : 1;
}
ssize_t System::getdents(int fd, void* buffer, std::size_t length) {
    return ::syscall(SYS_getdents64, fd, buffer, length);
}
int System::symlinkat(const char* target, int directory, const char* name) {
    return ::symlinkat(target, directory, name);
}
ssize_t System::readlinkat(int directory, const char* name, char* buffer, std::size_t length) {
    return ::readlinkat(directory, name, buffer, length);
}
int System::unlinkat(int directory, const char* name) { return ::unlinkat(directory, name, 0); }
int System::rmdir(const char* path) { return ::rmdir(path); }
int System::renameat(int directory, const char* from, const char* to) {
    return ::renameat(directory, from, directory, to);
}

int System::kill(pid_t pid, int signal) { return ::kill(pid, signal); }
namespace {

Time read_clock(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return {now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

}  // namespace

Time System::now() { return read_clock(CLOCK_MONOTONIC); }
Time System::recently() { return read_clock(CLOCK_MONOTONIC_COARSE); }
void System::yield() { ::sched_yield(); }
pid_t System::getpid() { return ::getpid(); }

System& System::real() {
    // Never destroyed: a device may be closed by an exit handler that runs after ours.
    static System& system = *new System;
    return system;
}

namespace {

/// Made when the library is loaded: a thread of the parent may be making it at a fork otherwise,
/// and a child would wait for it.
[[maybe_unused]] const System& made_at_load = System::real();

}  // namespace

// Descriptors and fork ----------------------------------------------------------------------------

namespace {

/// Descriptors to close in a forked child, by number + 1; 0 is a free place. Beyond its size
/// children inherit some, which costs what it always cost.
std::atomic<int> open_here[1024];

void close_in_child() {
    for (auto& place : open_here)
        if (const int fd = place.exchange(0, std::memory_order_relaxed) - 1; fd >= 0)
            posix::close_uncancelled(fd);
}

void remember(int fd) {
    static const int watching = ::pthread_atfork(nullptr, nullptr, close_in_child);
    static_cast<void>(watching);  // without memory for it children inherit
    for (auto& place : open_here) {
        int free = 0;
        if (place.load(std::memory_order_relaxed) == 0 &&
            place.compare_exchange_strong(free, fd + 1, std::memory_order_relaxed))
            return;
    }
}

void forget(int fd) {
    for (auto& place : open_here) {
        int mine = fd + 1;
        if (place.load(std::memory_order_relaxed) == mine &&
            place.compare_exchange_strong(mine, 0, std::memory_order_relaxed))
            return;
    }
}

}  // namespace

Descriptor::Descriptor(System& system, int fd) : system_(&system), fd_(fd) {
    if (fd >= 0) remember(fd);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        system_ = other.system_;
        fd_ = other.fd_;
        other.fd_ = -1;
    }
    return *this;
}

void Descriptor::reset() {
    if (fd_ < 0) return;
    forget(fd_);
    system_->close(fd_);  // not repeated after EINTR: Linux has closed it by then
    fd_ = -1;
}

}  // namespace via::device::udp
