// Programs that are started, system calls past the C library, and the end.
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>

#include <cstdarg>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "connection.hpp"
#include "epoll_set.hpp"
#include "notes.hpp"

using namespace via::sockets;

extern "C" char** environ;

namespace {

int failed(int result) {
    after_failed_program();
    return result;
}

/// So that `via sockets status` is not silent about a program that cannot have the library.
void say_if_not_loaded(pid_t process, const char* path) {
    if (!active() || path == nullptr) return;
    const int error = errno;
    if (const std::string why = why_not_loaded(path); !why.empty())
        leave_note({static_cast<std::uint32_t>(process), path, why});
    errno = error;
}

/// As execvp() and posix_spawnp() find it.
std::string found_in_path(const char* file) {
    if (file == nullptr || std::strchr(file, '/') != nullptr) return file == nullptr ? "" : file;
    const char* const path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
    for (;;) {
        const std::size_t cut = rest.find(':');
        const std::string folder(rest.substr(0, cut));
        const std::string one = folder.empty() ? file : folder + "/" + file;
        if (access(one.c_str(), X_OK) == 0 || cut == std::string_view::npos) return one;
        rest.remove_prefix(cut + 1);
    }
}

std::string file_of(int fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    std::array<char, 4096> name{};
    return readlink(link.c_str(), name.data(), name.size() - 1) < 0 ? link : name.data();
}

/// The words of execl() and its kind. `arguments` stands behind the null at its end.
std::vector<char*> words_of(const char* first, va_list arguments) {
    std::vector<char*> words{const_cast<char*>(first)};
    while (words.back() != nullptr) words.push_back(va_arg(arguments, char*));
    return words;
}

bool moves_bytes(long number) {
    switch (number) {
        case SYS_read:
        case SYS_write:
        case SYS_readv:
        case SYS_writev:
        case SYS_recvfrom:
        case SYS_sendto:
        case SYS_recvmsg:
        case SYS_sendmsg:
        case SYS_recvmmsg:
        case SYS_sendmmsg:
        case SYS_close:
        case SYS_dup:
        case SYS_dup3:
        case SYS_sendfile:
        case SYS_fcntl:
        case SYS_shutdown:
        case SYS_ioctl:
        case SYS_setsockopt:
        case SYS_splice:
        case SYS_connect:
#ifdef SYS_dup2
        case SYS_dup2:
#endif
            return true;
        default:
            return false;
    }
}

/// Of many descriptors, or of a process that we would know nothing of.
bool is_past_us(long number) {
    switch (number) {
        case SYS_io_uring_setup:
        case SYS_clone:
        case SYS_clone3:
        case SYS_close_range:
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_epoll_ctl:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_pidfd_getfd:
#ifdef SYS_poll
        case SYS_poll:
        case SYS_select:
        case SYS_epoll_wait:
        case SYS_fork:
        case SYS_vfork:
#endif
            return true;
        default:
            return false;
    }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int execve(const char* path, char* const words[], char* const environment[]) noexcept {
    before_program(true);
    say_if_not_loaded(getpid(), path);
    return failed(real().execve(path, words, environment));
}
int execv(const char* path, char* const words[]) noexcept { return execve(path, words, environ); }
int execvpe(const char* file, char* const words[], char* const environment[]) noexcept {
    before_program(true);
    say_if_not_loaded(getpid(), found_in_path(file).c_str());
    return failed(real().execvpe(file, words, environment));
}
int execvp(const char* file, char* const words[]) noexcept { return execvpe(file, words, environ); }
int fexecve(int fd, char* const words[], char* const environment[]) noexcept {
    before_program(true);
    say_if_not_loaded(getpid(), file_of(fd).c_str());
    return failed(real().fexecve(fd, words, environment));
}
int execl(const char* path, const char* first, ...) noexcept {
    va_list arguments;
    va_start(arguments, first);
    const std::vector<char*> words = words_of(first, arguments);
    va_end(arguments);
    return execve(path, words.data(), environ);
}
int execlp(const char* file, const char* first, ...) noexcept {
    va_list arguments;
    va_start(arguments, first);
    const std::vector<char*> words = words_of(first, arguments);
    va_end(arguments);
    return execvpe(file, words.data(), environ);
}
int execle(const char* path, const char* first, ...) noexcept {
    va_list arguments;
    va_start(arguments, first);
    std::vector<char*> words{const_cast<char*>(first)};
    while (words.back() != nullptr) words.push_back(va_arg(arguments, char*));
    char** const environment = va_arg(arguments, char**);
    va_end(arguments);
    return execve(path, words.data(), environment);
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const words[],
                char* const environment[]) {
    before_program(false);
    pid_t child = 0;
    const int result = real().posix_spawn(&child, path, actions, attributes, words, environment);
    if (result != 0) return result;
    say_if_not_loaded(child, path);
    if (process != nullptr) *process = child;
    return 0;
}
int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const words[],
                 char* const environment[]) {
    before_program(false);
    pid_t child = 0;
    const int result = real().posix_spawnp(&child, file, actions, attributes, words, environment);
    if (result != 0) return result;
    say_if_not_loaded(child, found_in_path(file).c_str());
    if (process != nullptr) *process = child;
    return 0;
}
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int fd,
                                     int copy) noexcept {
    static const auto next = reinterpret_cast<decltype(&::posix_spawn_file_actions_adddup2)>(
        dlsym(RTLD_NEXT, "posix_spawn_file_actions_adddup2"));
    if (Entry* const entry = socket_entry(fd)) hand_back(fd, *entry, Reason::exec);
    SharedSets::relinquish(fd);
    return next(actions, fd, copy);
}
int system(const char* command) {
    before_program(false);
    return real().system(command);
}
FILE* popen(const char* command, const char* mode) {
    before_program(false);
    return real().popen(command, mode);
}

void _exit(int status) {
    leave();
    real()._exit(status);
    __builtin_unreachable();
}
void _Exit(int status) noexcept { _exit(status); }

long syscall(long number, ...) noexcept {
    va_list arguments;
    va_start(arguments, number);
    std::array<long, 6> words;
    for (long& word : words) word = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_execve || number == SYS_execveat) {
        before_program(true);
    } else if (is_past_us(number)) {
        stop(Reason::uring);
    } else if (moves_bytes(number)) {
        const int fd = static_cast<int>(words[0]);
        if (Entry* const entry = socket_entry(fd)) hand_back(fd, *entry, Reason::uring);
        SharedSets::relinquish(fd);
        const int other = static_cast<int>(words[2]);
        if (Entry* const entry = number == SYS_splice ? socket_entry(other) : nullptr)
            hand_back(other, *entry, Reason::uring);
    }
    const long result =
        real().syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    if (number == SYS_execve || number == SYS_execveat) after_failed_program();
    return result;
}

}  // extern "C"
#pragma GCC visibility pop
