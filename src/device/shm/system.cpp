#include "device/shm/system.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "posix/not_cancelled.hpp"
#include "posix/resize.hpp"

namespace via::device::shm {

namespace {

/// What the kernel takes for the length of a set of signals, though none is given.
constexpr std::size_t kernel_sigset_bytes = 8;

}  // namespace

// Where libc's function is a cancellation point the call is made without it, but for close().

int System::memfd_create(const char* name, unsigned flags) { return ::memfd_create(name, flags); }
int System::ftruncate(int fd, off_t length) {
    return posix::resize(fd, static_cast<std::uint64_t>(length));
}
int System::add_seals(int fd, int seals) { return ::fcntl(fd, F_ADD_SEALS, seals); }
int System::get_seals(int fd) { return ::fcntl(fd, F_GET_SEALS); }
int System::fstat(int fd, struct stat* status) { return ::fstat(fd, status); }

long System::file_system_type(int fd) {
    struct statfs status;
    return ::fstatfs(fd, &status) < 0 ? -1 : static_cast<long>(status.f_type);
}

void* System::mmap(std::size_t length, int protection, int flags, int fd) {
    return ::mmap(nullptr, length, protection, flags, fd, 0);
}
int System::munmap(void* address, std::size_t length) { return ::munmap(address, length); }
int System::madvise(void* address, std::size_t length, int advice) {
    return ::madvise(address, length, advice);
}

int System::openat(int directory, const char* path, int flags) {
    return static_cast<int>(::syscall(SYS_openat, directory, path, flags, 0));
}
int System::close(int fd) { return posix::close_uncancelled(fd); }
int System::duplicate(int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); }
int System::descriptors_max() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return INT_MAX;
    return static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
}
int System::flock(int fd, int operation) { return ::flock(fd, operation); }
ssize_t System::getdents(int fd, void* buffer, std::size_t length) {
    return ::syscall(SYS_getdents64, fd, buffer, length);
}
int System::symlinkat(const char* target, int directory, const char* name) {
    return ::symlinkat(target, directory, name);
}
ssize_t System::readlinkat(int directory, const char* name, char* buffer, std::size_t length) {
    return ::readlinkat(directory, name, buffer, length);
}
int System::lstatat(int directory, const char* name, struct stat* status) {
    return ::fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW);
}
int System::faccessat(int directory, const char* name) {
    return ::faccessat(directory, name, F_OK, 0);
}
int System::unlinkat(int directory, const char* name) { return ::unlinkat(directory, name, 0); }
int System::fchmodat(int directory, const char* name, mode_t mode) {
    return ::fchmodat(directory, name, mode, 0);
}
int System::rename_new(int directory, const char* from, const char* to) {
    return ::renameat2(directory, from, directory, to, RENAME_NOREPLACE);
}

int System::socket() { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }
int System::bind(int fd, const sockaddr* address, socklen_t length) {
    return ::bind(fd, address, length);
}
int System::listen(int fd, int backlog) { return ::listen(fd, backlog); }
int System::accept(int fd) {
    return static_cast<int>(
        ::syscall(SYS_accept4, fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}
int System::connect(int fd, const sockaddr* address, socklen_t length) {
    return static_cast<int>(::syscall(SYS_connect, fd, address, length));
}
int System::shutdown(int fd) { return ::shutdown(fd, SHUT_RDWR); }
ssize_t System::sendmsg(int fd, const msghdr* message, int flags) {
    return ::syscall(SYS_sendmsg, fd, message, flags);
}
ssize_t System::recvmsg(int fd, msghdr* message, int flags) {
    return ::syscall(SYS_recvmsg, fd, message, flags);
}
int System::getsockopt(int fd, int level, int option, void* value, socklen_t* length) {
    return ::getsockopt(fd, level, option, value, length);
}

int System::pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
int System::kill(pid_t pid, int signal) { return ::kill(pid, signal); }
int System::poll_input(int fd) {
    pollfd entry{fd, POLLIN, 0};
    timespec at_once{};
    return static_cast<int>(
        ::syscall(SYS_ppoll, &entry, 1UL, &at_once, nullptr, kernel_sigset_bytes));
}
int System::epoll_create() { return ::epoll_create1(EPOLL_CLOEXEC); }
int System::epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
    return ::epoll_ctl(epoll, operation, fd, event);
}
int System::epoll_wait(int epoll, epoll_event* events, int count) {
    return static_cast<int>(
        ::syscall(SYS_epoll_pwait, epoll, events, count, 0, nullptr, kernel_sigset_bytes));
}
ssize_t System::process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                 const iovec* remote, unsigned long remotes) {
    return ::process_vm_readv(pid, local, locals, remote, remotes, 0);
}
int System::futex_wake(const void* word, int count) {
    return static_cast<int>(::syscall(SYS_futex, word, FUTEX_WAKE, count, nullptr, nullptr, 0));
}

Time System::now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return Time{} + seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}
void System::yield() { ::sched_yield(); }
pid_t System::getpid() { return ::getpid(); }
uid_t System::geteuid() { return ::geteuid(); }

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

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        system_ = other.system_;
        fd_ = other.give();
    }
    return *this;
}

void Descriptor::reset() {
    // Not repeated after EINTR: Linux has closed it by then.
    if (fd_ >= 0) system_->close(fd_);
    fd_ = -1;
}

}  // namespace via::device::shm
