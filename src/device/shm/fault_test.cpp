// Every system call made to fail once, each time with every error it may have.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <cerrno>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::fault_test {
namespace {

enum class Call {
    memfd_create,
    ftruncate,
    add_seals,
    get_seals,
    fstat,
    file_system_type,
    mmap,
    madvise,
    openat,
    duplicate,
    flock,
    getdents,
    symlinkat,
    readlinkat,
    faccessat,
    lstatat,
    unlinkat,
    fchmodat,
    rename_new,
    socket,
    bind,
    listen,
    accept,
    connect,
    sendmsg,
    recvmsg,
    getsockopt,
    pidfd_open,
    kill,
    poll_input,
    epoll_create,
    epoll_ctl,
    epoll_wait,
    futex_wake,
    count_
};

const char* const call_names[] = {
    "memfd_create", "ftruncate",  "add_seals",  "get_seals",  "fstat",    "file_system_type",
    "mmap",         "madvise",    "openat",     "duplicate",  "flock",    "getdents",
    "symlinkat",    "readlinkat", "faccessat",  "lstatat",    "unlinkat", "fchmodat",
    "rename_new",   "socket",     "bind",       "listen",     "accept",   "connect",
    "sendmsg",      "recvmsg",    "getsockopt", "pidfd_open", "kill",     "poll_input",
    "epoll_create", "epoll_ctl",  "epoll_wait", "futex_wake"};

std::vector<int> errors_of(Call call) {
    switch (call) {
        case Call::memfd_create:
        case Call::openat:
        case Call::duplicate:
        case Call::pidfd_open:
            return {EMFILE, ENFILE, ENOMEM, EINVAL};
        case Call::socket:
        case Call::epoll_create:
            return {EMFILE, ENFILE, ENOMEM};
        case Call::accept:
            return {EMFILE, ENFILE, ENOMEM, EAGAIN, EINTR, ECONNABORTED};
        case Call::connect:
            return {EAGAIN, EINTR, ENOMEM, EACCES, ECONNREFUSED};
        case Call::sendmsg:
            return {EAGAIN, EINTR, ENOMEM, ENOBUFS, ETOOMANYREFS, EPIPE};
        case Call::recvmsg:
            return {EAGAIN, EINTR, ENOMEM, ECONNRESET};
        case Call::epoll_wait:
            return {EINTR, ENOMEM};
        case Call::epoll_ctl:
            return {ENOMEM, ENOSPC};
        case Call::getsockopt:
            return {ENOPROTOOPT, EMFILE, EINVAL};
        case Call::flock:
            return {EINTR, EWOULDBLOCK, ENOLCK};
        case Call::kill:
            return {EPERM, ESRCH};
        default:
            return {ENOMEM, EINTR, EACCES};
    }
}

/// Counts each call and lets one of them fail.
class Faulty : public System {
public:
    Call failing = Call::count_;
    unsigned at = 0;  ///< which call of that kind, from 1
    int error = 0;
    bool injected = false;
    unsigned counts[static_cast<int>(Call::count_)] = {};

#define VIA_FAULTY(result, name, bad, parameters, arguments) \
    result name parameters override { return fails(Call::name) ? bad : System::name arguments; }
    VIA_FAULTY(int, memfd_create, -1, (const char* n, unsigned f), (n, f))
    VIA_FAULTY(int, ftruncate, -1, (int f, off_t l), (f, l))
    VIA_FAULTY(int, add_seals, -1, (int f, int s), (f, s))
    VIA_FAULTY(int, get_seals, -1, (int f), (f))
    VIA_FAULTY(int, fstat, -1, (int f, struct stat* s), (f, s))
    VIA_FAULTY(long, file_system_type, -1, (int f), (f))
    VIA_FAULTY(void*, mmap, MAP_FAILED, (std::size_t l, int p, int g, int f), (l, p, g, f))
    VIA_FAULTY(int, madvise, -1, (void* a, std::size_t l, int v), (a, l, v))
    VIA_FAULTY(int, openat, -1, (int d, const char* p, int f), (d, p, f))
    VIA_FAULTY(int, duplicate, -1, (int f), (f))
    VIA_FAULTY(int, flock, -1, (int f, int o), (f, o))
    VIA_FAULTY(ssize_t, getdents, -1, (int f, void* b, std::size_t l), (f, b, l))
    VIA_FAULTY(int, symlinkat, -1, (const char* t, int d, const char* n), (t, d, n))
    VIA_FAULTY(ssize_t, readlinkat, -1, (int d, const char* n, char* b, std::size_t l),
               (d, n, b, l))
    VIA_FAULTY(int, faccessat, -1, (int d, const char* n), (d, n))
    VIA_FAULTY(int, lstatat, -1, (int d, const char* n, struct stat* s), (d, n, s))
    VIA_FAULTY(int, unlinkat, -1, (int d, const char* n), (d, n))
    VIA_FAULTY(int, fchmodat, -1, (int d, const char* n, mode_t m), (d, n, m))
    VIA_FAULTY(int, rename_new, -1, (int d, const char* f, const char* t), (d, f, t))
    VIA_FAULTY(int, socket, -1, (), ())
    VIA_FAULTY(int, bind, -1, (int f, const sockaddr* a, socklen_t l), (f, a, l))
    VIA_FAULTY(int, listen, -1, (int f, int b), (f, b))
    VIA_FAULTY(int, accept, -1, (int f), (f))
    VIA_FAULTY(int, connect, -1, (int f, const sockaddr* a, socklen_t l), (f, a, l))
    VIA_FAULTY(ssize_t, sendmsg, -1, (int f, const msghdr* m, int g), (f, m, g))
    VIA_FAULTY(ssize_t, recvmsg, -1, (int f, msghdr* m, int g), (f, m, g))
    VIA_FAULTY(int, getsockopt, -1, (int f, int l, int o, void* v, socklen_t* n), (f, l, o, v, n))
    VIA_FAULTY(int, pidfd_open, -1, (pid_t p), (p))
    VIA_FAULTY(int, kill, -1, (pid_t p, int s), (p, s))
    VIA_FAULTY(int, poll_input, -1, (int f), (f))
    VIA_FAULTY(int, epoll_create, -1, (), ())
    VIA_FAULTY(int, epoll_ctl, -1, (int e, int o, int f, epoll_event* v), (e, o, f, v))
    VIA_FAULTY(int, epoll_wait, -1, (int e, epoll_event* v, int c), (e, v, c))
    VIA_FAULTY(int, futex_wake, -1, (const void* w, int c), (w, c))
#undef VIA_FAULTY

private:
    bool fails(Call call) {
        if (++counts[static_cast<int>(call)] != at || call != failing) return false;
        injected = true;
        errno = error;
        return true;
    }
};

/// Another process to be peer of: so that pidfds and takeovers are part of the story.
class ShmFaults : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        directory = new Directory;
        neighbour = new Directory(*directory, test_address(2));
        child = new Child([](Child& self) {
            Node peer(*directory, [](ShmConfig& config) { config.key = 555555; });
            if (peer->listen(discriminator("peer")) != Status::success) return false;
            self.tell('r');
            for (;;) {
                peer.turn();
                Frame frames[16];
                peer->receive(frames);
                peer->release();
                peer->arm(Sleep::on_handle);
                atomic_fence(memory_order_seq_cst);
                if (!peer->has_work() && !peer.wait()) return false;
            }
        });
        ASSERT_EQ(child->hear(), 'r');
    }
    static void TearDownTestSuite() {
        delete child;
        delete neighbour;
        delete directory;
    }

    struct Sequel {
        std::size_t resolves = 0, answers = 0;
        bool opened = false, connected = false;
        std::string error;
    };

    /// Opens, takes a dead one's name over, listens, reaches another process and is reached from
    /// its own one, reaches another address and is reached from there, moves frames, wakes sleepers
    /// both ways, gives memory back, closes.
    static Sequel story(Faulty& system) {
        Sequel sequel;
        ::symlink(make_nic_name(4194303, 1).c_str(), (directory->path + "/d-64").c_str());
        ::symlink(make_nic_name(::getpid(), 2).c_str(), (directory->path + "/d-65").c_str());
        const std::string stale = directory->path + "/new-4194303-0000000000000001";
        ::close(::open(stale.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        set_back(stale);
        Node node(*directory, [&](ShmConfig& config) {
            config.system = &system;
            config.host = "faults";
        });
        sequel.error = node.error;
        if (!node.device) return sequel;
        sequel.opened = true;
        Node friendly(*neighbour, [](ShmConfig& config) {
            config.directory = neighbour->path;
            config.address = test_address(2);
        });
        friendly->listen(discriminator("y"));
        node->listen(discriminator("d"));  // was the dead one's
        node->listen(discriminator("x"));
        const auto advance = [&] { pass_time(node, friendly); };
        node->resolve(address_of("peer"), 1);
        node->resolve({test_address(2), discriminator("y")}, 3);
        friendly->resolve(address_of("x"), 2);
        sequel.resolves = 3;
        const auto answers = [&] {
            return node.count(PathEventKind::resolved) + node.count(PathEventKind::unresolved) +
                   friendly.count(PathEventKind::resolved) +
                   friendly.count(PathEventKind::unresolved);
        };
        for (int i = 0; i < 10000 && answers() < 3; ++i) advance();
        sequel.answers = answers();
        exchange(node, friendly);
        share(node, friendly);
        for (int i = 0; i < 4; ++i) {
            node.turn();
            friendly.turn();
        }
        for (int i = 0; i < 10 && !node->next_deadline().is_never(); ++i) {
            node.now = node->next_deadline();
            node.turn();
        }
        node->unlisten(discriminator("d"));
        node->unlisten(discriminator("x"));
        // Whatever failed before works now.
        sequel.connected = try_again(node, friendly);
        friendly.device.reset();
        Frame frames[4];
        for (int i = 0; i < 4; ++i) {
            node->receive(frames);
            node.turn();
        }
        return sequel;
    }

    static void exchange(Node& node, Node& friendly) {
        for (const PathEvent& event : std::vector<PathEvent>(node.events)) {
            if (event.kind != PathEventKind::resolved && event.kind != PathEventKind::up) continue;
            for (const Sleep sleep : {Sleep::on_handle, Sleep::on_words}) {
                friendly->arm(sleep);
                send(*node, event.path, 24, 8000, 1);
                node->notify();
                node->service(node.now);
                Frame frames[4];
                friendly->receive(frames);
                friendly->release();
            }
        }
        node->arm(Sleep::on_handle);
        for (const PathEvent& event : friendly.events) {
            if (event.kind == PathEventKind::resolved) send(*friendly, event.path, 24, 8, 1);
        }
        friendly->notify();
        node->arm(Sleep::awake);
        Frame frames[4];
        node->receive(frames);
        node->release();
        node->receive(frames);
    }

    /// Segments both ways. Whoever cannot take one is told so.
    static void share(Node& node, Node& friendly) {
        const TestSegment segment(10000);
        for (Node* from : {&node, &friendly}) {
            for (const PathEvent& event : std::vector<PathEvent>(from->events)) {
                if (event.kind != PathEventKind::resolved && event.kind != PathEventKind::up)
                    continue;
                GrantId grant = no_grant;
                const Status status =
                    (*from)->sharing()->offer(event.path, segment.memory(), false, 1, grant);
                EXPECT_EQ(status == Status::success, grant != no_grant);
            }
        }
        node.turn();
        friendly.turn();
        std::erase_if(node.events,
                      [](const PathEvent& event) { return event.kind == PathEventKind::attached; });
    }

    static bool try_again(Node& node, Node& friendly) {
        node.events.clear();
        friendly.events.clear();
        if (node->listen(discriminator("again")) != Status::success) return false;
        node->resolve(address_of("peer"), 1);
        friendly->resolve(address_of("again"), 1);
        const auto answered = [](const Node& each) {
            return each.has(PathEventKind::resolved) || each.has(PathEventKind::unresolved);
        };
        for (int i = 0; i < 10000 && !(answered(node) && answered(friendly)); ++i) {
            pass_time(node, friendly);
        }
        return node.has(PathEventKind::resolved) && friendly.has(PathEventKind::resolved);
    }

    /// Virtual time runs only while nothing happens, so a slow machine does not look like a
    /// stopped peer.
    static void pass_time(Node& node, Node& friendly) {
        pollfd entries[2]{{node->wait_handle(), POLLIN, 0}, {friendly->wait_handle(), POLLIN, 0}};
        if (::poll(entries, 2, 20) == 0) node.now = node.now + milliseconds(300);
        node.turn();
        friendly.turn();
    }

    static void expect_clean(const std::string& what) {
        EXPECT_EQ(count_mappings(), 0U) << what;
        Node next(*directory);  // removes what is left
        EXPECT_EQ(directory->names().size(), 4U) << what << ": the host, the peer, its link, next";
        EXPECT_TRUE(neighbour->names().empty()) << what;
    }

    static Directory* directory;
    static Directory* neighbour;  ///< of another address
    static Child* child;
};

Directory* ShmFaults::directory = nullptr;
Directory* ShmFaults::neighbour = nullptr;
Child* ShmFaults::child = nullptr;

TEST_F(ShmFaults, WithoutAnyTheStoryIsWhole) {
    Faulty system;
    const std::size_t descriptors = count_descriptors();
    const Sequel sequel = story(system);
    EXPECT_TRUE(sequel.opened) << sequel.error;
    EXPECT_EQ(sequel.answers, 3U);
    EXPECT_TRUE(sequel.connected);
    for (int call = 0; call < static_cast<int>(Call::count_); ++call) {
        // SO_PEERPIDFD makes pidfd_open needless; poll and open are part of it anyway.
        if (call == static_cast<int>(Call::pidfd_open)) continue;
        EXPECT_GT(system.counts[call], 0U) << call_names[call] << " has no part in the story";
    }
    EXPECT_EQ(count_descriptors(), descriptors);
    expect_clean("none");
}

TEST_F(ShmFaults, EachCallFailsOnceAndNothingLeaks) {
    Faulty whole;
    story(whole);
    unsigned injected = 0;
    const std::size_t descriptors = count_descriptors();
    for (int call = 0; call < static_cast<int>(Call::count_); ++call) {
        for (unsigned at = 1; at <= whole.counts[call]; ++at) {
            for (const int error : errors_of(static_cast<Call>(call))) {
                const std::string what = std::string(call_names[call]) + " #" + std::to_string(at) +
                                         " " + strerrorname_np(error);
                Faulty system;
                system.failing = static_cast<Call>(call);
                system.at = at;
                system.error = error;
                const Sequel sequel = story(system);
                injected += system.injected;
                ASSERT_EQ(count_descriptors(), descriptors) << what;
                expect_clean(what);
                if (!sequel.opened) {
                    EXPECT_NE(sequel.error.find("shm: "), std::string::npos) << what;
                    EXPECT_NE(sequel.error.find("; "), std::string::npos)
                        << what << " gives no advice: " << sequel.error;
                    continue;
                }
                ASSERT_EQ(sequel.answers, sequel.resolves) << what << ": each exactly once";
                // It fails at most once, so a second try works, unless the fault came then.
                if (!sequel.connected) {
                    Faulty again;
                    EXPECT_TRUE(story(again).connected) << what;
                    EXPECT_GT(system.counts[call], 0U);
                }
            }
        }
    }
    RecordProperty("injected", static_cast<int>(injected));
    EXPECT_GT(injected, 200U);
}

/// Before Linux 6.5 there is no SO_PEERPIDFD.
class OldKernel : public System {
public:
    int getsockopt(int fd, int level, int option, void* value, socklen_t* length) override {
        if (option == 77) {
            errno = ENOPROTOOPT;
            return -1;
        }
        return System::getsockopt(fd, level, option, value, length);
    }
    int memfd_create(const char* name, unsigned flags) override {
        if ((flags & 8) != 0) {
            errno = EINVAL;
            return -1;
        }
        return System::memfd_create(name, flags);
    }
};

TEST_F(ShmFaults, OnOlderKernelsPidfdOpenServes) {
    OldKernel system;
    Node node(*directory, [&](ShmConfig& config) { config.system = &system; });
    ASSERT_TRUE(node.device) << node.error;
    node->resolve(address_of("peer"), 1);
    EXPECT_TRUE(turn_until({&node}, [&] { return node.has(PathEventKind::resolved); }));
}

/// While `full`, nothing that makes a descriptor works, as with ulimit -n reached.
class LimitedDescriptors {
public:
    LimitedDescriptors() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const int probe = ::dup(0);
        ::close(probe);
        const rlimit tight{static_cast<rlim_t>(probe), before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &tight);
    }
    ~LimitedDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

/// UBSan looks at a type that it sees for the first time through a pipe, and takes it for another
/// one where there are no descriptors left.
void show_type(Node& node) { static_cast<void>(node->may_have_events()); }

TEST(ShmDescriptors, WhenTheyRunOutPeersAreToldAndTheDeviceDoesNotSpin) {
    Directory directory;
    Node node(directory);
    ASSERT_EQ(node->listen(discriminator("x")), Status::success);
    Liar early(directory);
    ASSERT_TRUE(early.connect(node->name()));
    show_type(node);
    {
        LimitedDescriptors limit;
        for (int i = 0; i < 3; ++i) node.turn();
        pollfd entry{node->wait_handle(), POLLIN, 0};
        EXPECT_EQ(::poll(&entry, 1, 0), 0) << "readable for ever would mean to spin";
        EXPECT_EQ(node.reports.size(), 1U) << "told once";
        EXPECT_TRUE(node.reported("ulimit -n"));
    }
    EXPECT_TRUE(early.hung_up());
    const auto refusal = check_hello(early.hear());
    ASSERT_FALSE(refusal);
    EXPECT_EQ(refusal.error().reason, Refusal::resources);
    Node friendly(directory);
    friendly->resolve(address_of("x"), 1);
    EXPECT_TRUE(turn_until({&node, &friendly}, [&] {
        node.now = node.now + milliseconds(200);
        return friendly.has(PathEventKind::resolved);
    }));
}

TEST(ShmDescriptors, WhenTheyRunOutResolveAndOpenSaySo) {
    Directory directory;
    Node node(directory), other(directory);
    ASSERT_EQ(other->listen(discriminator("x")), Status::success);
    show_type(node);
    {
        LimitedDescriptors limit;
        node->resolve(address_of("x"), 1);
        node.turn();
        ASSERT_TRUE(node.has(PathEventKind::unresolved));
        EXPECT_EQ(node.events[0].status, Status::error_resource);
        EXPECT_TRUE(node.reported("ulimit -n"));
        Node third(directory);
        EXPECT_FALSE(third.device);
        EXPECT_NE(third.error.find("ulimit -n"), std::string::npos) << third.error;
    }
    node.events.clear();
    node->resolve(address_of("x"), 2);
    EXPECT_TRUE(turn_until({&node, &other}, [&] { return node.has(PathEventKind::resolved); }));
}

/// Eight peers could take all of the usual 1024, and the program could open no file any more.
TEST(ShmDescriptors, TheLastOnesAreTheProgramsOwn) {
    Directory directory;
    Node node(directory);
    ASSERT_EQ(node->listen(discriminator("x")), Status::success);
    Liar early(directory), late(directory);
    show_type(node);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    constexpr int all = 512;
    constexpr int kept = all / 16;
    const rlimit usual{all, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
    std::vector<int> taken;
    do {
        taken.push_back(::dup(0));
    } while (taken.back() >= 0 && taken.back() < all - kept - 2);
    EXPECT_TRUE(early.connect(node->name()));
    for (int i = 0; i < 3; ++i) node.turn();
    EXPECT_TRUE(node.reported("ulimit -n"));
    const auto refusal = check_hello(early.hear());
    ASSERT_FALSE(refusal);
    EXPECT_EQ(refusal.error().reason, Refusal::resources);
    EXPECT_TRUE(early.hung_up());
    for (const int descriptor : taken) ::close(descriptor);
    EXPECT_TRUE(late.enter(node->name())) << "there is room again";
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(ShmDescriptors, FourHundredPeersOfTenProcessesFitIntoTheUsualLimit) {
    // Two per peer: socket and pidfd. They do not grow with VIs.
    Directory directory;
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit usual{1024, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &usual);
    {
        Node node(directory, [](ShmConfig& config) { config.paths_per_process_max = 1000; });
        const std::size_t descriptors = count_descriptors();
        ASSERT_EQ(node->listen(discriminator("x")), Status::success);
        std::vector<std::unique_ptr<Child>> children;
        constexpr std::uint64_t per_child = 40;
        for (std::uint64_t c = 0; c < 10; ++c) {
            children.push_back(std::make_unique<Child>([&, c](Child& self) {
                std::vector<std::unique_ptr<Node>> nodes;
                for (std::uint64_t i = 0; i < per_child; ++i) {
                    nodes.push_back(std::make_unique<Node>(directory, [&](ShmConfig& config) {
                        config.key = 1000000 + c * 1000 + i;
                    }));
                    if (!nodes.back()->device) return false;
                    (*nodes.back())->resolve(address_of("x"), 1);
                }
                for (auto& each : nodes) {
                    if (!turn_until({each.get()},
                                    [&] { return each->has(PathEventKind::resolved); })) {
                        return false;
                    }
                }
                self.tell('r');
                return self.hear() == 'e';
            }));
        }
        EXPECT_TRUE(turn_until({&node}, [&] { return node.count(PathEventKind::up) == 400; }));
        for (auto& child : children) EXPECT_EQ(child->hear(), 'r');
        EXPECT_EQ(count_descriptors(), descriptors + 2 * 400 + 2 * 10) << "and the test's pipes";
        for (auto& child : children) child->tell('e');
        for (auto& child : children) EXPECT_TRUE(child->join());
        children.clear();
        Frame frames[16];
        EXPECT_TRUE(turn_until({&node}, [&] {
            node->receive(frames);
            return node.count(PathEventKind::down) == 400;
        }));
        EXPECT_EQ(count_descriptors(), descriptors);
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace via::device::shm::test::fault_test
