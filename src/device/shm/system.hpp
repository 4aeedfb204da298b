// Every system call of this device, in one table, so that a test can make each of them fail.
// The methods behave as the calls of the same name: -1 (or MAP_FAILED) and errno on failure.
// None is a cancellation point: a thread of the program makes them with the NIC's turn, and one
// that ended there (pthread_cancel) would never let it go.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::shm {

class System {
public:
    virtual ~System() = default;

    virtual int memfd_create(const char* name, unsigned flags);
    /// Beyond the limit of the size of files, where the call kills the program: EFBIG.
    virtual int ftruncate(int fd, off_t length);
    virtual int add_seals(int fd, int seals);
    virtual int get_seals(int fd);
    virtual int fstat(int fd, struct stat* status);
    /// Type of the file system that `fd` lives on, or -1.
    virtual long file_system_type(int fd);
    virtual void* mmap(std::size_t length, int protection, int flags, int fd);
    virtual int munmap(void* address, std::size_t length);
    virtual int madvise(void* address, std::size_t length, int advice);

    virtual int openat(int directory, const char* path, int flags);
    virtual int close(int fd);
    virtual int duplicate(int fd);
    virtual int descriptors_max();  ///< numbers below it may be had (RLIMIT_NOFILE)
    virtual int flock(int fd, int operation);
    virtual ssize_t getdents(int fd, void* buffer, std::size_t length);
    virtual int symlinkat(const char* target, int directory, const char* name);
    virtual ssize_t readlinkat(int directory, const char* name, char* buffer, std::size_t length);
    virtual int faccessat(int directory, const char* name);  ///< does it exist?
    virtual int lstatat(int directory, const char* name, struct stat* status);
    virtual int unlinkat(int directory, const char* name);
    virtual int fchmodat(int directory, const char* name, mode_t mode);
    /// renameat2 with RENAME_NOREPLACE within one directory.
    virtual int rename_new(int directory, const char* from, const char* to);

    virtual int socket();  ///< AF_UNIX, SOCK_SEQPACKET, non-blocking, close-on-exec
    virtual int bind(int fd, const sockaddr* address, socklen_t length);
    virtual int listen(int fd, int backlog);
    virtual int accept(int fd);  ///< non-blocking, close-on-exec
    virtual int connect(int fd, const sockaddr* address, socklen_t length);
    virtual int shutdown(int fd);
    virtual ssize_t sendmsg(int fd, const msghdr* message, int flags);
    virtual ssize_t recvmsg(int fd, msghdr* message, int flags);
    virtual int getsockopt(int fd, int level, int option, void* value, socklen_t* length);

    virtual int pidfd_open(pid_t pid);
    virtual int kill(pid_t pid, int signal);
    /// poll(2) of one descriptor for input, without waiting.
    virtual int poll_input(int fd);
    virtual int epoll_create();
    virtual int epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
    virtual int epoll_wait(int epoll, epoll_event* events, int count);  ///< without waiting
    virtual int futex_wake(const void* word, int count);                ///< shared
    virtual ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                     const iovec* remote, unsigned long remotes);

    virtual Time now();  ///< CLOCK_MONOTONIC
    virtual void yield();
    virtual pid_t getpid();
    virtual uid_t geteuid();

    /// The real one; lives for ever.
    static System& real();
};

/// A descriptor that closes itself.
class Descriptor {
public:
    Descriptor() = default;
    Descriptor(System& system, int fd) : system_(&system), fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : system_(other.system_), fd_(other.give()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }

    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    /// The caller owns it from now on.
    int give() {
        const int fd = fd_;
        fd_ = -1;
        return fd;
    }
    void reset();

private:
    System* system_ = nullptr;
    int fd_ = -1;
};

}  // namespace via::device::shm
