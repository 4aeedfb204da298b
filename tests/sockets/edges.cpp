// No event is lost: a server that waits for an epoll set, and clients that ask at any moment of its
// round. Under libvia-sockets.so, or over the kernel.
//
//     via_sockets_edges memory|kernel REQUESTS [edge|level|alone|shared|handed|taken]
//
// `memory`: fails too if the bytes did not go through memory. The server: `edge` reads to EAGAIN on
// each event of an edge-triggered set; `level` once, `alone` of a single connection, where nothing
// that comes later hides what was lost; with `shared` several threads wait for one
// set, one-shot, and arm again what they have answered; with `handed` and `taken` one waits and
// another one answers, and arms again, or takes the socket out before and adds it.
#include <fcntl.h>
#include <sys/epoll.h>

#include <atomic>

#include "pair.hpp"

namespace {

constexpr int servers = 3;  // threads, with `shared`

/// Reads to EAGAIN, or once; false: the peer has ended.
bool answer_all(int fd, bool once) {
    std::array<char, 4096> bytes;
    std::size_t came = 0;
    do {
        const long got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got == 0) return false;
        if (got < 0 && errno != EAGAIN) fail("recv");
        if (got < 0) break;
        came += static_cast<std::size_t>(got);
    } while (!once);
    if (came % asked != 0) fail("part of a request");  // they are sent whole, one at a time
    for (std::size_t each = 0; each < came / asked; ++each) {
        if (send(fd, bytes.data(), answered, MSG_NOSIGNAL) != static_cast<long>(answered))
            fail("send");
    }
    return true;
}

class Server {
public:
    Server(int listener, std::string_view how, int clients)
        : how_(how), listener_(listener), clients_(clients), set_(epoll_create1(0)) {
        if (set_ < 0 || pipe(queue_) != 0 || pipe(end_) != 0) fail("epoll");
        control(EPOLL_CTL_ADD, listener, EPOLLIN);
        control(EPOLL_CTL_ADD, end_[0], EPOLLIN);
    }
    void run() {
        std::vector<std::thread> others;
        for (int n = 1; n < servers && how_ == "shared"; ++n)
            others.emplace_back([this] { wait(); });
        if (hands_on()) others.emplace_back([this] { answer_handed(); });
        wait();
        close(queue_[1]);
        for (std::thread& other : others) other.join();
    }

private:
    bool is_level() const { return how_ == "level" || how_ == "alone"; }
    bool hands_on() const { return how_ == "handed" || how_ == "taken"; }
    void control(int operation, int fd, std::uint32_t events) const {
        epoll_event event{events, {.fd = fd}};
        if (epoll_ctl(set_, operation, fd, &event) != 0) fail("epoll_ctl");
    }
    std::uint32_t events() const {
        if (is_level()) return EPOLLIN;
        return EPOLLIN | EPOLLRDHUP | EPOLLET |
               (how_ == "edge" ? 0u : static_cast<std::uint32_t>(EPOLLONESHOT));
    }
    void wait() {
        std::array<epoll_event, 4> events;
        for (;;) {
            const int count = epoll_wait(set_, events.data(), events.size(), -1);
            if (count < 0) fail("epoll_wait");
            for (int at = 0; at < count; ++at) {
                const int fd = events[static_cast<std::size_t>(at)].data.fd;
                if (fd == end_[0]) return;
                if (fd == listener_)
                    take_in();
                else if (hands_on())
                    write(queue_[1], &fd, sizeof fd) == sizeof fd ? void() : fail("write");
                else
                    answer(fd);
            }
        }
    }
    void take_in() {
        const int one = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
        if (one < 0 && errno == EAGAIN) return;  // another thread has it
        if (one < 0) fail("accept");
        control(EPOLL_CTL_ADD, one, events());
    }
    void answer(int fd) {
        if (how_ == "taken") control(EPOLL_CTL_DEL, fd, 0);
        if (answer_all(fd, is_level())) {
            if (how_ == "taken") control(EPOLL_CTL_ADD, fd, events());
            if (how_ == "shared" || how_ == "handed") control(EPOLL_CTL_MOD, fd, events());
            return;
        }
        close(fd);
        const bool last = ended_.fetch_add(1) + 1 == clients_;
        if (last && write(end_[1], "", 1) != 1) fail("write");
    }
    void answer_handed() {
        int fd;
        while (read(queue_[0], &fd, sizeof fd) == sizeof fd) answer(fd);
    }

    const std::string_view how_;
    const int listener_, clients_, set_;
    int queue_[2], end_[2];
    std::atomic<int> ended_{0};
};

}  // namespace

int main(int count, char** words) {
    if (count != 3 && count != 4) return 2;
    const bool through_memory = std::strcmp(words[1], "memory") == 0;
    const std::string_view how = count == 4 ? words[3] : "edge";
    const unsigned threads = how == "alone" ? 1 : 2;
    const int connections = how == "alone" ? 1 : 10;  // of each thread
    const int clients = static_cast<int>(threads) * connections;
    const int requests = std::atoi(words[2]) / static_cast<int>(threads);
    const auto serve = [&](int listener) {
        if (fcntl(listener, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
        Server(listener, how, clients).run();
    };
    return run_pair(clients, serve, [&](const sockaddr_in& server) {
        std::vector<std::thread> asking;
        for (unsigned n = 0; n < threads; ++n)
            asking.emplace_back(ask, server, requests / connections, connections, n + 1,
                                through_memory);
        for (std::thread& one : asking) one.join();
    });
}
