// Nobody sleeps for ever: threads of one process that wait for the same sockets in different ways.
// Under libvia-sockets.so, or over the kernel.
//
//     via_sockets_threads memory|kernel ROUNDS
//     moved|two_ways|divided|limited|cancelled|mixed|forked
//
// `memory`: fails too if the bytes did not go through memory. `moved`: each thread of a server
// waits for a set of its own, and takes idle connections over from the others', whose sets forget
// them when they next hear of them, as haproxy does. `two_ways`: one thread of each end writes
// while another one reads, and both sleep in between; `divided`: one process
// of each end, which have the connection by fork(). `limited`: a read
// that has a limit of time ends, ROUNDS times, however often another thread is woken. `cancelled`:
// a thread is, in its sleep. `mixed`: of a
// connection that two threads read others hear by poll(), select() and sets, and read nothing;
// `forked`: of two processes.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <atomic>

#include "pair.hpp"

namespace {

constexpr int servers = 3, connections = 8;

/// A connection of a server whose threads have sets of their own.
struct Taken {
    int fd = -1;
    /// Which thread has it, doubled, plus 1 while it answers; -1: it has ended.
    std::atomic<int> owner{-1};
};

class Threads {
public:
    explicit Threads(int listener) {
        if (pipe(end_) != 0) fail("pipe");
        for (int& set : sets_) {
            if ((set = epoll_create1(0)) < 0) fail("epoll_create1");
            epoll_event event{EPOLLIN, {.ptr = nullptr}};
            if (epoll_ctl(set, EPOLL_CTL_ADD, end_[0], &event) != 0) fail("epoll_ctl");
        }
        for (int at = 0; at < connections; ++at) {
            Taken& one = all_[static_cast<std::size_t>(at)];
            one.fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
            if (one.fd < 0) fail("accept");
            one.owner.store(at % servers * 2);
            wait_for(at % servers, one);
        }
    }
    void run() {
        std::vector<std::thread> others;
        for (int number = 1; number < servers; ++number)
            others.emplace_back([this, number] { wait(number); });
        wait(0);
        for (std::thread& other : others) other.join();
    }

private:
    int set_of(int thread) const { return sets_[static_cast<std::size_t>(thread)]; }
    void wait_for(int thread, Taken& one) const {
        epoll_event event{EPOLLIN, {.ptr = &one}};
        if (epoll_ctl(set_of(thread), EPOLL_CTL_ADD, one.fd, &event) != 0 &&
            (errno != EEXIST || epoll_ctl(set_of(thread), EPOLL_CTL_MOD, one.fd, &event) != 0))
            fail("epoll_ctl");
    }
    void wait(int thread) {
        std::minstd_rand random(static_cast<unsigned>(thread + 1));
        std::array<epoll_event, 4> events;
        for (;;) {
            const int count = epoll_wait(set_of(thread), events.data(), events.size(), -1);
            if (count < 0) fail("epoll_wait");
            for (int at = 0; at < count; ++at) {
                auto* const one =
                    static_cast<Taken*>(events[static_cast<std::size_t>(at)].data.ptr);
                if (one == nullptr) return;
                hear(thread, *one);
            }
            Taken& idle = all_[random() % connections];
            int other = static_cast<int>(random() % servers) * 2;
            if (other != thread * 2 && idle.owner.compare_exchange_strong(other, thread * 2))
                wait_for(thread, idle);
        }
    }
    void hear(int thread, Taken& one) {
        int mine = thread * 2;
        if (!one.owner.compare_exchange_strong(mine, thread * 2 + 1)) {
            if (mine >= 0 && epoll_ctl(set_of(thread), EPOLL_CTL_DEL, one.fd, nullptr) != 0 &&
                errno != ENOENT)
                fail("epoll_ctl");
            return;
        }
        std::array<char, answered> bytes{};
        const long got = recv(one.fd, bytes.data(), asked, 0);
        if (got < 0 && errno != EAGAIN) fail("recv");
        if (got > 0 && send(one.fd, bytes.data(), answered, MSG_NOSIGNAL) != answered) fail("send");
        one.owner.store(got == 0 ? -1 : thread * 2);
        if (got != 0) return;
        close(one.fd);
        if (ended_.fetch_add(1) + 1 == connections && write(end_[1], "", 1) != 1) fail("write");
    }

    std::array<int, servers> sets_;
    std::array<Taken, connections> all_;
    int end_[2];
    std::atomic<int> ended_{0};
};

/// Threads that wait for one connection, of which two read.
class Mixed {
public:
    explicit Mixed(int fd) : fd_(fd) {}
    void run(bool forked) {
        for (int round = 0; round < 100; ++round) answer();
        const pid_t child = forked ? fork() : 0;
        if (child < 0) fail("fork");
        std::vector<std::thread> all;
        for (int n = 0; n < 2; ++n)
            all.emplace_back([this] {
                while (!ended_) answer();
            });
        all.emplace_back([this] { look_by_poll(); });
        all.emplace_back([this] { look_by_select(); });
        for (const std::uint32_t how : {0u, static_cast<std::uint32_t>(EPOLLET)})
            all.emplace_back([this, how] { look_by_set(EPOLLIN | how); });
        for (std::thread& one : all) one.join();
        if (!forked) return;
        if (child == 0) std::_Exit(0);
        if (waitpid(child, nullptr, 0) != child) fail("waitpid");
    }

private:
    static constexpr int limit_ms = 200;  // of those that look: the kernel may not wake them, too
    /// Sometimes it asks again at once, and sometimes so late that others have read.
    void rest(std::minstd_rand& random) const {
        if (random() % 4 == 0) usleep(static_cast<useconds_t>(random() % 100));
    }
    void answer() {
        std::array<char, answered> bytes{};
        const long got = recv(fd_, bytes.data(), asked, 0);
        if (got < 0 || got % asked != 0) fail("recv");
        if (got == 0) ended_ = true;
        if (got > 0 && send(fd_, bytes.data(), answered, MSG_NOSIGNAL) != answered) fail("send");
    }
    void look_by_poll() {
        std::minstd_rand random(1);
        while (!ended_) {
            pollfd one{fd_, POLLIN, 0};
            if (poll(&one, 1, limit_ms) < 0) fail("poll");
            rest(random);
        }
    }
    void look_by_select() {
        std::minstd_rand random(2);
        while (!ended_) {
            fd_set reads;
            FD_ZERO(&reads);
            FD_SET(fd_, &reads);
            timeval limit{0, limit_ms * 1000};
            if (select(fd_ + 1, &reads, nullptr, nullptr, &limit) < 0) fail("select");
            rest(random);
        }
    }
    void look_by_set(std::uint32_t events) {
        std::minstd_rand random(events);
        const int set = epoll_create1(0);
        while (!ended_) {
            epoll_event event{events, {.fd = fd_}};
            if (epoll_ctl(set, EPOLL_CTL_ADD, fd_, &event) != 0) fail("epoll_ctl");
            for (int turn = 0; turn < 50 && !ended_; ++turn) {
                if (epoll_wait(set, &event, 1, limit_ms) < 0) fail("epoll_wait");
                rest(random);
            }
            if (epoll_ctl(set, EPOLL_CTL_DEL, fd_, nullptr) != 0) fail("epoll_ctl");
        }
        close(set);
    }

    const int fd_;
    std::atomic<bool> ended_{false};
};

/// Until the other end closes.
void read_in_steps(int fd) {
    std::vector<char> bytes(100'000);
    while (recv(fd, bytes.data(), bytes.size(), 0) > 0) usleep(1000);
    close(fd);
}

void read_with_limit(int fd, int rounds) {
    const timeval limit{0, 50'000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::atomic<bool> ended{false};
    std::thread writer([&] {
        const std::vector<char> bytes(1'000'000);
        while (!ended)
            if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) fail("send");
    });
    for (int round = 0; round < rounds; ++round) {
        std::array<char, asked> bytes;
        const int flags = round % 2 == 0 ? 0 : MSG_WAITALL;
        if (recv(fd, bytes.data(), bytes.size(), flags) >= 0 || errno != EAGAIN)
            fail("something has come");
    }
    ended = true;
    writer.join();
    close(fd);
}

/// This process writes, and its child reads.
void divide(int fd, int rounds, bool through_memory) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
        read_stream(fd, rounds);
        check_way(fd, through_memory, static_cast<std::uint64_t>(rounds) * of_round);
        std::_Exit(0);
    }
    write_stream(fd, rounds);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) fail("the reading process");
}

constexpr int exchanged_after = 10;

/// After one exchange more each time: the connection may be on its way into memory.
void cancel_reader(const sockaddr_in& server, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const int fd = connected(server);
        exchange(fd, true, round);
        std::thread reader([fd] {
            char byte;
            recv(fd, &byte, 1, 0);
            fail("nothing was sent");
        });
        usleep(5000);
        if (pthread_cancel(reader.native_handle()) != 0) fail("pthread_cancel");
        reader.join();
        exchange(fd, true, exchanged_after);
        close(fd);
    }
}

void answer_cancelled(int listener, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const int fd = accepted(listener);
        exchange(fd, false, round + exchanged_after);
        close(fd);
    }
}

}  // namespace

int main(int count, char** words) {
    const auto [through_memory, rounds, what] = asked_for(count, words);
    const auto serve = [&](int listener) {
        if (what == "moved") return Threads(listener).run();
        if (what == "cancelled") return answer_cancelled(listener, rounds);
        const int fd = accepted(listener);
        if (what == "mixed" || what == "forked") return Mixed(fd).run(what == "forked");
        warm_up(fd, false, through_memory);
        if (what == "divided") return divide(fd, rounds, through_memory);
        if (what == "limited") return read_with_limit(fd, rounds);
        const timeval limit{100, 0};  // other calls sleep then
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        move_both_ways(fd, rounds);
        check_way(fd, through_memory, static_cast<std::uint64_t>(rounds) * of_round);
    };
    return run_pair(connections, serve, [&](const sockaddr_in& server) {
        if (what == "moved") return ask(server, rounds, connections, 7, through_memory);
        if (what == "cancelled") return cancel_reader(server, rounds);
        if (what == "mixed" || what == "forked") return ask(server, rounds, 1, 7, through_memory);
        const int fd = connected(server);
        warm_up(fd, true, through_memory);
        if (what == "divided") return divide(fd, rounds, through_memory);
        if (what == "limited") return read_in_steps(fd);
        move_both_ways(fd, rounds);
    });
}
