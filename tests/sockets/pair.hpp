// A connection of this process and one that it starts.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
    std::_Exit(1);
}

/// The words of a program: memory|kernel HOW-OFTEN WHAT
struct Asked {
    bool through_memory;
    int rounds;
    std::string_view what;
};
inline Asked asked_for(int count, char** words) {
    if (count != 4) std::_Exit(2);
    return {std::strcmp(words[1], "memory") == 0, std::atoi(words[2]), words[3]};
}

/// Below it all bytes may be the kernel's.
inline void check_way(int fd, bool through_memory, std::uint64_t received) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) fail("TCP_INFO");
    errno = 0;
    if (through_memory && info.tcpi_bytes_received > received / 2)
        fail("the bytes were the kernel's");
}

inline int connected(const sockaddr_in& server) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0)
        fail("connect");
    return fd;
}

/// `serve` a listening socket, while a process of its own does `ask`; ends with both, or by a
/// signal when they stand still.
template <class Serve, class Ask>
int run_pair(int backlog, const Serve& serve, const Ask& ask) {
    constexpr unsigned patience_s = 200;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener, backlog) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        fail("listen");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    alarm(patience_s);
    if (child == 0) {
        ask(address);
        std::_Exit(0);
    }
    serve(listener);
    int status = 0;
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    return status == 0 ? 0 : 1;
}

inline int accepted(int listener) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) fail("accept");
    return fd;
}

constexpr std::size_t asked = 112;
constexpr std::size_t answered = 739;

/// Each request at another moment; the answers of a round are read when all have been asked for.
inline void ask(const sockaddr_in& server, int rounds, int connections, unsigned seed,
                bool through_memory) {
    constexpr timeval patience{30, 0};
    std::vector<int> sockets;
    for (int n = 0; n < connections; ++n) {
        sockets.push_back(connected(server));
        if (setsockopt(sockets.back(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
            fail("setsockopt");
    }
    std::minstd_rand random(seed);
    std::array<char, answered> bytes{};
    for (int round = 0; round < rounds; ++round) {
        for (const int fd : sockets) {
            if (send(fd, bytes.data(), asked, MSG_NOSIGNAL) != asked) fail("send");
            for (std::uint64_t turns = random() % 2000; turns > 0; --turns)
                std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        for (const int fd : sockets)
            if (recv(fd, bytes.data(), answered, MSG_WAITALL) != answered)
                fail("an answer has not come");
    }
    for (const int fd : sockets) {
        check_way(fd, through_memory, static_cast<std::uint64_t>(rounds) * answered);
        close(fd);
    }
}

inline void exchange(int fd, bool begins, int rounds) {
    std::array<char, asked> bytes{};
    for (int half = begins ? 0 : 1; half < 2 * rounds + (begins ? 0 : 1); ++half) {
        if (half % 2 == 0 && send(fd, bytes.data(), asked, 0) != asked) fail("send");
        if (half % 2 == 1 && recv(fd, bytes.data(), asked, MSG_WAITALL) != asked) fail("recv");
    }
}

/// Bytes go both ways until they go through memory.
inline void warm_up(int fd, bool begins, bool through_memory) {
    constexpr int rounds = 50;
    exchange(fd, begins, rounds);
    if (!begins) check_way(fd, through_memory, rounds * asked);
}

constexpr std::size_t of_round = 4096;
/// 4 KB a round, in pieces of random lengths.
inline void write_stream(int fd, int rounds) {
    const std::size_t all = static_cast<std::size_t>(rounds) * of_round;
    std::minstd_rand random(3);
    std::vector<char> bytes(16 * of_round);
    for (std::size_t done = 0; done < all;) {
        const std::size_t length = std::min(random() % bytes.size() + 1, all - done);
        for (std::size_t at = 0; at < length; ++at)
            bytes[at] = static_cast<char>((done + at) % 251);
        if (send(fd, bytes.data(), length, MSG_NOSIGNAL) != static_cast<long>(length)) fail("send");
        done += length;
    }
}

inline void read_stream(int fd, int rounds) {
    const std::size_t all = static_cast<std::size_t>(rounds) * of_round;
    std::vector<char> bytes(32 * of_round);
    std::minstd_rand random(5);
    for (std::size_t done = 0; done < all;) {
        const long got = recv(fd, bytes.data(), random() % bytes.size() + 1, 0);
        if (got <= 0) fail("bytes have not come");
        for (std::size_t at = 0; at < static_cast<std::size_t>(got); ++at)
            if (bytes[at] != static_cast<char>((done + at) % 251)) fail("another byte");
        done += static_cast<std::size_t>(got);
    }
}

/// One thread a direction.
inline void move_both_ways(int fd, int rounds) {
    std::thread writer([=] { write_stream(fd, rounds); });
    read_stream(fd, rounds);
    writer.join();
}
