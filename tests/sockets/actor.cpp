// One process of the fuzzer: does the socket calls that it is told on standard input, a line each,
// and says on standard output what came of each. It knows nothing of what carries the bytes.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "actor.hpp"

/// The byte at a position of a stream is known from the stream's seed.
std::vector<unsigned char> pattern(std::uint64_t seed, std::uint64_t at, std::size_t length) {
    std::vector<unsigned char> bytes(length);
    for (std::size_t n = 0; n < length; ++n) {
        std::uint64_t x = seed + (at + n) * 0x9E3779B97F4A7C15;
        x ^= x >> 29;
        x *= 0xBF58476D1CE4E5B9;
        bytes[n] = static_cast<unsigned char>(x >> 56);
    }
    return bytes;
}

std::string result(long value, int error) {
    if (value >= 0) return std::to_string(value);
    return "-" + std::string(strerrorname_np(error));
}

std::string digest(const unsigned char* bytes, long length) {
    std::uint32_t hash = 2166136261u;
    for (long n = 0; n < length; ++n) hash = (hash ^ bytes[n]) * 16777619u;
    char text[16];
    std::snprintf(text, sizeof text, "%08x", hash);
    return text;
}

/// Bytes that were sent are a moment on their way; the script's model knows of none.
void await_bytes(int fd, std::size_t length) {
    for (int tries = 0; tries < 500; ++tries) {
        int there = 0;
        if (ioctl(fd, FIONREAD, &there) < 0 || there >= static_cast<int>(length)) return;
        pollfd end{fd, POLLRDHUP, 0};  // behind one nothing more comes
        if (poll(&end, 1, 1) > 0 && tries > 20) return;
    }
}

namespace {

std::map<int, int> sockets;  ///< the fuzzer's number to a descriptor
int listener = -1;
std::map<std::string, int> epoll_sets;
int sigpipes = 0;
volatile sig_atomic_t alarms = 0;

int socket_at(Words& words) {
    int number = 0;
    words >> number;
    const auto found = sockets.find(number);
    return found == sockets.end() ? -1 : found->second;
}

/// Forgotten too: its descriptor may be another thing's soon, which do_pass() would close.
std::string do_close(Words& words) {
    int number = 0;
    words >> number;
    const auto found = sockets.find(number);
    if (found == sockets.end()) return result(-1, EBADF);
    const int done = close(found->second);
    const int error = errno;
    sockets.erase(found);
    return result(done, error);
}

std::string do_listen(Words& words) {
    std::string family;
    words >> family;
    listener = socket(family == "6" ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage address{};
    socklen_t length = sizeof(sockaddr_in);
    address.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (family == "6") {
        address = {};
        address.ss_family = AF_INET6;
        reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
        length = sizeof(sockaddr_in6);
    }
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) < 0) return "no";
    listen(listener, 16);
    length = sizeof address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    return std::to_string(ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port));
}

std::string do_connect(Words& words) {
    int number = 0;
    int port = 0;
    std::string family;
    words >> number >> port >> family;
    const int fd = socket(family == "6" ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port;
    six.sin6_addr = in6addr_loopback;
    const int done = family == "6" ? connect(fd, reinterpret_cast<sockaddr*>(&six), sizeof six)
                                   : connect(fd, reinterpret_cast<sockaddr*>(&four), sizeof four);
    const int error = errno;
    sockets[number] = fd;
    return result(done, error);
}

std::string do_accept(Words& words) {
    int number = 0;
    words >> number;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const int error = errno;
    sockets[number] = fd;
    return result(fd < 0 ? -1 : 0, error);
}

std::string do_send(Words& words) {
    const int fd = socket_at(words);
    std::uint64_t seed = 0;
    std::uint64_t at = 0;
    std::size_t length = 0;
    std::string how;
    words >> seed >> at >> length >> how;
    std::vector<unsigned char> bytes = pattern(seed, at, length);
    long sent = 0;
    if (how == "write") {
        sent = write(fd, bytes.data(), length);
    } else if (how == "raw") {
        sent = syscall(SYS_write, fd, bytes.data(), length);
    } else if (how == "writev") {
        const std::size_t cut = length / 3;
        const iovec parts[3] = {
            {bytes.data(), cut}, {bytes.data() + cut, 0}, {bytes.data() + cut, length - cut}};
        sent = writev(fd, parts, 3);
    } else if (how == "sendmsg") {
        iovec parts[2] = {{bytes.data(), length / 2},
                          {bytes.data() + length / 2, length - length / 2}};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    } else if (how == "mmsg") {
        iovec part{bytes.data(), length};
        mmsghdr message{};
        message.msg_hdr.msg_iov = &part;
        message.msg_hdr.msg_iovlen = 1;
        sent = sendmmsg(fd, &message, 1, MSG_NOSIGNAL);
        if (sent == 1) sent = message.msg_len;
    } else if (how == "sendfile") {
        const int file = memfd_create("fuzz", MFD_CLOEXEC);
        if (write(file, bytes.data(), length) < 0) return "no";
        off_t from = 0;
        sent = sendfile(fd, file, &from, length);
        const int error = errno;
        close(file);
        errno = error;
    } else if (how == "splice") {
        int pipes[2];
        if (pipe2(pipes, O_CLOEXEC) < 0 || write(pipes[1], bytes.data(), length) < 0) return "no";
        sent = splice(pipes[0], nullptr, fd, nullptr, length, 0);
        const int error = errno;
        close(pipes[0]);
        close(pipes[1]);
        errno = error;
    } else if (how == "more") {
        sent = send(fd, bytes.data(), length - 1, MSG_MORE | MSG_NOSIGNAL);
        if (sent >= 0) sent += send(fd, bytes.data() + length - 1, 1, MSG_NOSIGNAL);
    } else {
        sent = send(fd, bytes.data(), length, how == "quiet" ? MSG_NOSIGNAL : MSG_DONTWAIT);
    }
    return result(sent, errno);
}

std::string do_receive(Words& words) {
    const int fd = socket_at(words);
    std::size_t length = 0;
    std::string how;
    words >> length >> how;
    std::vector<unsigned char> bytes(length + 1);
    if (length != 10) await_bytes(fd, length);
    long got = 0;
    if (how == "read") {
        got = read(fd, bytes.data(), length);
    } else if (how == "raw") {
        got = syscall(SYS_read, fd, bytes.data(), length);
    } else if (how == "readv") {
        const iovec parts[2] = {{bytes.data(), length / 2},
                                {bytes.data() + length / 2, length - length / 2}};
        got = readv(fd, parts, 2);
    } else if (how == "recvmsg") {
        iovec part{bytes.data(), length};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        got = recvmsg(fd, &message, 0);
    } else if (how == "mmsg") {
        iovec part{bytes.data(), length};
        mmsghdr message{};
        message.msg_hdr.msg_iov = &part;
        message.msg_hdr.msg_iovlen = 1;
        got = recvmmsg(fd, &message, 1, MSG_DONTWAIT, nullptr);
        if (got == 1) got = message.msg_len;
    } else if (how == "splice") {
        int pipes[2];
        if (pipe2(pipes, O_CLOEXEC) < 0) return "no";
        fcntl(pipes[1], F_SETPIPE_SZ, 1 << 17);
        std::size_t sum = 0;
        while (sum < length && (got = splice(fd, nullptr, pipes[1], nullptr, length - sum, 0)) > 0)
            sum += static_cast<std::size_t>(got);
        if (sum > 0) got = read(pipes[0], bytes.data(), sum);
        const int error = errno;
        close(pipes[0]);
        close(pipes[1]);
        errno = error;
    } else if (how == "trunc") {
        got = recv(fd, nullptr, length, MSG_TRUNC | MSG_DONTWAIT);
        return result(got, errno);
    } else {
        got = recv(fd, bytes.data(), length,
                   how == "all"    ? MSG_WAITALL
                   : how == "peek" ? MSG_PEEK | MSG_DONTWAIT
                                   : MSG_DONTWAIT);
    }
    const int error = errno;
    return result(got, error) + (got > 0 ? " " + digest(bytes.data(), got) : "");
}

std::string do_poll(Words& words) {
    std::string how;
    words >> how;
    std::string said;
    std::vector<pollfd> fds;
    std::vector<int> numbers;
    for (int number; words >> number;)
        if (sockets.contains(number)) {
            fds.push_back({sockets[number], POLLIN | POLLOUT | POLLRDHUP, 0});
            numbers.push_back(number);
        }
    if (how == "select") {
        fd_set reads;
        fd_set writes;
        FD_ZERO(&reads);
        FD_ZERO(&writes);
        int most = 0;
        for (const pollfd& one : fds) {
            FD_SET(one.fd, &reads);
            FD_SET(one.fd, &writes);
            most = std::max(most, one.fd + 1);
        }
        timeval time{0, 0};
        said = std::to_string(select(most, &reads, &writes, nullptr, &time));
        for (std::size_t at = 0; at < fds.size(); ++at)
            said += " " + std::to_string(FD_ISSET(fds[at].fd, &reads) +
                                         2 * FD_ISSET(fds[at].fd, &writes));
        return said;
    }
    said = std::to_string(poll(fds.data(), fds.size(), 0));
    for (const pollfd& one : fds) said += " " + std::to_string(one.revents);
    return said;
}

/// The outer one holds the first.
int epoll_set_of(const std::string& name) {
    if (!epoll_sets.contains(name)) {
        epoll_sets[name] = epoll_create1(EPOLL_CLOEXEC);
        epoll_event event{EPOLLIN, {.u64 = 0}};
        if (name == "outer")
            epoll_ctl(epoll_sets[name], EPOLL_CTL_ADD, epoll_set_of("first"), &event);
    }
    return epoll_sets[name];
}

std::string do_epoll(Words& words) {
    std::string name;
    std::string what;
    words >> name >> what;
    const int epoll_set = epoll_set_of(name);
    if (what == "poll") {
        pollfd one{epoll_set, POLLIN, 0};
        const int ready = poll(&one, 1, 0);
        return result(ready, errno) + " " + std::to_string(one.revents);
    }
    if (what == "copy") {  // and the first descriptor is closed, or the copy is
        std::string kept;
        words >> kept;
        const int copy = fcntl(epoll_set, F_DUPFD_CLOEXEC, 0);
        const int error = errno;
        if (copy < 0) return result(-1, error);
        if (kept == "copy") epoll_sets[name] = copy;
        return result(kept == "both" ? 0 : close(kept == "copy" ? epoll_set : copy), errno);
    }
    if (what == "wait") {
        int ms = 0;
        words >> ms;
        epoll_event events[16];
        const int count = epoll_wait(epoll_set, events, 16, ms);
        std::map<std::uint64_t, std::uint32_t> sorted;
        for (int at = 0; at < count; ++at) sorted[events[at].data.u64] = events[at].events;
        std::string said = result(count, errno);
        for (const auto& [number, bits] : sorted)
            said += " " + std::to_string(number) + ":" + std::to_string(bits);
        return said;
    }
    int number = 0;
    std::uint32_t bits = 0;
    words >> number >> bits;
    epoll_event event{};
    event.events = bits;
    event.data.u64 = static_cast<std::uint64_t>(number);
    const int operation = what == "add"   ? EPOLL_CTL_ADD
                          : what == "mod" ? EPOLL_CTL_MOD
                                          : EPOLL_CTL_DEL;
    const int done =
        epoll_ctl(epoll_set, operation, sockets.contains(number) ? sockets[number] : -1, &event);
    return result(done, errno);
}

/// A child that reads or writes on the inherited socket, and ends.
std::string do_fork(Words& words) {
    const std::string rest = words.str().substr(static_cast<std::size_t>(words.tellg()) + 1);
    int pipes[2];
    if (pipe(pipes) < 0) return "no";
    const pid_t child = fork();
    if (child == 0) {
        Words inner(rest);
        std::string what;
        inner >> what;
        const std::string said = what == "send"    ? do_send(inner)
                                 : what == "epoll" ? do_epoll(inner)
                                                   : do_receive(inner);
        if (write(pipes[1], said.data(), said.size()) < 0) _exit(1);
        _exit(0);
    }
    close(pipes[1]);
    char text[256];
    const long got = read(pipes[0], text, sizeof text);
    close(pipes[0]);
    waitpid(child, nullptr, 0);
    return "child " + std::string(text, static_cast<std::size_t>(std::max(got, 0l)));
}

/// What a program that was started writes into a pipe, until it ends.
std::string said_by(pid_t child, const int (&pipes)[2]) {
    close(pipes[1]);
    std::string all;
    char text[4096];
    for (long got; (got = read(pipes[0], text, sizeof text)) > 0;)
        all.append(text, static_cast<std::size_t>(got));
    close(pipes[0]);
    waitpid(child, nullptr, 0);
    return "program " + std::to_string(all.size()) + " " +
           digest(reinterpret_cast<const unsigned char*>(all.data()),
                  static_cast<long>(all.size()));
}

/// A program that inherits the socket as its standard input and reads some of it.
std::string do_program(Words& words) {
    const int fd = socket_at(words);
    std::string bytes;
    words >> bytes;
    int pipes[2];
    if (pipe(pipes) < 0) return "no";
    const pid_t child = fork();
    if (child == 0) {
        dup2(fd, 0);
        dup2(pipes[1], 1);
        execlp("dd", "dd", "bs=1", ("count=" + bytes).c_str(), "status=none", nullptr);
        _exit(9);
    }
    return said_by(child, pipes);
}

/// The same by posix_spawn(), or by a child of vfork().
std::string do_spawn(Words& words) {
    const int fd = socket_at(words);
    std::string bytes;
    std::string how;
    words >> bytes >> how;
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0) return "no";
    const std::string count = "count=" + bytes;
    char dd[] = "dd";
    char one[] = "bs=1";
    char quiet[] = "status=none";
    char* const arguments[] = {dd, one, const_cast<char*>(count.c_str()), quiet, nullptr};
    pid_t child = -1;
    if (how == "vfork") {
        child = vfork();
        if (child == 0) {
            dup2(fd, 0);
            dup2(pipes[1], 1);
            execvp(dd, arguments);
            _exit(9);
        }
    } else {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fd, 0);
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
        if (posix_spawnp(&child, dd, &actions, nullptr, arguments, environ) != 0) child = -1;
        posix_spawn_file_actions_destroy(&actions);
    }
    return said_by(child, pipes);
}

/// Through SCM_RIGHTS to a child that has not inherited it.
std::string do_pass(Words& words) {
    const int fd = socket_at(words);
    std::string length;
    words >> length;
    int ends[2];
    int pipes[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || pipe(pipes) < 0) return "no";
    char control[CMSG_SPACE(sizeof(int))] = {};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const pid_t child = fork();
    if (child == 0) {
        for (const auto& [number, socket] : sockets) close(socket);
        if (recvmsg(ends[1], &message, 0) != 1) _exit(1);
        std::memcpy(&sockets[0], CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
        Words inner("0 " + length + " all");
        const std::string said = do_receive(inner);
        if (write(pipes[1], said.data(), said.size()) < 0) _exit(1);
        _exit(0);
    }
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    sendmsg(ends[0], &message, 0);
    close(pipes[1]);
    char text[256];
    const long got = read(pipes[0], text, sizeof text);
    for (const int one : {pipes[0], ends[0], ends[1]}) close(one);
    waitpid(child, nullptr, 0);
    return "passed " + std::string(text, static_cast<std::size_t>(std::max(got, 0l)));
}

/// What ends a blocking call before there are bytes.
std::string do_wait(Words& words) {
    const int fd = socket_at(words);
    std::string how;
    words >> how;
    char byte;
    if (how == "limit") {
        timeval time{0, 20000};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
        const long got = recv(fd, &byte, 1, 0);
        const std::string said = result(got, errno);
        time = {};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
        return said;
    }
    struct sigaction action{};
    action.sa_handler = [](int) { alarms = alarms + 1; };
    sigaction(SIGALRM, &action, nullptr);
    const int before_it = alarms;
    const itimerval soon{{0, 10000}, {0, 10000}};
    const itimerval never{};
    setitimer(ITIMER_REAL, &soon, nullptr);
    long got = 0;
    if (how == "poll") {
        pollfd one{fd, POLLPRI, 0};
        got = poll(&one, 1, -1);
    } else {
        got = recv(fd, &byte, 1, 0);
    }
    const std::string said = result(got, errno);
    setitimer(ITIMER_REAL, &never, nullptr);
    return said + (alarms > before_it ? " interrupted" : "");
}

/// As much as goes without waiting.
std::string do_flood(Words& words) {
    const int fd = socket_at(words);
    std::uint64_t seed = 0;
    std::uint64_t at = 0;
    std::string limit;
    words >> seed >> at >> limit;
    if (!limit.empty()) return flood_with_limit(fd, seed, at);
    std::size_t sum = 0;
    for (;;) {
        const std::vector<unsigned char> bytes = pattern(seed, at + sum, 30000);
        const long sent = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent <= 0) return std::to_string(sum);
        sum += static_cast<std::size_t>(sent);
    }
}

/// All that is there, and so many of it; the bytes are those of the pattern.
std::string do_swallow(Words& words) {
    const int fd = socket_at(words);
    std::uint64_t seed = 0;
    std::uint64_t at = 0;
    std::size_t length = 0;
    words >> seed >> at >> length;
    std::size_t sum = 0;
    std::vector<unsigned char> bytes(50000);
    while (sum < length) {
        const long got = recv(fd, bytes.data(), std::min(bytes.size(), length - sum), 0);
        if (got <= 0) return "ended at " + std::to_string(sum);
        const auto right = pattern(seed, at + sum, static_cast<std::size_t>(got));
        if (std::memcmp(right.data(), bytes.data(), right.size()) != 0)
            return "wrong after " + std::to_string(sum);
        sum += static_cast<std::size_t>(got);
    }
    return "swallowed";
}

std::string do_other(const std::string& what, Words& words) {
    const int fd = socket_at(words);
    if (what == "shutdown") {
        int how = 0;
        std::string raw;
        words >> how >> raw;
        const int done =
            raw.empty() ? shutdown(fd, how) : static_cast<int>(syscall(SYS_shutdown, fd, how));
        return result(done, errno);
    }
    if (what == "nonblock") {
        int on = 0;
        words >> on;
        const int done = ioctl(fd, FIONBIO, &on);
        return result(done, errno) + " " +
               ((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? "nonblocking" : "blocking");
    }
    if (what == "await") {
        std::size_t bytes = 0;
        words >> bytes;
        await_bytes(fd, bytes);
        return "there";
    }
    if (what == "ended" || what == "reset") {
        pollfd one{fd, static_cast<short>(what == "ended" ? POLLRDHUP : 0), 0};
        return std::to_string(poll(&one, 1, 5000));
    }
    if (what == "unread") {
        int bytes = -1;
        const int done = ioctl(fd, FIONREAD, &bytes);
        return result(done, errno) + " " + std::to_string(bytes);
    }
    if (what == "error") {
        int error = -1;
        socklen_t length = sizeof error;
        const int done = getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
        return result(done, errno) + " " + std::to_string(error);
    }
    if (what == "urgent") {  // there is none
        char byte;
        const long got = recv(fd, &byte, 1, MSG_OOB | MSG_DONTWAIT);
        return result(got, errno);
    }
    if (what == "linger") {
        linger now{};
        words >> now.l_onoff >> now.l_linger;
        const int done = setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        return result(done, errno);
    }
    if (what == "nodelay") {
        int on = 0;
        words >> on;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        socklen_t length = sizeof on;
        getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &length);
        return std::to_string(on);
    }
    if (what == "dup") {
        int number = 0;
        words >> number;
        const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        const int error = errno;
        if (copy >= 0) sockets[number] = copy;
        return result(copy < 0 ? -1 : 0, error);
    }
    if (what == "stdio") {
        FILE* const file = fdopen(dup(fd), "w");
        if (file == nullptr) return "no";
        const int done = std::fputs("through stdio", file);
        std::fclose(file);
        return done >= 0 ? "said" : "failed";
    }
    return "?";
}

/// So many at most: a call that needs one more fails.
std::string do_descriptors(Words& words) {
    int most = 0;
    words >> most;
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    const int next = dup(0);
    close(next);
    limit.rlim_cur = most != 0 ? static_cast<rlim_t>(next) : limit.rlim_max;
    const int done = setrlimit(RLIMIT_NOFILE, &limit);
    return result(done, errno);
}

std::string perform(const std::string& line) {
    Words words(line);
    std::string what;
    words >> what;
    if (what == "listen") return do_listen(words);
    if (what == "connect") return do_connect(words);
    if (what == "accept") return do_accept(words);
    if (what == "send") return do_send(words);
    if (what == "recv") return do_receive(words);
    if (what == "poll") return do_poll(words);
    if (what == "epoll") return do_epoll(words);
    if (what == "fork") return do_fork(words);
    if (what == "spawn") return do_spawn(words);
    if (what == "pass") return do_pass(words);
    if (what == "wait") return do_wait(words);
    if (what == "flood") return do_flood(words);
    if (what == "swallow") return do_swallow(words);
    if (what == "descriptors") return do_descriptors(words);
    if (what == "program") return do_program(words);
    if (what == "signals") return std::to_string(std::exchange(sigpipes, 0));
    if (what == "memory") return do_memory(words);
    if (what == "crowd_send") return do_crowd_send(words, socket_at(words));
    if (what == "crowd_told") return do_crowd_told(words, socket_at(words));
    if (what == "crowd_recv") return do_crowd_receive(words, socket_at(words));
    if (what == "reader") return do_reader(words, socket_at(words));
    if (what == "joined") return do_joined(socket_at(words));
    if (what == "close") return do_close(words);
    return do_other(what, words);
}

}  // namespace

int main() {
    struct sigaction action{};
    action.sa_handler = [](int) { ++sigpipes; };
    sigaction(SIGPIPE, &action, nullptr);
    char line[512];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        line[std::strcspn(line, "\n")] = 0;
        if (std::strcmp(line, "exit") == 0) return 0;
        std::printf("%s\n", perform(line).c_str());
        std::fflush(stdout);
    }
    return 0;
}
