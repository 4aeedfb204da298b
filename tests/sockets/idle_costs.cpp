// What a wait for an epoll set costs beside connections that are idle: both ends in one thread, so
// that callgrind counts the same instructions each time. Run by idle_costs.py under
// libvia-sockets.so.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../counts/measured.hpp"

namespace {

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
    std::_Exit(1);
}

struct Connection {
    int client, server;
};

struct World {
    int set = epoll_create1(0);
    std::vector<Connection> open;
};

std::array<char, 64> bytes;

void move(int from, int to) {
    if (send(from, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<long>(bytes.size()) ||
        recv(to, bytes.data(), bytes.size(), MSG_WAITALL) != static_cast<long>(bytes.size()))
        fail("a message did not come");
}

std::uint64_t kernel_received(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) fail("TCP_INFO");
    return info.tcpi_bytes_received;
}

/// Meets its other end, and is heard of by the set once.
void open_one(World& world, int listener) {
    constexpr int turns = 20;
    sockaddr_in address{};
    socklen_t length = sizeof address;
    Connection one{socket(AF_INET, SOCK_STREAM, 0), -1};
    if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
        connect(one.client, reinterpret_cast<const sockaddr*>(&address), length) != 0)
        fail("connect");
    one.server = accept(listener, nullptr, nullptr);
    for (int turn = 0; turn < turns; ++turn) {
        move(one.client, one.server);
        move(one.server, one.client);
    }
    if (kernel_received(one.server) > turns / 2 * bytes.size()) fail("the bytes were the kernel's");
    epoll_event event{EPOLLIN, {.fd = one.server}};
    if (epoll_ctl(world.set, EPOLL_CTL_ADD, one.server, &event) != 0) fail("epoll_ctl");
    world.open.push_back(one);
}

void pass(World& world) {
    const Connection& one = world.open.front();
    std::array<epoll_event, 16> events;
    if (send(one.client, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 ||
        epoll_wait(world.set, events.data(), events.size(), 1000) != 1 ||
        events[0].data.fd != one.server || recv(one.server, bytes.data(), bytes.size(), 0) < 0)
        fail("a message was not told of");
}

}  // namespace

VIA_MEASURED void measured_beside_10(World& world) { pass(world); }
VIA_MEASURED void measured_beside_1000(World& world) { pass(world); }

VIA_MEASURED void counted_phase(World& world, void (*measured)(World&)) {
    for (unsigned n = 0; n < messages_counted; ++n) measured(world);
}

int main() {
    World world;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = descriptors.rlim_max;  // both ends of 1,000
    if (setrlimit(RLIMIT_NOFILE, &descriptors) != 0) fail("setrlimit");
    if (listener < 0 || listen(listener, 10) != 0) fail("listen");
    const auto measure = [&](std::size_t count, void (*measured)(World&)) {
        while (world.open.size() < count) open_one(world, listener);
        for (unsigned n = 0; n < messages_warm; ++n) pass(world);
        for (unsigned phase = 0; phase < phases; ++phase) counted_phase(world, measured);
    };
    measure(10, measured_beside_10);
    measure(1000, measured_beside_1000);
    return 0;
}
