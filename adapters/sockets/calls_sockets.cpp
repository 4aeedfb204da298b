// Opening, closing, options and descriptors.
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <dlfcn.h>

#include <cstdarg>

#include "connection.hpp"
#include "epoll_set.hpp"

using namespace via::sockets;

namespace {

#define VIA_SOCKETS_NEXT(name) reinterpret_cast<decltype(&::name)>(next_of(#name))
void* next_of(const char* name) { return dlsym(RTLD_NEXT, name); }

void set_nonblocking(int fd, bool value) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return;
    if (Stream* const stream = entry->stream.load()) stream->nonblocking.store(value);
}

void back_to_kernel(int fd, Reason reason) {
    if (Entry* const entry = socket_entry(fd)) hand_back(fd, *entry, reason);
}

int accepted(int fd) {
    if (fd >= 0) opened(fd, Kind::accepted);
    return fd;
}

/// In a child by vfork(), whose descriptors are not those that we know: it will start a program.
int copied_to(int fd, int copy) {
    if (copy < 0 || (socket_entry(fd) == nullptr && epoll_entry(fd) == nullptr)) return copy;
    if (is_borrowed()) {
        back_to_kernel(fd, Reason::exec);
        SharedSets::relinquish(fd);
    } else {
        copied(fd, copy);
    }
    return copy;
}

bool stays_with_stream(int level, int name) {
    if (level == SOL_SOCKET)
        return name != SO_RCVLOWAT && name != SO_ZEROCOPY && name != SO_TIMESTAMP &&
               name != SO_TIMESTAMPNS && name != SO_TIMESTAMPING;
    return level != IPPROTO_TCP ||
           (name != TCP_ULP && name != TCP_INQ && name != TCP_REPAIR && name != TCP_CORK);
}

int forward_fcntl(int fd, int command, void* argument) {
    const int result = real().fcntl(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return copied_to(fd, result);
    if (result < 0 || socket_entry(fd) == nullptr) return result;
    const auto flags = reinterpret_cast<long>(argument);
    if (command == F_SETFL) {
        set_nonblocking(fd, (flags & O_NONBLOCK) != 0);
        if ((flags & O_ASYNC) != 0) back_to_kernel(fd, Reason::unusual_call);
    }
    return result;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int socket(int domain, int type, int protocol) noexcept {
    static const auto next = VIA_SOCKETS_NEXT(socket);
    const int fd = next(domain, type, protocol);
    const bool stream = (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM;
    if (fd >= 0 && stream && (domain == AF_INET || domain == AF_INET6) &&
        (protocol == 0 || protocol == IPPROTO_TCP))
        opened(fd, Kind::connected);
    return fd;
}

int listen(int fd, int backlog) noexcept {
    static const auto next = VIA_SOCKETS_NEXT(listen);
    if (Entry* const entry = socket_entry(fd)) entry->kind.store(Kind::plain);
    return next(fd, backlog);
}

int connect(int fd, const sockaddr* address, socklen_t length) {
    Entry* const entry = socket_entry(fd);
    if (entry != nullptr && entry->pipe.load() != nullptr) hand_back(fd, *entry, Reason::asked_for);
    return real().connect(fd, address, length);
}

int accept(int fd, sockaddr* address, socklen_t* length) {
    return accepted(real().accept(fd, address, length));
}
int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
    return accepted(real().accept4(fd, address, length, flags));
}

int shutdown(int fd, int how) noexcept {
    Entry* const entry = socket_entry(fd);
    // Then the kernel says that the stream has ended though the peer goes on to read.
    if (entry != nullptr && how == SHUT_RD) hand_back(fd, *entry, Reason::half_closed);
    // Behind a FIN nothing can be sent again, nor told what of the peer's came before it.
    if (entry != nullptr && how != SHUT_RD && through_memory(fd, *entry) &&
        (has_unread_by_peer(*entry) || entry->end().peer_sending().from.load() == 0))
        hand_back(fd, *entry, Reason::half_closed);
    if (entry != nullptr && how != SHUT_RD && through_memory(fd, *entry)) {
        const PipeEnd end = entry->end();
        if (end.sending().lock.take()) {
            end.sending().fin.fetch_or(1);
            end.sending().lock.let_go();
        }
    } else if (entry != nullptr && how != SHUT_RD) {
        hand_back(fd, *entry, Reason::half_closed);  // a FIN counts as a byte that was sent
    }
    return real().shutdown(fd, how);
}

int close(int fd) {
    closing(fd);
    return real().close(fd);
}

int close_range(unsigned first, unsigned last, int flags) noexcept {
    if ((flags & ~(1 << 1)) == 0 && !is_borrowed())
        for (unsigned fd = first; fd <= last && fd < descriptors_max; ++fd)
            closing(static_cast<int>(fd));
    return real().close_range(first, last, flags);
}

void closefrom(int first) noexcept {
    for (int fd = first < 0 ? 0 : first; fd < descriptors_max; ++fd) closing(fd);
    real().closefrom(first);
}

int dup(int fd) noexcept { return copied_to(fd, real().dup(fd)); }
int dup2(int fd, int copy) noexcept {
    if (fd != copy && real().fcntl(fd, F_GETFD) >= 0) closing(copy);
    const int result = real().dup2(fd, copy);
    return fd == copy ? result : copied_to(fd, result);
}
int dup3(int fd, int copy, int flags) noexcept {
    if (fd != copy && real().fcntl(fd, F_GETFD) >= 0) closing(copy);
    return copied_to(fd, real().dup3(fd, copy, flags));
}

int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    return forward_fcntl(fd, command, argument);
}
int fcntl64(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    return forward_fcntl(fd, command, argument);
}

int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list arguments;
    va_start(arguments, request);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().ioctl(fd, request, argument);
    if (request == FIONREAD && through_memory(fd, *entry)) {
        *static_cast<int*>(argument) = static_cast<int>(unread(fd, *entry));
        return 0;
    }
    const int result = real().ioctl(fd, request, argument);
    if (result == 0 && request == FIONBIO) set_nonblocking(fd, *static_cast<int*>(argument) != 0);
    if (result == 0 && request == FIOASYNC) back_to_kernel(fd, Reason::unusual_call);
    return result;
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().setsockopt(fd, level, name, value, length);
    Stream* const stream = entry->stream.load();
    const bool paired = stream != nullptr && pipe_of(*entry) != nullptr;
    if (paired && level == IPPROTO_TCP && name == TCP_NODELAY && length >= sizeof(int)) {
        stream->no_delay.store(*static_cast<const int*>(value) != 0);
        return 0;
    }
    if (!stays_with_stream(level, name)) hand_back(fd, *entry, Reason::unusual_call);
    return real().setsockopt(fd, level, name, value, length);
}

int getsockopt(int fd, int level, int name, void* value, socklen_t* length) noexcept {
    Entry* const entry = socket_entry(fd);
    const bool paired = entry != nullptr && pipe_of(*entry) != nullptr;
    if (paired && *length >= sizeof(int)) {
        int answer = 0;
        if (level == SOL_SOCKET && name == SO_ERROR) answer = entry->end().own().error.exchange(0);
        if (level == IPPROTO_TCP && name == TCP_NODELAY) {
            answer = static_cast<int>(entry->stream.load()->no_delay.load());
            *static_cast<int*>(value) = answer;
            *length = sizeof(int);
            return 0;
        }
        if (answer != 0) {
            *static_cast<int*>(value) = answer;
            *length = sizeof(int);
            return 0;
        }
    }
    return real().getsockopt(fd, level, name, value, length);
}

FILE* fdopen(int fd, const char* mode) noexcept {
    back_to_kernel(fd, Reason::stdio);
    return real().fdopen(fd, mode);
}

int vdprintf(int fd, const char* format, va_list arguments) {
    back_to_kernel(fd, Reason::stdio);
    return real().vdprintf(fd, format, arguments);
}
int dprintf(int fd, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int result = vdprintf(fd, format, arguments);
    va_end(arguments);
    return result;
}

}  // extern "C"
#pragma GCC visibility pop
