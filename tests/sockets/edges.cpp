// No edge is lost: a server that reads to EAGAIN on each event of an edge-triggered set, and
// clients that ask at any moment of its round. Under libvia-sockets.so, or over the kernel.
//
//     via_sockets_edges memory|kernel REQUESTS
//
// `memory`: fails too if the bytes did not go through memory.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
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
#include <thread>
#include <vector>

namespace {

constexpr std::size_t asked = 112;
constexpr std::size_t answered = 739;
constexpr int threads = 2;
constexpr int connections = 10;  // of each thread

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
    std::_Exit(1);
}

/// Reads to EAGAIN; false: the peer has ended.
bool answer_all(int fd) {
    std::array<char, 4096> bytes;
    std::size_t came = 0;
    for (;;) {
        const long got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0) return false;
        if (got < 0 && errno != EAGAIN) fail("recv");
        if (got < 0) break;
        came += static_cast<std::size_t>(got);
    }
    if (came % asked != 0) fail("part of a request");  // they are sent whole, one at a time
    for (std::size_t each = 0; each < came / asked; ++each) {
        if (send(fd, bytes.data(), answered, MSG_NOSIGNAL) != static_cast<long>(answered))
            fail("send");
    }
    return true;
}

void serve(int listener) {
    const int set = epoll_create1(0);
    epoll_event event{EPOLLIN, {.fd = listener}};
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) != 0) fail("epoll");
    for (int open = -1; open != 0;) {
        std::array<epoll_event, 64> events;
        const int count = epoll_wait(set, events.data(), events.size(), -1);
        if (count < 0) fail("epoll_wait");
        for (int at = 0; at < count; ++at) {
            const int fd = events[static_cast<std::size_t>(at)].data.fd;
            if (fd == listener) {
                const int one = accept(listener, nullptr, nullptr);
                event = {EPOLLIN | EPOLLRDHUP | EPOLLET, {.fd = one}};
                if (one < 0 || epoll_ctl(set, EPOLL_CTL_ADD, one, &event) != 0) fail("accept");
                open = open < 0 ? 1 : open + 1;
            } else if (!answer_all(fd)) {
                close(fd);
                --open;
            }
        }
    }
}

std::uint64_t kernel_received(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) fail("TCP_INFO");
    return info.tcpi_bytes_received;
}

/// Each request at another moment; the answers of a round are read when all have been asked for.
void ask(const sockaddr_in& server, int requests, unsigned seed, bool through_memory) {
    std::vector<int> sockets;
    for (int n = 0; n < connections; ++n) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        const timeval limit{30, 0};
        if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
            fail("connect");
        sockets.push_back(fd);
    }
    std::minstd_rand random(seed);
    std::array<char, answered> bytes{};
    for (int round = 0; round < requests / connections; ++round) {
        for (const int fd : sockets) {
            if (send(fd, bytes.data(), asked, MSG_NOSIGNAL) != static_cast<long>(asked))
                fail("send");
            for (std::uint64_t turns = random() % 2000; turns > 0; --turns)
                std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        for (const int fd : sockets) {
            if (recv(fd, bytes.data(), answered, MSG_WAITALL) != static_cast<long>(answered))
                fail("an answer has not come");
        }
    }
    for (const int fd : sockets) {
        const std::uint64_t all = static_cast<std::uint64_t>(requests / connections) * answered;
        errno = 0;
        if (through_memory && kernel_received(fd) > all / 2) fail("the bytes were the kernel's");
        close(fd);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) return 2;
    const bool through_memory = std::strcmp(words[1], "memory") == 0;
    const int requests = std::atoi(words[2]) / threads;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        listen(listener, threads * connections) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
        fail("listen");
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        std::vector<std::thread> clients;
        for (unsigned n = 0; n < threads; ++n)
            clients.emplace_back(ask, address, requests, n + 1, through_memory);
        for (std::thread& client : clients) client.join();
        std::_Exit(0);
    }
    serve(listener);
    int status = 0;
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    return status == 0 ? 0 : 1;
}
