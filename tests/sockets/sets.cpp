// What a program may do with an epoll set beside waiting for it: few events at a time, a second
// descriptor of it, fork(), exec(), giving it away, system calls of its own. Under
// libvia-sockets.so, or over the kernel, which says what is right.
//
//     via_sockets_sets memory|kernel WHAT
//
// `memory`: fails too if the bytes did not go through memory when the scene began.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace {

constexpr int patience_ms = 20000;
bool through_memory = false;
const char* program = nullptr;

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
    std::_Exit(1);
}
void check(bool right, const std::string& what) {
    if (!right) fail(what);
}

std::array<char, 64> bytes;

void move(int from, int to) {
    const auto length = static_cast<long>(bytes.size());
    check(send(from, bytes.data(), bytes.size(), MSG_NOSIGNAL) == length, "send");
    check(recv(to, bytes.data(), bytes.size(), MSG_WAITALL) == length, "recv");
}

std::uint64_t kernel_received(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    check(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0, "TCP_INFO");
    return info.tcpi_bytes_received;
}

/// A connection, and whether its bytes go through memory now.
struct Connection {
    int client, server;

    void say(char what = 'x') const { check(send(client, &what, 1, MSG_NOSIGNAL) == 1, "say"); }
    char hear() const {
        char byte = 0;
        check(recv(server, &byte, 1, 0) == 1, "hear");
        return byte;
    }
    void must_be_in_memory() const {
        if (!through_memory) return;
        const std::uint64_t before = kernel_received(server);
        for (int turn = 0; turn < 4; ++turn) move(client, server);
        // Of bytes that wake there may be a few.
        check(kernel_received(server) < before + bytes.size(), "the bytes are the kernel's");
    }
};

Connection connected(int flags = SOCK_CLOEXEC) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const auto at = reinterpret_cast<sockaddr*>(&address);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(listener, at, length) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, at, &length) == 0,
          "listen");
    Connection one{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
    check(connect(one.client, at, length) == 0, "connect");
    one.server = accept4(listener, nullptr, nullptr, flags);
    close(listener);
    const int on = 1;  // what is said has come when say() returns
    check(setsockopt(one.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    for (int turn = 0; turn < 10; ++turn) {
        move(one.client, one.server);
        move(one.server, one.client);
    }
    one.must_be_in_memory();
    return one;
}

void control(int set, int operation, int fd, std::uint32_t events, std::uint64_t data) {
    epoll_event event{events, {.u64 = data}};
    check(epoll_ctl(set, operation, fd, &event) == 0, "epoll_ctl");
}

std::map<std::uint64_t, std::uint32_t> ready(int set, int ms, int most = 16) {
    std::array<epoll_event, 16> events{};
    const int count = epoll_wait(set, events.data(), most, ms);
    check(count >= 0, "epoll_wait");
    std::map<std::uint64_t, std::uint32_t> found;
    for (int at = 0; at < count; ++at)
        found[events[static_cast<std::size_t>(at)].data.u64] =
            events[static_cast<std::size_t>(at)].events;
    return found;
}

/// One event comes, and it is this one.
void expect(int set, std::uint64_t data, std::uint32_t events = EPOLLIN) {
    const auto found = ready(set, patience_ms);
    check(found.size() == 1 && found.begin()->first == data && found.begin()->second == events,
          "event " + std::to_string(data) + ": " + std::to_string(found.size()) + " came, first " +
              (found.empty() ? "" : std::to_string(found.begin()->first)));
}
void expect_none(int set) { check(ready(set, 0).empty(), "nothing is to be told"); }

/// A word between processes, in order.
class Steps {
public:
    Steps() {
        check(pipe2(to_child_, O_CLOEXEC) == 0 && pipe2(to_parent_, O_CLOEXEC) == 0, "pipe");
    }
    void to_child() const { write_to(to_child_[1]); }
    void to_parent() const { write_to(to_parent_[1]); }
    void of_child() const { read_from(to_parent_[0]); }
    void of_parent() const { read_from(to_child_[0]); }

private:
    static void write_to(int fd) { check(write(fd, "", 1) == 1, "write"); }
    static void read_from(int fd) {
        char byte;
        check(read(fd, &byte, 1) == 1, "the other process has ended");
    }
    int to_child_[2], to_parent_[2];
};

pid_t child_that(const std::function<void()>& does) {
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child != 0) return child;
    does();
    std::_Exit(0);
}
void must_end_well(pid_t child) {
    int status = 0;
    check(waitpid(child, &status, 0) == child && status == 0, "the other process");
}

int new_set(int flags = EPOLL_CLOEXEC) { return epoll_create1(flags); }

// --- few events at a time

/// Who waits for room alone hears of it though there are bytes, and the socket is in another set.
void room_beside_bytes() {
    const Connection one = connected();
    const int set = new_set();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLOUT, 1);
    control(new_set(), EPOLL_CTL_ADD, one.server, EPOLLIN, 2);
    one.say();
    std::string much(1 << 20, 'x');
    for (int round = 0; round < 20; ++round) {
        long sent = 0;
        for (long some = 0; some >= 0; sent += std::max(some, 0L))
            some = send(one.server, much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        expect_none(set);
        const Steps steps;
        const pid_t child = child_that([&] {
            steps.of_parent();
            while (sent > 0) {
                const long got = recv(one.client, much.data(), much.size(), 0);
                check(got > 0, "recv");
                sent -= got;
            }
        });
        steps.to_child();
        expect(set, 1, EPOLLOUT);
        must_end_well(child);
    }
}

/// All that is ready is told within two rounds, however few events a call takes. Nothing is read.
void few() {
    for (const int most : {1, 2, 3}) {
        const int set = new_set();
        std::uint64_t count = 0;
        for (int n = 0; n < 2; ++n) {
            int pipes[2];
            check(pipe(pipes) == 0 && write(pipes[1], "", 1) == 1, "pipe");
            control(set, EPOLL_CTL_ADD, pipes[0], EPOLLIN, count++);
        }
        const int other = new_set();
        for (int n = 0; n < 4; ++n) {
            const Connection one = connected();
            control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, count++);
            if (n >= 2) control(other, EPOLL_CTL_ADD, one.server, EPOLLIN, 0);
            one.say();
        }
        std::set<std::uint64_t> told;
        for (std::uint64_t turn = 0; turn < 2 * count; ++turn)
            for (const auto& [data, events] : ready(set, 0, most)) told.insert(data);
        check(told.size() == count,
              std::to_string(told.size()) + " of what is ready with " + std::to_string(most));
    }
}

/// An edge beside what is always ready is told, and once.
void few_edges() {
    const int set = new_set();
    int pipes[2];
    check(pipe(pipes) == 0 && write(pipes[1], "", 1) == 1, "pipe");
    control(set, EPOLL_CTL_ADD, pipes[0], EPOLLIN, 1);
    const Connection one = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN | EPOLLET, 2);
    ready(set, 0);
    for (int round = 0; round < 50; ++round) {
        one.say();
        int edges = 0;
        int levels = 0;
        for (int turn = 0; turn < 6; ++turn) {
            const auto found = ready(set, 0, 1);
            check(found.size() == 1, "one of what is ready");
            (found.contains(2) ? edges : levels) += 1;
        }
        check(edges >= 1 && edges <= 2 && levels >= 3, std::to_string(edges) + " edges");
        one.hear();
    }
}

// --- a second descriptor

void copied() {
    const int set = new_set();
    const int copy = fcntl(set, F_DUPFD_CLOEXEC, 0);
    const Connection one = connected();
    control(copy, EPOLL_CTL_ADD, one.server, EPOLLIN, 11);  // as mio does
    expect_none(set);
    one.say();
    expect(set, 11);
    expect(copy, 11);
    one.hear();
    expect_none(set);
    one.must_be_in_memory();
    const Connection two = connected();
    control(set, EPOLL_CTL_ADD, two.server, EPOLLIN | EPOLLONESHOT, 12);
    const pid_t child = child_that([&] { two.say(); });
    expect(copy, 12);
    must_end_well(child);
    two.hear();
    control(copy, EPOLL_CTL_MOD, two.server, EPOLLIN, 13);
    close(set);
    two.say();
    expect(copy, 13);
    two.hear();
    const int third = dup2(copy, new_set());
    close(copy);
    one.say();
    expect(third, 11);
    one.hear();
    control(third, EPOLL_CTL_DEL, one.server, 0, 0);
    one.say();
    expect_none(third);
    two.must_be_in_memory();
}

/// A thread that sleeps is woken, by way of the set's other descriptor, too.
void copied_sleeper() {
    const int set = new_set();
    const int copy = dup(set);
    const Connection one = connected();
    const Steps steps;
    const pid_t child = child_that([&] {
        for (int n = 0; n < 200; ++n) {
            steps.of_parent();
            one.say();
        }
    });
    control(copy, EPOLL_CTL_ADD, one.server, EPOLLIN, 14);
    for (int n = 0; n < 200; ++n) {
        steps.to_child();
        expect(n % 2 == 0 ? set : copy, 14);
        one.hear();
        control(n % 3 == 0 ? set : copy, EPOLL_CTL_MOD, one.server, EPOLLIN, 14);
    }
    must_end_well(child);
}

// --- several processes

/// What one adds, changes and takes out the other sees; numbers of ours mean the same to neither.
void forked() {
    const int set = new_set();
    const Connection one = connected();
    const Connection two = connected();
    const Connection three = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    const Steps steps;
    const pid_t child = child_that([&] {
        steps.of_parent();  // it has added the second
        one.say();
        expect(set, 21);
        check(one.hear() == 'x', "byte");
        two.say();
        expect(set, 22);
        two.hear();
        control(set, EPOLL_CTL_ADD, three.server, EPOLLIN, 23);
        control(set, EPOLL_CTL_MOD, one.server, EPOLLIN, 31);
        steps.to_parent();
        steps.of_parent();
        expect_none(set);  // the parent has taken the second out
        three.say();
        expect(set, 23);
    });
    control(set, EPOLL_CTL_ADD, two.server, EPOLLIN, 22);
    expect_none(set);
    steps.to_child();
    steps.of_child();
    one.say();
    expect(set, 31);
    one.hear();
    three.say();
    expect(set, 23);
    three.hear();
    two.say();
    expect(set, 22);
    control(set, EPOLL_CTL_DEL, two.server, 0, 0);
    steps.to_child();
    must_end_well(child);
    expect(set, 23);
}

/// The parent sleeps in the set when its child begins to use it.
void forked_sleeper() {
    const int set = new_set();
    const Connection one = connected();
    const Connection two = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    const Steps steps;
    const pid_t child = child_that([&] {
        steps.of_parent();
        control(set, EPOLL_CTL_ADD, two.server, EPOLLIN, 22);
        two.say('2');
        steps.of_parent();
        one.say('1');
        steps.of_parent();
    });
    steps.to_child();
    expect(set, 22);
    check(two.hear() == '2', "byte");
    steps.to_child();
    expect(set, 21);
    check(one.hear() == '1', "byte");
    steps.to_child();
    must_end_well(child);
}

/// One-shot: whoever is told first has it, until somebody arms it again.
void forked_oneshot() {
    const int set = new_set();
    const Connection one = connected();
    const Connection two = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN | EPOLLONESHOT, 21);
    control(set, EPOLL_CTL_ADD, two.server, EPOLLIN | EPOLLONESHOT, 22);
    one.say();
    expect(set, 21);
    const Steps steps;
    const pid_t child = child_that([&] {
        steps.of_parent();
        expect_none(set);
        two.say();
        expect(set, 22);
        steps.to_parent();
        steps.of_parent();
        expect_none(set);
        control(set, EPOLL_CTL_MOD, two.server, EPOLLIN, 32);
        steps.to_parent();
    });
    steps.to_child();
    steps.of_child();
    expect_none(set);
    control(set, EPOLL_CTL_MOD, one.server, EPOLLIN | EPOLLONESHOT, 31);
    expect(set, 31);
    steps.to_child();
    steps.of_child();
    expect(set, 32);
    must_end_well(child);
}

/// A server that goes into the background: the set is its child's alone.
void left_by_parent() {
    int result[2];
    check(pipe(result) == 0, "pipe");
    const pid_t server = child_that([&] {
        const int set = new_set();
        const Connection one = connected();
        control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
        const pid_t parent = getpid();
        child_that([&] {
            while (getppid() == parent) sched_yield();
            const Connection two = connected();
            control(set, EPOLL_CTL_ADD, two.server, EPOLLIN | EPOLLET, 22);
            for (const auto& [each, data] : {std::pair{one, 21u}, {two, 22u}}) {
                for (int n = 0; n < 10; ++n) {
                    each.say();
                    expect(set, data);
                    each.hear();
                }
                each.must_be_in_memory();
                ready(set, 0);  // an edge may be told once more
            }
            check(write(result[1], "!", 1) == 1, "write");
        });
        _exit(0);
    });
    must_end_well(server);
    close(result[1]);
    char byte = 0;
    check(read(result[0], &byte, 1) == 1 && byte == '!', "the grandchild");
}

/// A child that does nothing to the set leaves it as fast as it was.
void unused_by_child() {
    const int set = new_set();
    const Connection one = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    const pid_t child = child_that([&] { close(set); });
    const Connection two = connected();
    control(set, EPOLL_CTL_ADD, two.server, EPOLLIN, 22);
    must_end_well(child);
    for (const Connection& each : {one, two}) {
        each.say();
        check(ready(set, patience_ms).size() == 1, "one event");
        each.hear();
        each.must_be_in_memory();
    }
}

// --- other programs

/// This program again: waits for the set that it has inherited.
void started(char** words) {
    const int set = std::atoi(words[0]);
    const Connection one{-1, std::atoi(words[1])};
    expect(set, 21);
    check(one.hear() == 'a', "byte");
    control(set, EPOLL_CTL_MOD, one.server, EPOLLIN, 22);
    expect(set, 22);
    check(one.hear() == 'b', "byte");
}

void execed() {
    const int set = new_set(0);
    const Connection one = connected(0);
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    one.say('a');
    one.say('b');
    const pid_t child = fork();
    if (child == 0) {
        execl(program, program, "started", std::to_string(set).c_str(),
              std::to_string(one.server).c_str(), nullptr);
        fail("exec");
    }
    must_end_well(child);
    expect_none(set);
    one.say('c');
    expect(set, 22);
}

/// To a process that knows nothing of it.
void passed() {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        cmsghdr align;
    } rights{};
    char byte = 0;
    iovec part{&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = rights.bytes;
    message.msg_controllen = sizeof rights.bytes;
    const pid_t child = child_that([&] {
        check(recvmsg(ends[1], &message, 0) == 1, "recvmsg");
        int set = -1;
        std::memcpy(&set, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof set);
        expect(set, 21);
    });
    const int set = new_set();
    const Connection one = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    cmsghdr* const first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(first), &set, sizeof set);
    check(sendmsg(ends[0], &message, 0) == 1, "sendmsg");
    one.say();
    must_end_well(child);
    expect(set, 21);
    one.hear();
    expect_none(set);
}

/// Waiting by a system call of the program's own.
void by_system_call() {
    const int set = new_set();
    const Connection one = connected();
    control(set, EPOLL_CTL_ADD, one.server, EPOLLIN, 21);
    one.say();
    epoll_event event{};
    const long count = syscall(SYS_epoll_pwait, set, &event, 1, patience_ms, nullptr, 8);
    check(count == 1 && event.data.u64 == 21, "system call");
    one.hear();
}

const std::map<std::string, void (*)()> scenes{
    {"room_beside_bytes", room_beside_bytes},
    {"few", few},
    {"few_edges", few_edges},
    {"copied", copied},
    {"copied_sleeper", copied_sleeper},
    {"forked", forked},
    {"forked_sleeper", forked_sleeper},
    {"forked_oneshot", forked_oneshot},
    {"left_by_parent", left_by_parent},
    {"unused_by_child", unused_by_child},
    {"execed", execed},
    {"passed", passed},
    {"by_system_call", by_system_call},
};

}  // namespace

int main(int count, char** words) {
    program = words[0];
    if (count == 4 && std::strcmp(words[1], "started") == 0) {
        started(words + 2);
        return 0;
    }
    if (count != 3 || !scenes.contains(words[2])) return 2;
    through_memory = std::strcmp(words[1], "memory") == 0;
    scenes.at(words[2])();
    return 0;
}
