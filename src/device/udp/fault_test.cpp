// Every system call made to fail once, each time with the errors it may have.
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "device/udp/test_support.hpp"

namespace via::device::udp::test::fault_test {
namespace {

std::vector<int> errors_of(const std::string& call) {
    static const std::map<std::string, std::vector<int>> all{
        {"socket", {EMFILE, ENFILE, ENOBUFS, EAFNOSUPPORT}},
        {"bind", {EADDRNOTAVAIL, EACCES, ENOMEM}},
        {"connect", {ENETUNREACH, ENOMEM, EACCES}},
        {"getsockname", {ENOBUFS}},
        {"setsockopt", {ENOPROTOOPT, ENOMEM}},
        {"getsockopt", {ENOPROTOOPT}},
        {"choose_socket", {ENOMEM, EINVAL}},
        {"sendto", {EAGAIN, EINTR, ENOBUFS, ENOMEM, ECONNREFUSED, ENETUNREACH, EMSGSIZE, EPERM}},
        {"sendmmsg", {EAGAIN, EINTR, ENOBUFS, EIO, EINVAL, ECONNREFUSED, EHOSTUNREACH, EMSGSIZE}},
        {"recvfrom", {EAGAIN, EINTR, ENOMEM, ECONNREFUSED}},
        {"recvmsg", {EAGAIN, EINTR, ENOMEM, ECONNREFUSED}},
        {"recvmmsg", {EAGAIN, EINTR, ENOMEM, EHOSTUNREACH}},
        {"poll", {EINTR, ENOMEM}},
        {"epoll_create", {EMFILE, ENFILE, ENOMEM}},
        {"epoll_ctl", {ENOMEM, ENOSPC}},
        {"inotify_init", {EMFILE, ENFILE, ENOMEM}},
        {"inotify_add_watch", {ENOSPC, ENOMEM, ENOENT}},
        {"read", {EAGAIN, EINTR}},
        {"interface_mtu", {ENODEV}},
        {"openat", {EMFILE, ENFILE, ENOMEM, EACCES}},
        {"open_below", {EMFILE, ENOSYS, EACCES}},
        {"fstat", {ENOMEM, EIO}},
        {"lstatat", {ENOMEM, EACCES}},
        {"fchmod", {EPERM, EIO}},
        {"flock", {EWOULDBLOCK, EINTR, ENOLCK}},
        {"lock", {ENOLCK, ENOMEM}},
        {"is_locked", {ENOLCK}},
        {"getdents", {ENOMEM, EIO}},
        {"symlinkat", {ENOSPC, EACCES, EEXIST}},
        {"readlinkat", {ENOMEM, EACCES}},
        {"unlinkat", {EACCES, EINTR}},
        {"rmdir", {ENOTEMPTY, EBUSY}},
        {"renameat", {ENOSPC, EACCES}},
        {"kill", {EPERM, ESRCH}},
    };
    return all.at(call);
}

/// Counts each call and lets one of them fail.
class Faulty : public System {
public:
    std::string failing;
    unsigned at = 0;  ///< which call of that name, from 1
    int error = 0;
    std::map<std::string, unsigned> counts;

#define VIA_FAULTY(result, name, parameters, arguments)   \
    result name parameters override {                     \
        if (!fails(#name)) return System::name arguments; \
        return -1;                                        \
    }
    VIA_FAULTY(int, socket, (int f), (f))
    VIA_FAULTY(int, bind, (int f, const sockaddr* a, socklen_t l), (f, a, l))
    VIA_FAULTY(int, connect, (int f, const sockaddr* a, socklen_t l), (f, a, l))
    VIA_FAULTY(int, getsockname, (int f, sockaddr* a, socklen_t* l), (f, a, l))
    VIA_FAULTY(int, setsockopt, (int f, int l, int o, int v), (f, l, o, v))
    VIA_FAULTY(int, choose_socket, (int f, std::uint32_t i), (f, i))
    VIA_FAULTY(int, getsockopt, (int f, int l, int o, int* v), (f, l, o, v))
    VIA_FAULTY(ssize_t, sendto,
               (int f, const void* b, std::size_t l, const sockaddr* a, socklen_t n),
               (f, b, l, a, n))
    VIA_FAULTY(int, sendmmsg, (int f, mmsghdr* m, unsigned c), (f, m, c))
    VIA_FAULTY(ssize_t, recvfrom, (int f, void* b, std::size_t l, sockaddr* a, socklen_t* n),
               (f, b, l, a, n))
    VIA_FAULTY(ssize_t, recvmsg, (int f, msghdr* m, int g), (f, m, g))
    VIA_FAULTY(int, recvmmsg, (int f, mmsghdr* m, unsigned c), (f, m, c))
    VIA_FAULTY(int, poll, (pollfd * e, nfds_t c), (e, c))
    VIA_FAULTY(int, epoll_create, (), ())
    VIA_FAULTY(int, epoll_ctl, (int e, int o, int f, epoll_event* v), (e, o, f, v))
    VIA_FAULTY(int, inotify_init, (), ())
    VIA_FAULTY(int, inotify_add_watch, (int f, const char* p, std::uint32_t e), (f, p, e))
    VIA_FAULTY(ssize_t, read, (int f, void* b, std::size_t l), (f, b, l))
    VIA_FAULTY(int, interface_mtu, (int f, ifreq* r), (f, r))
    VIA_FAULTY(int, openat, (int d, const char* p, int f), (d, p, f))
    VIA_FAULTY(int, open_below, (int d, const char* p), (d, p))
    VIA_FAULTY(int, fstat, (int f, struct stat* s), (f, s))
    VIA_FAULTY(int, lstatat, (int d, const char* n, struct stat* s), (d, n, s))
    VIA_FAULTY(int, fchmod, (int f, mode_t m), (f, m))
    VIA_FAULTY(int, flock, (int f, int o), (f, o))
    VIA_FAULTY(int, lock, (int f), (f))
    VIA_FAULTY(int, is_locked, (int f), (f))
    VIA_FAULTY(ssize_t, getdents, (int f, void* b, std::size_t l), (f, b, l))
    VIA_FAULTY(int, symlinkat, (const char* t, int d, const char* n), (t, d, n))
    VIA_FAULTY(ssize_t, readlinkat, (int d, const char* n, char* b, std::size_t l), (d, n, b, l))
    VIA_FAULTY(int, unlinkat, (int d, const char* n), (d, n))
    VIA_FAULTY(int, rmdir, (const char* p), (p))
    VIA_FAULTY(int, renameat, (int d, const char* f, const char* t), (d, f, t))
    VIA_FAULTY(int, kill, (pid_t p, int s), (p, s))
#undef VIA_FAULTY

private:
    bool fails(const char* call) {
        if (++counts[call] != at || call != failing) return false;
        errno = error;
        return true;
    }
};

/// Closing an inotify takes the kernel longer than all else here.
class Unwatching : public System {
public:
    int inotify_init() override {
        errno = EMFILE;
        return -1;
    }
};

struct Sequel {
    std::string error;  ///< of opening
    bool works = false;
};

/// Sends what the port takes, for a while; what is lost is lost.
void send_patiently(Node& node, std::span<const datagram::Outgoing> burst) {
    for (int tries = 0; tries < 5 && !burst.empty(); ++tries) {
        burst = burst.subspan(node->send(burst));
        if (!burst.empty()) node->has_room();
    }
    EXPECT_TRUE(burst.empty()) << "a send that had no room once has some now";
}

/// Nobody of these answers questions: `other` takes the port over, and `node` from it.
void take_over_from_each_other(const Directory& directory, Node& node) {
    Unwatching unwatching;
    Node other(directory, node->nic_address(), 5, unwatching);
    const auto take_over = [](Node& taker) {
        for (int tries = 0; tries < 64 && !taker->has_host_port(); ++tries)
            taker->service(taker->next_deadline());
    };
    take_over(other);
    node->service(node->next_deadline());
    take_over(node);
}

/// Everything that a port does, beside a friend at the same address, among what the dead have left.
Sequel story(Faulty& system, bool own_frames) {
    const auto host = own_frames ? ipv6_address : test_address;
    const Place place;
    const User directory(place), other(place);
    Sequel sequel;
    const std::string dead = "nic-4194303-1-0000000000000001";
    auto friendly = std::make_unique<Node>(directory, host(0), 1);
    std::ofstream(directory.path + "/" + dead);
    const std::string never_made = directory.path + "/new-4194303-1-0000000000000001";
    std::ofstream{never_made};
    std::filesystem::last_write_time(
        never_made, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    std::filesystem::create_symlink(dead, directory.path + "/d-79");
    auto opened = open(directory, host(0), 2, system, 4, own_frames);
    if (!opened) {
        sequel.error = opened.error();
        return sequel;
    }
    Node node(std::move(*opened));
    auto others = std::make_unique<Node>(other, host(0), 4);
    (*others)->listen(discriminator("o"));
    std::filesystem::create_symlink(dead, directory.path + "/d-78");
    node->listen(discriminator("x"));  // was the dead one's
    node->listen(discriminator("z"));
    node->unlisten(discriminator("z"));
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    node->find_listener(discriminator("z"), port, instance);
    node->find_listener(discriminator("o"), port, instance);
    node->listen(discriminator("o"));

    const HostAddress to = (*friendly)->data_address();
    const std::string part = text(700, 1);
    const std::vector<datagram::Outgoing> burst(3, outgoing(to, part));
    send_patiently(node, std::span(burst).first(1));
    send_patiently(node, burst);
    send(node, with_port(host(0), 1), "nobody is there");
    send_patiently(*friendly, std::vector(20, outgoing(node->data_address(), part)));
    for (const Sleep sleep : {Sleep::on_handle, Sleep::on_words, Sleep::awake}) {
        node->arm(sleep);
        node->has_work();
        node.take_all();
    }
    for (int n = 0; n < 20; ++n) {  // so long that joining is switched off
        send(*friendly, node->data_address(), "alone");
        node.take_all();
    }
    send_patiently(*friendly, std::vector(3, outgoing(node->data_address(), part)));
    node.take_all();
    for (int n = 0; n < 4; ++n) send_patiently(node, std::span(burst).first(1));
    node.take_all();  // the friend is busy: a socket is connected to it
    send_patiently(node, burst);
    send(node, to, "alone");
    send(*friendly, node->data_address(), "there");
    for (const Sleep sleep : {Sleep::on_handle, Sleep::awake}) {
        node->arm(sleep);
        node->has_work();
        node.take_all();
    }
    for (int n = 0; n < 3; ++n) send(node, node->data_address(), "to somebody else");
    for (int looks = 0; looks < 3; ++looks) node.take_all();  // and is so no more
    node->service(node->now() + seconds(2));
    friendly.reset();  // it had the host's port
    (*others)->service((*others)->next_deadline());
    for (int tries = 0; tries < 5 && others; ++tries) {
        node->service(node->next_deadline());
        if (tries == 2) others.reset();  // now it had it
    }
    for (int tries = 0; tries < 5 && !node->has_host_port(); ++tries)
        node->service(node->next_deadline());

    if (!own_frames) take_over_from_each_other(directory, node);

    // Whatever failed before works now.
    Node witness(directory, host(0), 3);
    node.came.clear();
    send(witness, node->data_address(), "hello");
    send(witness, host(0), "question");
    for (int twice = 0; twice < 2; ++twice) send(node, witness->data_address(), "hello");
    sequel.works = node->has_host_port() && node.hear(2) && witness.hear(1) &&
                   node->listen(discriminator("again")) == Status::success &&
                   witness->find_listener(discriminator("again"), port, instance);
    return sequel;
}

/// The kernel watches no more descriptors for this user.
class Deaf : public System {
public:
    bool deaf = true;
    int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) override {
        if (!deaf) return System::epoll_ctl(epoll, operation, descriptor, event);
        errno = ENOSPC;
        return -1;
    }
};

TEST(UdpDeaf, WhoCannotHearLooksAgainSoon) {
    Directory directory;
    Deaf system;
    Node node(directory, test_address(), 1, system);
    node->arm(Sleep::on_handle);
    EXPECT_LE(node->next_deadline(), node->now() + milliseconds(10));
    system.deaf = false;
    node->arm(Sleep::on_handle);
    EXPECT_GT(node->next_deadline(), node->now() + seconds(1)) << "now it hears";
    send(node, node->data_address(), "hello");
    pollfd entry{node->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, watchdog_ms), 1);
}

/// By sockets alone, or with raw Ethernet transmit.
class UdpFaults : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        if (GetParam() && !may_send_frames()) GTEST_SKIP() << "needs CAP_NET_RAW, and a ::1";
    }
};

INSTANTIATE_TEST_SUITE_P(By, UdpFaults, testing::Bool(),
                         [](const auto& by) { return by.param ? "Frames" : "Sockets"; });

TEST_P(UdpFaults, WithoutAnyTheStoryIsWhole) {
    Faulty system;
    const std::size_t descriptors = count_descriptors();
    const Sequel sequel = story(system, GetParam());
    EXPECT_EQ(sequel.error, "");
    EXPECT_TRUE(sequel.works);
    EXPECT_EQ(count_descriptors(), descriptors);
    for (const char* call :
         {"sendmmsg", "recvfrom", "recvmmsg", "connect", "read", "inotify_add_watch", "kill"})
        EXPECT_GT(system.counts[call], 0U) << call << " has no part in the story";
    EXPECT_TRUE(GetParam() || system.counts["choose_socket"] != 0) << "to take the port over";
    EXPECT_GE(system.counts["connect"], 2U) << "to the friend, and away";
}

struct Fault {
    std::string call;
    unsigned at = 0;
    int error = 0;
};

/// One for each error of each call of the story.
std::vector<Fault> faults_of_story(bool own_frames) {
    Faulty whole;
    story(whole, own_frames);
    const std::set<std::string> of_frames{"socket", "setsockopt", "bind",
                                          "sendto", "sendmmsg",   "recvmsg"};
    std::vector<Fault> faults;
    for (const auto& [call, count] : whole.counts)
        for (unsigned at = 1; at <= count && (!own_frames || of_frames.contains(call)); ++at)
            for (const int error : errors_of(call)) faults.push_back({call, at, error});
    return faults;
}

void expect_whole_or_told(const Fault& fault, bool own_frames) {
    SCOPED_TRACE(fault.call + " #" + std::to_string(fault.at) + " " + strerrorname_np(fault.error));
    const std::size_t descriptors = count_descriptors();
    Faulty system;
    system.failing = fault.call;
    system.at = fault.at;
    system.error = fault.error;
    const Sequel sequel = story(system, own_frames);
    EXPECT_EQ(count_descriptors(), descriptors);
    if (sequel.error.empty()) {
        EXPECT_TRUE(sequel.works);
        return;
    }
    if (fault.error == EMFILE) {
        EXPECT_NE(sequel.error.find("(ulimit -n)"), std::string::npos) << sequel.error;
    }
    EXPECT_TRUE(sequel.error.starts_with("udp: ")) << sequel.error;
    EXPECT_TRUE(sequel.error.find("): ") != std::string::npos ||
                sequel.error.find(" is taken") != std::string::npos)
        << "the call and errno's words: " << sequel.error;
}

/// Several processes share them: nearly all the time a story waits for the kernel, which closes an
/// inotify.
TEST_P(UdpFaults, EachCallFailsOnceAndNothingLeaksOrStops) {
    constexpr std::size_t processes = 12;
    const std::vector<Fault> faults = faults_of_story(GetParam());
    std::vector<pid_t> children;
    std::fflush(nullptr);
    for (std::size_t first = 0; first < processes; ++first) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            for (std::size_t next = first; next < faults.size(); next += processes)
                expect_whole_or_told(faults[next], GetParam());
            std::fflush(nullptr);
            _exit(HasFailure() ? 1 : 0);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "what failed is above";
    }
}

}  // namespace
}  // namespace via::device::udp::test::fault_test
