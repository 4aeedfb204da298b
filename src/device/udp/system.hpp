// Every system call of this device, in one table, so that a test can make each of them fail.
// The methods behave as the calls of the same name: -1 and errno on failure. None waits.
// None is a cancellation point: a thread of the program makes them with the NIC's turn, and one
// that ended there (pthread_cancel) would never let it go.
#pragma once

#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::udp {

/// Buffers of a socket, asked for; what we get is at most net.core.rmem_max or wmem_max, twice.
constexpr int socket_bytes_wanted = 2 << 20;

class System {
public:
    virtual ~System() = default;

    /// SOCK_DGRAM, of AF_PACKET SOCK_RAW; non-blocking, close-on-exec.
    virtual int socket(int family);
    virtual int bind(int fd, const sockaddr* address, socklen_t length);
    virtual int connect(int fd, const sockaddr* address, socklen_t length);
    virtual int getsockname(int fd, sockaddr* address, socklen_t* length);
    virtual int setsockopt(int fd, int level, int option, int value);
    /// Of the sockets that share this one's port (SO_REUSEPORT) that `index` gets all datagrams,
    /// counted from 0 in the order in which they were bound; if there is none, whom a hash finds.
    virtual int choose_socket(int fd, std::uint32_t index);
    virtual int getsockopt(int fd, int level, int option, int* value);
    /// `address` nullptr: the one that the socket is connected to.
    virtual ssize_t sendto(int fd, const void* bytes, std::size_t length, const sockaddr* address,
                           socklen_t address_length);
    virtual int sendmmsg(int fd, mmsghdr* messages, unsigned count);
    virtual ssize_t recvfrom(int fd, void* buffer, std::size_t length, sockaddr* address,
                             socklen_t* address_length);
    virtual ssize_t recvmsg(int fd, msghdr* message, int flags);
    virtual int recvmmsg(int fd, mmsghdr* messages, unsigned count);
    virtual int poll(pollfd* entries, nfds_t count);
    virtual int epoll_create();
    virtual int epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
    virtual int inotify_init();
    virtual int inotify_add_watch(int fd, const char* path, std::uint32_t events);
    virtual ssize_t read(int fd, void* buffer, std::size_t length);
    /// SIOCGIFMTU of the interface that `request` names.
    virtual int interface_mtu(int fd, ifreq* request);
    virtual int getifaddrs(ifaddrs** list);

    /// Mode 0600; follows no link, and waits for nobody who has a pipe or a lease there.
    virtual int openat(int directory, const char* path, int flags);
    /// A directory below `directory`, on the same file system and by no symbolic link, for names
    /// within it.
    virtual int open_below(int directory, const char* path);
    virtual int fstat(int fd, struct stat* status);
    virtual int lstatat(int directory, const char* name, struct stat* status);
    virtual int fchmod(int fd, mode_t mode);
    virtual int close(int fd);
    virtual int flock(int fd, int operation);
    /// Locks a file that may be written, as long as it is open.
    virtual int lock(int fd);
    /// 1: somebody who may write the file has it locked; 0: nobody. Who may only read it cannot
    /// make this 1.
    virtual int is_locked(int fd);
    virtual ssize_t getdents(int fd, void* buffer, std::size_t length);
    virtual int symlinkat(const char* target, int directory, const char* name);
    virtual ssize_t readlinkat(int directory, const char* name, char* buffer, std::size_t length);
    virtual int unlinkat(int directory, const char* name);
    virtual int rmdir(const char* path);
    virtual int renameat(int directory, const char* from, const char* to);

    virtual int kill(pid_t pid, int signal);
    virtual Time now();  ///< CLOCK_MONOTONIC
    /// now() of the last tick of the kernel's, some milliseconds ago at most; costs next to
    /// nothing.
    virtual Time recently();
    virtual void yield();
    virtual pid_t getpid();

    /// The real one; lives for ever.
    static System& real();
};

/// A descriptor that closes itself, and that a forked child does not inherit: a child that lives on
/// would hold ports and locks of a parent that is dead.
class Descriptor {
public:
    Descriptor() = default;
    Descriptor(System& system, int fd);
    Descriptor(Descriptor&& other) noexcept : system_(other.system_), fd_(other.fd_) {
        other.fd_ = -1;
    }
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }

    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    void reset();

private:
    System* system_ = nullptr;
    int fd_ = -1;
};

}  // namespace via::device::udp
