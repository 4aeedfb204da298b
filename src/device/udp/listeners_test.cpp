// Processes of one address: who has the host's port, who listens where, what the dead leave behind.
#include "device/udp/listeners.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "device/udp/names.hpp"
#include "device/udp/test_support.hpp"

namespace via::device::udp::test::listeners_test {
namespace {

/// A process with a port that listens to "child", until it is killed.
class Child {
public:
    explicit Child(const Directory& directory) {
        int ready[2];
        if (::pipe(ready) != 0) throw std::runtime_error("pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            const HostAddress address = with_port(parents_address(), 9741);
            Node node(directory, address, 77);
            const bool listens = node->listen(discriminator("child")) == Status::success;
            if (!listens || ::write(ready[1], "r", 1) != 1) ::_exit(1);
            for (;;) ::pause();
        }
        char byte = 0;
        ::close(ready[1]);
        if (::read(ready[0], &byte, 1) != 1) ADD_FAILURE() << "the child does not listen";
        ::close(ready[0]);
    }
    ~Child() { kill(); }
    void kill() {
        if (pid_ < 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    static HostAddress parents_address() {
        const auto pid = static_cast<std::uint32_t>(::getppid());
        HostAddress address = test_address();
        address.bytes[1] = static_cast<std::uint8_t>(64 + (pid >> 16));
        address.bytes[2] = static_cast<std::uint8_t>(pid >> 8);
        address.bytes[3] = static_cast<std::uint8_t>(pid);
        return address;
    }
    pid_t pid_ = -1;
};

/// Ends a test that hangs, by the signal's own action.
struct Watchdog {
    Watchdog() { ::alarm(watchdog_ms / 1000); }
    ~Watchdog() { ::alarm(0); }
    Watchdog(const Watchdog&) = delete;
};

TEST(UdpListeners, EachIsFoundByAll) {
    Directory directory;
    Node a(directory), b(directory, test_address(), 2);
    EXPECT_TRUE(a->has_host_port());
    EXPECT_FALSE(b->has_host_port());
    EXPECT_EQ(b->listen(discriminator("x")), Status::success);
    EXPECT_EQ(a->listen(discriminator("x")), Status::error_resource);
    EXPECT_EQ(a->listen(discriminator("y")), Status::success);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    ASSERT_TRUE(a->find_listener(discriminator("x"), port, instance));
    EXPECT_EQ(port, port_of(b->data_address()));
    EXPECT_EQ(instance, 2U);
    EXPECT_FALSE(a->find_listener(discriminator("z"), port, instance));
    EXPECT_EQ(b->listen(discriminator("x")), Status::success) << "once more, by the same one";
    b->unlisten(discriminator("x"));
    EXPECT_TRUE(a->find_listener(discriminator("x"), port, instance));
    b->unlisten(discriminator("x"));
    EXPECT_FALSE(a->find_listener(discriminator("x"), port, instance));
    EXPECT_EQ(a->listen(discriminator("x")), Status::success);
}

TEST(UdpListeners, WhoHoldsADiscriminatorIsNamed) {
    const Place place;
    const User own(place), other(place);
    std::vector<std::string> reports;
    const auto report = [&](const std::string& text) { reports.push_back(text); };
    auto opened = UdpPort::open({.place = {"lo", 1, test_address()},
                                 .directory = own.path,
                                 .instance = 1,
                                 .shared = true,
                                 .report = report});
    ASSERT_TRUE(opened) << opened.error();
    Node asker(std::move(*opened));
    Node same(own, test_address(), 2), another(other, test_address(), 3);
    EXPECT_EQ(same->listen(discriminator("s")), Status::success);
    EXPECT_EQ(another->listen(discriminator("a")), Status::success);
    EXPECT_EQ(asker->listen(discriminator("free")), Status::success);
    EXPECT_TRUE(reports.empty());
    EXPECT_EQ(asker->listen(discriminator("s")), Status::error_resource);
    EXPECT_EQ(asker->listen(discriminator("a")), Status::error_resource);
    const auto name = [](const Node& node, std::uint64_t instance) {
        return "udp: " + nic_name(::getpid(), port_of(node->data_address()), instance);
    };
    const std::string held =
        " listens to this discriminator already; choose another one or end that process";
    EXPECT_EQ(reports,
              (std::vector{name(same, 2) + held, name(another, 3) + " of another user" + held}));
}

TEST(UdpListeners, WhatHindersThemIsTold) {
    class Full : public System {
    public:
        bool full = false;
        int symlinkat(const char* target, int directory, const char* name) override {
            if (!full) return System::symlinkat(target, directory, name);
            errno = ENOSPC;
            return -1;
        }
    };
    const Directory directory;
    Full system;
    std::vector<std::string> reports;
    auto opened =
        UdpPort::open({.place = {"lo", 1, test_address()},
                       .directory = directory.path,
                       .instance = 1,
                       .system = &system,
                       .report = [&](const std::string& text) { reports.push_back(text); }});
    ASSERT_TRUE(opened) << opened.error();
    system.full = true;
    EXPECT_EQ((*opened)->listen(discriminator("x")), Status::error_resource);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_NE(reports[0].find("No space left"), std::string::npos) << reports[0];
}

TEST(UdpListeners, DiscriminatorsOfAllBytesAndLengths) {
    Directory directory;
    Node node(directory);
    Discriminator longest;
    longest.length = 64;
    for (std::size_t n = 0; n < 64; ++n) longest.bytes[n] = static_cast<std::uint8_t>(n * 4);
    const Discriminator none;
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    EXPECT_EQ(node->listen(longest), Status::success);
    EXPECT_TRUE(node->find_listener(longest, port, instance));
    EXPECT_FALSE(node->find_listener(none, port, instance));
    EXPECT_EQ(node->listen(none), Status::success);
    EXPECT_TRUE(node->find_listener(none, port, instance));
}

TEST(UdpListeners, WhoClosesLeavesNothingAndAnotherAnswers) {
    Directory directory;
    auto a = std::make_unique<Node>(directory);
    Node b(directory, test_address(), 2);
    (*a)->listen(discriminator("x"));
    const Time due = b->next_deadline();
    ASSERT_FALSE(due.is_never());
    EXPECT_GE(due, b->now() + seconds(4)) << "it need not look while it is told";
    b->service(due);
    EXPECT_FALSE(b->has_host_port());
    pollfd handle{b->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    a.reset();
    EXPECT_EQ(directory.names().size(), 1U);
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1);
    b->service(due);
    EXPECT_TRUE(b->has_host_port());
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    EXPECT_GE(b->next_deadline(), due) << "whether its names are still there";
}

/// As after a cleaner of temporary files.
TEST(UdpListeners, WhoseNamesAreTakenAwayIsFoundAgain) {
    const Place place;
    const User before(place), after(place), refused(place), other(place);
    std::vector<std::string> reports;
    auto opened =
        UdpPort::open({.place = {"lo", 1, test_address()},
                       .directory = before.path,
                       .instance = 7,
                       .shared = true,
                       .report = [&](const std::string& text) { reports.push_back(text); },
                       .directory_again = [&] { return UdpConfig::Meeting{after.path, true}; }});
    ASSERT_TRUE(opened) << opened.error();
    Node server(std::move(*opened));
    ASSERT_EQ(server->listen(discriminator("x")), Status::success);
    std::filesystem::remove_all(before.path);
    const auto early = open(refused, test_address(), 2);
    ASSERT_FALSE(early) << "nobody knows who has the port";
    EXPECT_NE(early.error().find("taken, by a program of this user"), std::string::npos)
        << early.error();
    server->service(server->now() + seconds(10));
    Node next(other, test_address(), 2);
    EXPECT_FALSE(next->has_host_port());
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    ASSERT_TRUE(next->find_listener(discriminator("x"), port, instance));
    EXPECT_EQ(instance, 7U);
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_NE(reports.front().find("others find us in " + after.path), std::string::npos);
    std::filesystem::remove_all(after.path);
    EXPECT_EQ(server->listen(discriminator("y")), Status::error_resource) << "nowhere to say so";
}

TEST(UdpListeners, TheDeadGiveWay) {
    Directory directory;
    Child child(directory);
    Node node(directory, test_address(), 2);
    EXPECT_FALSE(node->has_host_port());
    EXPECT_EQ(node->listen(discriminator("child")), Status::error_resource);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    EXPECT_TRUE(node->find_listener(discriminator("child"), port, instance));
    EXPECT_EQ(instance, 77U);
    child.kill();
    EXPECT_FALSE(node->find_listener(discriminator("child"), port, instance));
    node->service(node->next_deadline());
    EXPECT_TRUE(node->has_host_port());
    EXPECT_EQ(node->listen(discriminator("child")), Status::success);
    Node next(directory, test_address(), 3);
    EXPECT_EQ(directory.names().size(), 4U)
        << "two NICs, one name, who answers: the dead one's file is gone";
}

/// Its process may be of another pid namespace, where its number is another one.
TEST(UdpListeners, AFileThatIsBeingMadeIsLeftAlone) {
    Directory directory;
    const std::string file = directory.path + "/new-4194303-1-0000000000000001";
    std::ofstream{file};
    {
        Node node(directory);
    }
    EXPECT_TRUE(std::filesystem::exists(file));
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    {
        Node node(directory);
    }
    EXPECT_FALSE(std::filesystem::exists(file)) << "nobody takes so long";
}

TEST(UdpListeners, AStrangersProgramOnThePortIsNamed) {
    Directory directory;
    System system;
    const Descriptor stranger = bind_socket(system, test_address(), 1, SharesPort::no);
    ASSERT_TRUE(stranger.valid());
    const auto opened = open(directory, test_address(), 1);
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().find("UDP port 9741"), std::string::npos) << opened.error();
    EXPECT_NE(opened.error().find("not by a NIC of this user"), std::string::npos);
    EXPECT_TRUE(directory.names().empty());
}

TEST(UdpListeners, AnotherPortIsProposedAtTheVeryAddress) {
    Directory directory, strangers;
    HostAddress ipv6{{}, 18};
    ipv6.bytes[15] = 1;
    for (const auto& [address, name] : {std::pair{test_address(), host_text(test_address())},
                                        std::pair{with_port(ipv6, 9741), std::string("[::1]")}}) {
        const auto stranger = open(strangers, address, 1);
        if (!stranger && is_ipv6(address)) GTEST_SKIP() << "no IPv6 here: " << stranger.error();
        ASSERT_TRUE(stranger) << stranger.error();
        const auto opened = open(directory, address, 2);
        ASSERT_FALSE(opened.has_value());
        EXPECT_NE(opened.error().find("udp:" + name + ":PORT"), std::string::npos)
            << opened.error();
    }
}

TEST(UdpListeners, UsersFindEachOther) {
    const Place place;
    const User first(place), second(place);
    Node a(first), b(second, test_address(), 2);
    EXPECT_TRUE(a->has_host_port());
    EXPECT_FALSE(b->has_host_port());
    EXPECT_EQ(b->listen(discriminator("b")), Status::success);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    ASSERT_TRUE(a->find_listener(discriminator("b"), port, instance));
    EXPECT_EQ(port, port_of(b->data_address()));
    EXPECT_EQ(instance, 2U);
    EXPECT_EQ(a->listen(discriminator("b")), Status::error_resource) << "another user's";
    EXPECT_TRUE(a->find_listener(discriminator("b"), port, instance));
    EXPECT_EQ(instance, 2U);
    b->unlisten(discriminator("b"));
    EXPECT_FALSE(a->find_listener(discriminator("b"), port, instance));
    EXPECT_EQ(a->listen(discriminator("b")), Status::success);
}

TEST(UdpListeners, AnotherUserAnswersWhenTheOneThatDidCloses) {
    const Place place;
    const User first(place), second(place);
    auto a = std::make_unique<Node>(first);
    Node b(second, test_address(), 2);
    const Time due = b->next_deadline();
    EXPECT_GE(due, b->now() + seconds(4)) << "it need not look while it is told";
    pollfd handle{b->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    a.reset();
    EXPECT_FALSE(std::filesystem::exists(first.path)) << "it was the last of its user";
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1);
    b->service(due);
    EXPECT_TRUE(b->has_host_port());
}

/// Whatever a hostile user puts down, it does not get what another one has.
TEST(UdpListeners, NobodyTakesAnothersNames) {
    const Place place;
    const User honest(place), hostile(place);
    Node a(honest), evil(hostile, test_address(), 666);
    ASSERT_EQ(a->listen(discriminator("door")), Status::success);
    ASSERT_EQ(evil->listen(discriminator("own")), Status::success);
    // What listen() would not do for it: a link of its own, later than the other one.
    const std::string own = hostile.path + "/d-6f776e", door = hostile.path + "/d-646f6f72";
    const auto nic = std::filesystem::read_symlink(own);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    const auto found = [&] { return a->find_listener(discriminator("door"), port, instance); };
    std::filesystem::create_symlink(nic, door);
    ASSERT_TRUE(found());
    EXPECT_EQ(instance, 1U) << "who came first has it";
    a->unlisten(discriminator("door"));
    ASSERT_TRUE(found());
    EXPECT_EQ(instance, 666U) << "now it is the other's";
    std::filesystem::remove(door);
    for (const char* owner : {"nic-1-1-0000000000000001", "../../passwd", "nic-x", "d-6f776e"}) {
        std::filesystem::create_symlink(owner, door);
        EXPECT_FALSE(found()) << owner;
        std::filesystem::remove(door);
    }
    const std::string pipe = "nic-7-7-0000000000000007";
    ASSERT_EQ(::mkfifo((hostile.path + "/" + pipe).c_str(), 0666), 0);
    std::filesystem::create_symlink(pipe, door);
    EXPECT_FALSE(found()) << "and does not block";
    // A whole directory elsewhere, under the name of one.
    std::filesystem::create_directory_symlink(hostile.path, place.path + "/host-aaaaaa");
    EXPECT_FALSE(found());
    EXPECT_EQ(a->listen(discriminator("door")), Status::success);
}

/// Of a process of the same user: a file that cannot be opened without waiting.
TEST(UdpListeners, APipeInPlaceOfANicsFileStopsNobody) {
    Directory directory;
    Node a(directory);
    const std::string name = "nic-7-7-0000000000000007";
    const std::string pipe = directory.path + "/" + name;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ASSERT_EQ(::symlink(name.c_str(), (directory.path + "/d-78").c_str()), 0);
    const Watchdog watchdog;
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    EXPECT_FALSE(a->find_listener(discriminator("x"), port, instance));
    EXPECT_EQ(a->listen(discriminator("x")), Status::success) << "no NIC has it";
    Node b(directory, test_address(), 2);
    EXPECT_FALSE(std::filesystem::exists(pipe)) << "left over";
}

/// Counts how much is looked at where everybody may make names.
class Counting : public System {
public:
    int opened = 0, listed = 0;
    Time time{seconds(1).ns};

    int open_below(int directory, const char* path) override {
        ++opened;
        return System::open_below(directory, path);
    }
    int lstatat(int directory, const char* name, struct stat* status) override {
        ++opened;
        return System::lstatat(directory, name, status);
    }
    ssize_t getdents(int fd, void* buffer, std::size_t length) override {
        ++listed;
        return System::getdents(fd, buffer, length);
    }
    Time now() override { return time; }
};

/// With the turn, whatever asks: 200,000 names stopped a NIC for seconds each time.
TEST(UdpListeners, ACrowdOfNamesIsLookedAtInParts) {
    constexpr int crowd = 20'000;
    const Place place;
    const User first(place), second(place);
    Counting counting;
    Node a(first, test_address(), 1, counting);
    for (int n = 0; n < crowd; ++n) {
        char name[16];
        std::snprintf(name, sizeof name, "/host-%06d", n);
        ASSERT_EQ(::symlink("nowhere", (place.path + name).c_str()), 0);
    }
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    bool found = false;
    Node b(second, test_address(), 2);
    ASSERT_EQ(b->listen(discriminator("b")), Status::success);
    for (int looks = 0; looks < crowd && !found; ++looks) {
        counting.opened = counting.listed = 0;
        counting.time = counting.time + milliseconds(20);
        found = a->find_listener(discriminator("b"), port, instance);
        EXPECT_LE(counting.opened, 500);
        EXPECT_LE(counting.listed, 100);
    }
    EXPECT_TRUE(found) << "after some time";
    EXPECT_EQ(instance, 2U);
    counting.opened = counting.listed = 0;
    EXPECT_EQ(a->listen(discriminator("a")), Status::success);
    EXPECT_LE(counting.opened, 1000);
    EXPECT_LE(counting.listed, 200);
}

/// As if what is made in one folder had been made a minute earlier.
class Earlier : public System {
public:
    explicit Earlier(std::string folder) : folder_(std::move(folder)) {}
    int lstatat(int directory, const char* name, struct stat* status) override {
        const int result = System::lstatat(directory, name, status);
        if (directory < 0) return result;
        const auto at = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(directory));
        if (result == 0 && at == folder_) status->st_ctim.tv_sec -= 60;
        return result;
    }

private:
    std::filesystem::path folder_;
};

TEST(UdpListeners, WhoListensKeepsTheNameThoughTheClockWasSetBack) {
    const Place place;
    const User first(place), second(place);
    Earlier earlier(second.path);
    Node a(first), b(second, test_address(), 2, earlier);
    ASSERT_EQ(a->listen(discriminator("door")), Status::success);
    EXPECT_EQ(b->listen(discriminator("door")), Status::error_resource);
    EXPECT_EQ(b->listen(discriminator("window")), Status::success);
}

TEST(UdpListeners, WhoMayOnlyReadCannotKeepTheDeadAlive) {
    const Place place;
    const User first(place), second(place);
    Node a(first);
    Child child(second);
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    ASSERT_TRUE(a->find_listener(discriminator("child"), port, instance));
    const std::string nic =
        second.path + "/" + std::filesystem::read_symlink(second.path + "/d-6368696c64").string();
    const Descriptor seen(System::real(), System::real().openat(AT_FDCWD, nic.c_str(), O_RDONLY));
    struct flock lock{};
    lock.l_type = F_RDLCK;
    ASSERT_EQ(::fcntl(seen.get(), F_OFD_SETLK, &lock), -1) << "it is locked for writing";
    ASSERT_EQ(::flock(seen.get(), LOCK_EX), 0) << "of no meaning";
    child.kill();
    ASSERT_EQ(::fcntl(seen.get(), F_OFD_SETLK, &lock), 0);
    EXPECT_FALSE(a->find_listener(discriminator("child"), port, instance));
    Node b(second, test_address(), 2);
    EXPECT_EQ(b->listen(discriminator("child")), Status::success);
}

TEST(UdpListeners, ADirectoryThatIsNotThereIsNamed) {
    Directory directory;
    const auto opened = UdpPort::open({{"lo", 1, test_address()}, directory.path + "/none", 1});
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().find(directory.path + "/none"), std::string::npos) << opened.error();
}

TEST(UdpInterfaces, AreFoundByNameAndAddress) {
    const auto find = [](const char* text) { return find_place(System::real(), text, 9741); };
    const HostAddress localhost{{127, 0, 0, 1, 0x26, 0x0D}, 6};
    ASSERT_TRUE(find("lo"));
    EXPECT_EQ(find("lo")->address, localhost);
    EXPECT_EQ(find("lo")->interface, "lo");
    EXPECT_EQ(find("127.0.0.1")->address, localhost);
    EXPECT_EQ(find("127.0.0.1:9742")->address, with_port(localhost, 9742));
    ASSERT_TRUE(find("127.1.2.3")) << "all of 127.0.0.0/8 is the loopback's";
    EXPECT_EQ(find("127.1.2.3")->interface, "lo");
    EXPECT_EQ(find("lo:80")->address, with_port(localhost, 80));
    if (const auto ipv6 = find("[::1]:9742")) {
        EXPECT_EQ(ipv6->address.length, 18);
        EXPECT_EQ(port_of(ipv6->address), 9742);
        EXPECT_EQ(find("[lo]")->address, with_port(ipv6->address, 9741));
        // Of a link-local address one says at which interface it is meant.
        ASSERT_TRUE(find("[::1%lo]:9742"));
        EXPECT_EQ(find("[::1%lo]:9742")->address, ipv6->address);
        const auto elsewhere = find("[::1%ethernet0]");
        ASSERT_FALSE(elsewhere.has_value());
        EXPECT_NE(elsewhere.error().find("[::1%ethernet0]"), std::string::npos)
            << elsewhere.error();
    }
}

TEST(UdpInterfaces, WhatIsWrongIsNamed) {
    const auto error = [](const char* text) {
        const auto found = find_place(System::real(), text, 9741);
        return found ? std::string("found") : found.error();
    };
    for (const char* text : {"", "lo:", "lo:0", "lo:65536", "lo:1x", "[::1", "[::1]9741", ":9741"})
        EXPECT_NE(error(text).find("udp needs an interface or an address"), std::string::npos)
            << text << ": " << error(text);
    EXPECT_NE(error("ethernet0").find("no interface \"ethernet0\""), std::string::npos);
    EXPECT_NE(error("ethernet0").find("lo (127.0.0.1)"), std::string::npos) << error("ethernet0");
    EXPECT_NE(error("203.0.113.77").find("has the address 203.0.113.77"), std::string::npos);
}

}  // namespace
}  // namespace via::device::udp::test::listeners_test
