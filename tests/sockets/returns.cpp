// Connections that go back to the kernel while threads sleep in them: the peer starts a program
// that inherits the socket. Under libvia-sockets.so, or over the kernel.
//
//     via_sockets_returns memory|kernel CONNECTIONS writing|polling|level|edge|both_ways
//
// `memory`: fails too if the bytes did not go through memory before. A thread sleeps in a write, or
// in poll(), or for a set, level- or edge-triggered, until there is room; or two at each end write
// and read, and either one starts the program.
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>

#include "pair.hpp"

namespace {

constexpr std::size_t written = 12'000'000;

void read_slowly(const sockaddr_in& server, int rounds, bool through_memory) {
    std::minstd_rand random(11);
    std::vector<char> bytes(200'000);
    for (int round = 0; round < rounds; ++round) {
        const int fd = connected(server);
        warm_up(fd, true, through_memory);
        usleep(10'000);
        for (std::size_t done = 0; done < written;) {
            const long got = recv(fd, bytes.data(), random() % bytes.size() + 1, 0);
            if (got <= 0) fail("bytes have not come");
            done += static_cast<std::size_t>(got);
            if (random() % 5 == 0) usleep(1000);
        }
        if (send(fd, bytes.data(), 1, 0) != 1) fail("send");
        close(fd);
    }
}

/// Until there is room.
void wait_for_room(int fd, int set, std::string_view how) {
    pollfd room{fd, POLLOUT, 0};
    epoll_event event{};
    if (how == "polling" && poll(&room, 1, -1) != 1) fail("poll");
    // A thread that starts a program interrupts the others of its process for a moment.
    if (set >= 0 && epoll_wait(set, &event, 1, -1) != 1 && errno != EINTR) fail("epoll_wait");
}

void write_all(int fd, std::string_view how) {
    const std::vector<char> bytes(written);
    int set = -1;
    if (how == "level" || how == "edge") {
        set = epoll_create1(EPOLL_CLOEXEC);
        const auto edge = static_cast<std::uint32_t>(EPOLLET);
        epoll_event event{EPOLLOUT | (how == "edge" ? edge : 0u), {.fd = fd}};
        if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
    }
    const int flags = how == "writing" ? 0 : MSG_DONTWAIT;
    for (std::size_t done = 0; done < written;) {
        const long sent = send(fd, bytes.data() + done, written - done, flags);
        if (sent < 0 && errno != EAGAIN) fail("send");
        if (sent > 0)
            done += static_cast<std::size_t>(sent);
        else
            wait_for_room(fd, set, how);
    }
    if (set >= 0) close(set);
}

void start_program(unsigned long after_us) {
    usleep(static_cast<useconds_t>(after_us));
    char name[] = "true";
    char* const words[] = {name, nullptr};
    pid_t child = 0;
    if (posix_spawnp(&child, name, nullptr, nullptr, words, environ) != 0) fail("posix_spawn");
    if (waitpid(child, nullptr, 0) != child) fail("waitpid");
}

void start_programs(int listener, int rounds, std::string_view how, bool through_memory) {
    std::minstd_rand random(13);
    for (int round = 0; round < rounds; ++round) {
        const int fd = accepted(listener);
        warm_up(fd, false, through_memory);
        std::thread writer([=] { write_all(fd, how); });
        start_program(random() % 40'000);
        writer.join();
        char byte = 0;
        if (recv(fd, &byte, 1, 0) != 1) fail("recv");
        close(fd);
    }
}

/// This end starts a program in one connection, the other end in the next one.
void move_and_start(int fd, bool starts, std::minstd_rand& random) {
    const auto after_us = random() % 3000;
    std::thread starter([=] {
        if (starts) start_program(after_us);
    });
    move_both_ways(fd, 500);
    starter.join();
    close(fd);
}

}  // namespace

int main(int count, char** words) {
    const auto [through_memory, rounds, what] = asked_for(count, words);
    std::minstd_rand random(17);
    const auto serve = [&](int listener) {
        if (what != "both_ways") return start_programs(listener, rounds, what, through_memory);
        for (int round = 0; round < rounds; ++round) {
            const int fd = accepted(listener);
            warm_up(fd, false, through_memory);
            move_and_start(fd, round % 2 == 0, random);
        }
    };
    return run_pair(1, serve, [&](const sockaddr_in& server) {
        if (what != "both_ways") return read_slowly(server, rounds, through_memory);
        for (int round = 0; round < rounds; ++round) {
            const int fd = connected(server);
            warm_up(fd, true, through_memory);
            move_and_start(fd, round % 2 == 1, random);
        }
    });
}
