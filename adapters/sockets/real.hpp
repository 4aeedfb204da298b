// The C library's own functions, behind those of the same names that this library puts before them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace via::sockets {

// clang-format off
#define VIA_SOCKETS_CALLS(X) \
    X(read) X(write) X(readv) X(writev) X(recv) X(send) X(recvfrom) X(sendto) X(recvmsg) \
    X(sendmsg) X(recvmmsg) X(sendmmsg) X(connect) X(accept) X(accept4) X(shutdown) X(close) \
    X(dup) X(dup2) X(dup3) X(fcntl) X(ioctl) X(setsockopt) X(getsockopt) X(poll) X(ppoll) \
    X(select) X(pselect) X(epoll_create) X(epoll_create1) X(epoll_ctl) X(epoll_wait) \
    X(epoll_pwait) X(epoll_pwait2) X(sendfile) X(splice) X(fdopen) X(vdprintf) X(close_range) \
    X(closefrom) X(execve) X(execvpe) X(fexecve) X(posix_spawn) X(posix_spawnp) X(system) \
    X(popen) X(syscall) X(_exit)
// clang-format on

struct Real {
#define VIA_SOCKETS_POINTER(name) decltype(&::name) name = nullptr;
    VIA_SOCKETS_CALLS(VIA_SOCKETS_POINTER)
#undef VIA_SOCKETS_POINTER
    bool loaded = false;
};

extern Real real_calls;
void load_real();

inline const Real& real() {
    if (!real_calls.loaded) [[unlikely]]
        load_real();
    return real_calls;
}

/// Calls of ours in the middle of a program's: no points of cancellation, and no interruption.
long raw_send(int fd, const void* bytes, std::size_t length, int flags);
long raw_receive(int fd, void* bytes, std::size_t length, int flags);

}  // namespace via::sockets
