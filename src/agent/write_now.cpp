#include "agent/write_now.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/file.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

/// Without the signal that ends a program for writing to a pipe without a reader.
bool write_all(int file, std::string_view text) {
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t written = write(file, text.data(), text.size());
    constexpr timespec at_once{};
    if (written < 0 && errno == EPIPE && sigismember(&pending, SIGPIPE) == 0)
        sigtimedwait(&pipe_signal, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return written == static_cast<ssize_t>(text.size());
}

/// The same pipe or terminal once more, for us alone: whether calls wait is said of all who have it
/// by one opening, the program and its children too.
File open_again(int file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return File(open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

bool write_now(int file, std::string_view text) {
    struct stat status;
    return fstat(file, &status) == 0 && write_now(file, status, text);
}

bool write_now(int file, const struct stat& status, std::string_view text) {
    const posix::NotCancelled whole;
    if (S_ISSOCK(status.st_mode))
        return send(file, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size());
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return write_all(file, text);
    const File again = open_again(file);
    if (again.valid()) return write_all(again.get(), text);
    if (errno == ENXIO) return false;  // a named pipe that nobody has open for reading
    // Somebody else's, or there is no /proc. Whoever writes there at this very moment may still
    // take the room.
    pollfd room{file, POLLOUT, 0};
    return poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0 && write_all(file, text);
}

}  // namespace via::agent
