#include "agent/statistics.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "agent/statistics_wire.hpp"
#include "agent/test_support.hpp"

namespace via::agent::statistics_test {
namespace {

using test::DescriptorLimit;
using test::DescriptorsUsedUp;
using test::open_descriptors;
using test::TemporaryFolder;
namespace fs = std::filesystem;

bool readable(int descriptor, int timeout_ms = 0) {
    pollfd polled{descriptor, POLLIN, 0};
    const int count = poll(&polled, 1, timeout_ms);
    EXPECT_GE(count, 0) << strerror(errno);
    return count == 1;
}

/// Answers whenever somebody asks, as the progress thread does.
class Answering {
public:
    explicit Answering(std::function<void()> answer, int descriptor)
        : thread_([this, answer, descriptor] {
              while (!stop_.load())
                  if (readable(descriptor, 1)) answer();
          }) {}
    ~Answering() {
        stop_.store(true);
        thread_.join();
    }

private:
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename());
    return names;
}

/// A caller's end of a connection to the only socket in the folder.
File call(const std::string& folder) {
    const File directory(open(folder.c_str(), O_PATH | O_CLOEXEC));
    const auto names = names_in(folder);
    if (names.size() != 1) return {};
    File caller(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_un address = socket_address(folder, directory.get(), names[0]);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    return connect(caller.get(), generic, sizeof address) == 0 ? std::move(caller) : File();
}

/// What a caller has got: 1 the answer's bytes, 0 hung up, -1 nothing yet.
int outcome(const File& caller) {
    Answer answer{};
    const ssize_t length = recv(caller.get(), &answer, sizeof answer, MSG_DONTWAIT);
    return length > 0 ? 1 : static_cast<int>(length);
}

TEST(Statistics, ReaderSeesTheCountersMove) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm:left");
    ASSERT_TRUE(statistics) << statistics.error();
    Statistics& owner = **statistics;
    std::vector<StatisticsView> views;
    {
        Answering answering([&] { owner.answer(); }, owner.descriptor());
        views = find_statistics(folder.path());
    }
    ASSERT_EQ(views.size(), 1U);
    const StatisticsView& view = views[0];
    EXPECT_EQ(view.process(), getpid());
    EXPECT_EQ(view.nic_name(), "shm:left");
    EXPECT_EQ(view.program(), program_invocation_short_name);
    EXPECT_LE(view.opened_at(), static_cast<std::uint64_t>(time(nullptr)));
    EXPECT_GT(view.opened_at() + 3600, static_cast<std::uint64_t>(time(nullptr)));
    for (std::uint32_t n = 0; n < counter_count; ++n)
        EXPECT_EQ(view.counters().get(static_cast<Counter>(n)), 0U);
    for (std::uint64_t n = 1; n <= 1000; ++n) {
        owner.counters().add(Counter::sends);
        owner.counters().add(Counter::bytes_sent, 1ULL << 40);
        ASSERT_EQ(view.counters().get(Counter::sends), n);
        ASSERT_EQ(view.counters().get(Counter::bytes_sent), n << 40);
    }
    EXPECT_EQ(view.counters().get(Counter::receives), 0U);
    statistics->reset();
    EXPECT_TRUE(names_in(folder.path()).empty()) << "the socket goes with its owner";
    EXPECT_EQ(view.counters().get(Counter::sends), 1000U) << "a view outlives the owner";
}

device::Way some_way() {
    device::Way way;
    way.own = {{10, 0, 0, 1, 1, 2}, 6};
    way.peer = {{10, 0, 0, 2, 3, 4}, 6};
    return way;
}

TEST(Statistics, ReaderIsToldTheWays) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "udp:eth0");
    ASSERT_TRUE(statistics) << statistics.error();
    Statistics& owner = **statistics;
    WaysNow now;
    const auto ask = [&] {
        Answering answering([&] { owner.answer([&] { return now; }); }, owner.descriptor());
        auto views = find_statistics(folder.path());
        EXPECT_EQ(views.size(), 1U);
        return views.empty() ? WaysNow{} : views[0].ways();
    };
    EXPECT_TRUE(ask().ways.empty());
    now.ways.assign(Statistics::ways_max, some_way());
    device::Way& last = now.ways.back();
    last.path = 7;
    last.state = device::WayState::mute;
    last.over = {{10, 0, 0, 3, 0x26, 0x0E}, 6};
    last.round_trip = microseconds(12);
    last.packets = 100;
    last.bytes = 1ULL << 40;
    now.all = 5000;
    const WaysNow told = ask();
    EXPECT_EQ(told.all, 5000U);
    ASSERT_EQ(told.ways.size(), Statistics::ways_max);
    EXPECT_EQ(told.ways.front().over.length, 0U);
    const device::Way& got = told.ways.back();
    EXPECT_EQ(got.path, 7U);
    EXPECT_EQ(got.state, device::WayState::mute);
    EXPECT_EQ(got.own, last.own);
    EXPECT_EQ(got.peer, last.peer);
    EXPECT_EQ(got.over, last.over);
    EXPECT_EQ(got.round_trip, microseconds(12));
    EXPECT_EQ(got.packets, 100U);
    EXPECT_EQ(got.bytes, 1ULL << 40);
}

TEST(Statistics, LongNamesAreCutAndStrangeOnesMadePrintable) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "a\x1b[2J\xff" + std::string(100, 'x'));
    ASSERT_TRUE(statistics);
    Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
    const auto views = find_statistics(folder.path());
    ASSERT_EQ(views.size(), 1U);
    EXPECT_EQ(views[0].nic_name(), "a?[2J?" + std::string(57, 'x'));
}

TEST(Statistics, ManyNicsComeSorted) {
    TemporaryFolder folder;
    constexpr int count = 150;  // more than are asked at once
    std::vector<std::unique_ptr<Statistics>> owners;
    for (int n = 0; n < count; ++n) {
        auto statistics = Statistics::open(folder.path(), "nic");
        ASSERT_TRUE(statistics) << statistics.error();
        (*statistics)->counters().add(Counter::polls, static_cast<std::uint64_t>(n) + 1);
        owners.push_back(std::move(*statistics));
    }
    std::atomic<bool> stop{false};
    std::thread answering([&] {
        while (!stop.load())
            for (auto& owner : owners)
                if (readable(owner->descriptor())) owner->answer();
    });
    const auto views = find_statistics(folder.path());
    stop.store(true);
    answering.join();
    ASSERT_EQ(views.size(), static_cast<std::size_t>(count));
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n < views.size(); ++n) {
        sum += views[n].counters().get(Counter::polls);
        if (n > 0) {
            EXPECT_LE(views[n - 1].opened_at(), views[n].opened_at());
        }
    }
    EXPECT_EQ(sum, static_cast<std::uint64_t>(count * (count + 1) / 2)) << "each exactly once";
}

/// Of another pid namespace, as in a container that shares the directory.
TEST(Statistics, ASocketOfANumberThatIsNoProcessHereIsKeptWhileItListens) {
    TemporaryFolder folder;
    const File listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const std::string path = folder / "stat-4194305-0123456789abcdef";  // above every process's
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 4), 0);
    {
        const auto own = Statistics::open(folder.path(), "shm");
        ASSERT_TRUE(own) << own.error();
        EXPECT_TRUE(std::filesystem::exists(path));
    }
}

TEST(Statistics, WorkBetweenProcessesAndDeadSocketsAreRemoved) {
    TemporaryFolder folder;
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto statistics = Statistics::open(folder.path(), "shm");
        if (!statistics || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) {
            (*statistics)->counters().add(Counter::polls);
            if (readable((*statistics)->descriptor(), 1)) (*statistics)->answer();
        }
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    const auto views = find_statistics(folder.path());
    ASSERT_EQ(views.size(), 1U);
    EXPECT_EQ(views[0].process(), child);
    const std::uint64_t before = views[0].counters().get(Counter::polls);
    while (views[0].counters().get(Counter::polls) < before + 10) sched_yield();

    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_EQ(names_in(folder.path()).size(), 1U) << "the killed one could not clean up";
    EXPECT_TRUE(find_statistics(folder.path()).empty());
    EXPECT_TRUE(names_in(folder.path()).empty());
    close(ready[0]);
    close(ready[1]);
}

TEST(Statistics, AForkedChildRemovesNothing) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    EXPECT_EQ(test::in_child([&] {
                  statistics->reset();
                  return 0;
              }),
              0);
    EXPECT_EQ(names_in(folder.path()).size(), 1U);
    Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
    EXPECT_EQ(find_statistics(folder.path()).size(), 1U);
}

TEST(Statistics, ARetiredOneIsNotFoundButStillCounts) {
    TemporaryFolder folder;
    const int before = open_descriptors();
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    std::vector<StatisticsView> views;
    {
        Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
        views = find_statistics(folder.path());
    }
    ASSERT_EQ(views.size(), 1U);
    (*statistics)->retire();
    EXPECT_TRUE(names_in(folder.path()).empty());
    EXPECT_EQ(open_descriptors(), before);
    (*statistics)->counters().add(Counter::sends);
    EXPECT_EQ(views[0].counters().get(Counter::sends), 1U) << "late calls still count";
    (*statistics)->retire();
    EXPECT_TRUE(find_statistics(folder.path()).empty());
    statistics->reset();
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Statistics, PathsLongerThanAnAddressWork) {
    TemporaryFolder folder;
    std::string path = folder.path();
    while (path.size() < 300) {
        path += "/" + std::string(50, 'd');
        ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    }
    auto statistics = Statistics::open(path, "shm");
    ASSERT_TRUE(statistics) << statistics.error();
    {
        Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
        EXPECT_EQ(find_statistics(path).size(), 1U);
    }
    statistics->reset();
    EXPECT_TRUE(names_in(path).empty());
}

TEST(Statistics, ASmallLimitOfFileSizesIsToldAndKillsNobody) {
    const TemporaryFolder folder;
    const test::Limit small(RLIMIT_FSIZE, 100);
    const auto none = Statistics::open(folder.path(), "shm");
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().find("(ulimit -f)"), std::string::npos) << none.error();
}

TEST(Statistics, EveryPathLengthAroundTheLimitWorks) {
    TemporaryFolder folder;
    for (std::size_t length = 60; length <= 90; ++length) {
        const std::string path = folder / std::string(length - folder.path().size() - 1, 'd');
        ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
        auto statistics = Statistics::open(path, "shm");
        ASSERT_TRUE(statistics) << length << ": " << statistics.error();
        Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
        EXPECT_EQ(find_statistics(path).size(), 1U) << length;
    }
}

TEST(Statistics, OpeningSaysWhatIsWrong) {
    TemporaryFolder folder;
    const auto missing = Statistics::open(folder / "missing", "shm");
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().find(folder / "missing"), std::string::npos) << missing.error();
    // Fails at the first call that needs one, then at the second, and so on.
    const int before = open_descriptors();
    int failures = 0;
    for (std::size_t spare = 0;; ++spare) {
        std::string said;
        {
            const DescriptorsUsedUp used(spare);
            const auto statistics = Statistics::open(folder.path(), "shm");
            if (statistics) break;
            said = statistics.error();
        }
        ++failures;
        EXPECT_NE(said.find("ulimit -n"), std::string::npos) << said;
        EXPECT_TRUE(names_in(folder.path()).empty()) << said;
        EXPECT_EQ(open_descriptors(), before) << said;
        ASSERT_LT(failures, 20);
    }
    EXPECT_EQ(failures, 5) << "at memory, its second descriptor, socket, epoll, reserve";
}

TEST(Statistics, AreFoundWhateverTheUmask) {
    TemporaryFolder folder;
    const mode_t mask = umask(0777);
    const auto statistics = Statistics::open(folder.path(), "shm");
    umask(mask);
    ASSERT_TRUE(statistics) << statistics.error();
    const auto names = std::filesystem::directory_iterator(folder.path());
    struct stat status{};
    ASSERT_EQ(lstat(names->path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode, S_IFSOCK | 0600U) << names->path();
}

TEST(Statistics, ThePageIsOnlyTheOwnersToWrite) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    const File caller = call(folder.path());
    ASSERT_TRUE(caller.valid());
    (*statistics)->answer();
    Answer answer{};
    iovec bytes{&answer, sizeof answer};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ASSERT_EQ(recvmsg(caller.get(), &message, MSG_CMSG_CLOEXEC), static_cast<int>(sizeof answer));
    int received = -1;
    ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
    const File file(received);
    const std::string path = "/proc/self/fd/" + std::to_string(received);
    const File again(open(path.c_str(), O_RDWR | O_CLOEXEC));
    for (const File* one : {&file, &again}) {
        if (!one->valid()) continue;
        EXPECT_EQ(write(one->get(), "x", 1), -1);
        EXPECT_EQ(ftruncate(one->get(), 0), -1);
        EXPECT_EQ(ftruncate(one->get(), 1 << 20), -1);
        EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, one->get(), 0),
                  MAP_FAILED);
        EXPECT_EQ(fcntl(one->get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
    }
    (*statistics)->counters().add(Counter::polls);
    EXPECT_EQ((*statistics)->counters().get(Counter::polls), 1U);
}

TEST(Statistics, IsReadableOnlyWhileSomebodyNewAsks) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    EXPECT_FALSE(readable((*statistics)->descriptor()));
    (*statistics)->answer();  // nobody: no harm
    std::vector<File> callers;
    for (int n = 0; n < 12; ++n) callers.push_back(call(folder.path()));
    EXPECT_TRUE(readable((*statistics)->descriptor()));
    int calls = 0;
    while (readable((*statistics)->descriptor())) {
        (*statistics)->answer();
        ASSERT_LT(++calls, 10) << "no end";
    }
    EXPECT_GT(calls, 1) << "one call does a bounded share";
    for (const File& caller : callers) EXPECT_EQ(outcome(caller), 1);
    callers.clear();
    EXPECT_FALSE(readable((*statistics)->descriptor())) << "hanging up is no question";
}

TEST(Statistics, WithoutDescriptorsCallersAreTurnedAway) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    std::vector<File> callers;
    for (int n = 0; n < 5; ++n) callers.push_back(call(folder.path()));
    const int before = open_descriptors();
    {
        const DescriptorsUsedUp used(0);
        (*statistics)->answer();
        EXPECT_FALSE(readable((*statistics)->descriptor())) << "the caller would spin";
    }
    for (const File& caller : callers) EXPECT_EQ(outcome(caller), 0);
    EXPECT_EQ(open_descriptors(), before) << "the reserve is back";
    const File late = call(folder.path());
    (*statistics)->answer();
    EXPECT_EQ(outcome(late), 1);
}

TEST(Statistics, WithoutEvenTheReserveCallersWaitAndNobodySpins) {
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    const File early = call(folder.path());
    ASSERT_TRUE(early.valid());
    const int before = open_descriptors();
    {
        // What the reserve gives up cannot be had again. (Below 1, poll itself would fail.)
        const DescriptorLimit none(1);
        for (int n = 0; n < 3; ++n) {
            (*statistics)->answer();
            EXPECT_FALSE(readable((*statistics)->descriptor())) << "the caller would spin";
        }
        EXPECT_EQ(outcome(early), -1);
    }
    EXPECT_EQ(open_descriptors(), before - 1);
    const File late = call(folder.path());
    EXPECT_TRUE(readable((*statistics)->descriptor()));
    (*statistics)->answer();
    EXPECT_EQ(outcome(early), 1);
    EXPECT_EQ(outcome(late), 1);
    EXPECT_EQ(open_descriptors(), before + 1) << "the reserve is back, and a caller came";
}

TEST(Statistics, OtherUsersGetNothing) {
    if (geteuid() != 0) GTEST_SKIP() << "only the administrator can be somebody else";
    TemporaryFolder folder;
    auto statistics = Statistics::open(folder.path(), "shm");
    ASSERT_TRUE(statistics);
    ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);  // as if the directory failed us
    ASSERT_EQ(chmod((folder / names_in(folder.path())[0]).c_str(), 0777), 0);
    Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
    EXPECT_EQ(test::in_child([&] {
                  if (setresuid(12345, 12345, 12345) != 0) return 1;
                  const File caller = call(folder.path());
                  if (!caller.valid()) return 2;
                  if (!readable(caller.get(), 60'000)) return 3;
                  return outcome(caller) == 0 ? 0 : 4;
              }),
              0);
}

TEST(Statistics, OpeningAndAskingKeepNoDescriptors) {
    TemporaryFolder folder;
    const int before = open_descriptors();
    for (int n = 0; n < 50; ++n) {
        auto statistics = Statistics::open(folder.path(), "shm");
        ASSERT_TRUE(statistics);
        const int with_owner = open_descriptors();
        {
            Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
            ASSERT_EQ(find_statistics(folder.path()).size(), 1U);
        }
        ASSERT_EQ(open_descriptors(), with_owner);
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(find_statistics(folder / "missing").empty());
    EXPECT_EQ(open_descriptors(), before);
}

// What lies in the directory
// ------------------------------------------------------------------------

/// A socket called `name` that listens.
File listen_as(const std::string& path) {
    File listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address =
        socket_address(fs::path(path).parent_path(), -1, fs::path(path).filename());
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), generic, sizeof address), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    return listener;
}

TEST(FindStatistics, TouchesOnlyNamesOfItsOwnForm) {
    TemporaryFolder folder;
    const std::vector<std::string> foreign = {"stat-",
                                              "stat-1",
                                              "stat-1-0",
                                              "stat-1-00000000000000000",
                                              "stat-1-000000000000000G",
                                              "stat-1-000000000000000A",
                                              "stat--0000000000000000",
                                              "stat-12345678901-0000000000000000",
                                              "stat-x-0000000000000000",
                                              "nic-1-0000000000000000",
                                              "Stat-1-0000000000000000"};
    for (const std::string& name : foreign) listen_as(folder / name).reset();  // dead at once
    listen_as(folder / "stat-1-0000000000000000").reset();
    EXPECT_TRUE(find_statistics(folder.path()).empty());
    EXPECT_EQ(names_in(folder.path()).size(), foreign.size());
    EXPECT_FALSE(fs::exists(folder / "stat-1-0000000000000000"));
}

TEST(FindStatistics, SaysWhetherSomethingWasLeftOut) {
    TemporaryFolder folder;
    bool complete = false;
    EXPECT_TRUE(find_statistics(folder.path(), &complete).empty());
    EXPECT_TRUE(complete) << "there is nothing";
    const File silent = listen_as(folder / "stat-1-0000000000000000");
    EXPECT_TRUE(find_statistics(folder.path(), &complete).empty());
    EXPECT_FALSE(complete);
}

TEST(FindStatistics, LeavesASocketThatIsJustBeingMade) {
    TemporaryFolder folder;
    listen_as(folder / "new-stat-1-0000000000000000").reset();
    EXPECT_TRUE(find_statistics(folder.path()).empty());
    EXPECT_EQ(names_in(folder.path()).size(), 1U);
}

TEST(FindStatistics, DoesNotFollowALinkInPlaceOfTheDirectory) {
    TemporaryFolder folder;
    TemporaryFolder other;
    listen_as(other / "stat-1-0000000000000000").reset();
    ASSERT_EQ(symlink(other.path().c_str(), (folder / "link").c_str()), 0);
    EXPECT_TRUE(find_statistics(folder / "link").empty());
    EXPECT_EQ(names_in(other.path()).size(), 1U);
}

// Liars
// ---------------------------------------------------------------------------------------------

class HostileServer : public ::testing::Test {
protected:
    static constexpr int good_seals = page_seals;

    static void SetUpTestSuite() { setenv("OPENVIA_LOG_LEVEL", "1", 0); }

    static File memory(std::size_t size, int seals, std::uint64_t magic, std::uint32_t count) {
        File file(memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        StatisticsPage page{};
        page.magic = magic;
        page.counter_count = count;
        EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
        const std::size_t part = size < sizeof page ? size : sizeof page;
        EXPECT_EQ(pwrite(file.get(), &page, part, 0), static_cast<ssize_t>(part));
        EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
        return file;
    }
    static File good_memory() {
        return memory(sizeof(StatisticsPage), good_seals, StatisticsPage::magic_value,
                      counter_count);
    }

    /// How many views a reader gets from a server that sends these bytes and descriptors.
    std::size_t views_from(const std::string& bytes, const std::vector<int>& descriptors) {
        File listener = listen_as(folder_ / name_);
        const int before = open_descriptors();
        std::size_t views = 0;
        {
            std::thread server([&] { serve(listener.get(), bytes, descriptors); });
            views = find_statistics(folder_.path()).size();
            server.join();
        }
        EXPECT_EQ(open_descriptors(), before);
        EXPECT_EQ(names_in(folder_.path()).size(), 1U) << "it is alive: its socket stays";
        unlink((folder_ / name_).c_str());
        return views;
    }

    static void serve(int listener, const std::string& bytes, const std::vector<int>& descriptors) {
        const File peer(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        ASSERT_TRUE(peer.valid());
        if (bytes.empty() && descriptors.empty()) return;
        iovec part{const_cast<char*>(bytes.data()), bytes.size()};
        const std::size_t attached = descriptors.size() * sizeof(int);
        std::vector<char> control(CMSG_SPACE(attached));
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (attached != 0) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            cmsghdr* head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(attached);
            memcpy(CMSG_DATA(head), descriptors.data(), attached);
        }
        EXPECT_EQ(sendmsg(peer.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    }

    static std::string good_bytes() { return bytes_with({}, 0); }
    static std::string bytes_with(const std::vector<device::Way>& ways, std::uint32_t count) {
        const Answer answer{answer_magic, count, count};
        return std::string(reinterpret_cast<const char*>(&answer), sizeof answer) +
               std::string(reinterpret_cast<const char*>(ways.data()),
                           ways.size() * sizeof(device::Way));
    }

    TemporaryFolder folder_;
    const std::string name_ = "stat-1-0123456789abcdef";
};

TEST_F(HostileServer, AnHonestOneIsRead) {
    EXPECT_EQ(views_from(good_bytes(), {good_memory().get()}), 1U);
}

TEST_F(HostileServer, UnsealedMemoryIsSkipped) {
    for (const int missing : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_FUTURE_WRITE}) {
        const File file = memory(sizeof(StatisticsPage), good_seals & ~missing,
                                 StatisticsPage::magic_value, counter_count);
        EXPECT_EQ(views_from(good_bytes(), {file.get()}), 0U) << missing;
    }
    const File plain(open((folder_ / "plain").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(plain.get(), sizeof(StatisticsPage)), 0);
    unlink((folder_ / "plain").c_str());
    EXPECT_EQ(views_from(good_bytes(), {plain.get()}), 0U);
    EXPECT_EQ(views_from(good_bytes(), {STDERR_FILENO}), 0U);
}

TEST_F(HostileServer, WrongSizesAreSkipped) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{8}, sizeof(StatisticsPage) - 1,
                                   sizeof(StatisticsPage) + 1, std::size_t{1} << 20}) {
        const File file = memory(size, good_seals, StatisticsPage::magic_value, counter_count);
        EXPECT_EQ(views_from(good_bytes(), {file.get()}), 0U) << size;
    }
}

TEST_F(HostileServer, PagesOfOtherVersionsAreSkipped) {
    const std::size_t size = sizeof(StatisticsPage);
    const auto magic = StatisticsPage::magic_value;
    for (const File& file :
         {memory(size, good_seals, magic + 1, counter_count),
          memory(size, good_seals, magic, counter_count + 1),
          memory(size, good_seals, magic, counter_count - 1), memory(size, good_seals, 0, 0)})
        EXPECT_EQ(views_from(good_bytes(), {file.get()}), 0U);
}

TEST_F(HostileServer, AnswersOfAnotherFormAreSkipped) {
    const File file = good_memory();
    const int good = file.get();
    EXPECT_EQ(views_from("", {}), 0U) << "hangs up";
    EXPECT_EQ(views_from(good_bytes(), {}), 0U) << "without a descriptor";
    EXPECT_EQ(views_from(good_bytes(), {good, good}), 0U) << "with two";
    EXPECT_EQ(views_from(good_bytes(), std::vector<int>(100, good)), 0U) << "with many";
    EXPECT_EQ(views_from("x", {good}), 0U) << "short";
    EXPECT_EQ(views_from(good_bytes() + "x", {good}), 0U) << "long";
    EXPECT_EQ(views_from("VIASTAT3", {good}), 0U) << "of another version";
}

TEST_F(HostileServer, WaysThatCannotBeAreSkipped) {
    const File file = good_memory();
    const std::vector<device::Way> ways(2, some_way());
    EXPECT_EQ(views_from(bytes_with(ways, 2), {file.get()}), 1U);
    for (const std::uint32_t count : {0U, 1U, 3U, ~0U})
        EXPECT_EQ(views_from(bytes_with(ways, count), {file.get()}), 0U) << count;
    constexpr std::uint32_t most = Statistics::ways_max;
    const std::vector<device::Way> many(most + 1, some_way());
    EXPECT_EQ(views_from(bytes_with(many, most + 1), {file.get()}), 0U);
    device::Way long_address = some_way();
    long_address.over.length = 19;
    EXPECT_EQ(views_from(bytes_with({long_address}, 1), {file.get()}), 0U);
    device::Way no_address = some_way();
    no_address.peer.length = 0;
    EXPECT_EQ(views_from(bytes_with({no_address}, 1), {file.get()}), 0U);
    device::Way no_state = some_way();
    no_state.state = static_cast<device::WayState>(4);
    EXPECT_EQ(views_from(bytes_with({no_state}, 1), {file.get()}), 0U);
}

TEST_F(HostileServer, ASilentOneDelaysNobodyForLong) {
    const File listener = listen_as(folder_ / name_);
    auto statistics = Statistics::open(folder_.path(), "shm");
    ASSERT_TRUE(statistics);
    Answering answering([&] { (*statistics)->answer(); }, (*statistics)->descriptor());
    const auto views = find_statistics(folder_.path());
    ASSERT_EQ(views.size(), 1U) << "the silent one is left out, the other is there";
    EXPECT_EQ(views[0].nic_name(), "shm");
    EXPECT_TRUE(fs::exists(folder_ / name_));
}

TEST_F(HostileServer, AFullQueueIsNoDeath) {
    const File listener = listen_as(folder_ / name_);
    std::vector<File> callers;
    for (;;) {
        File caller = call(folder_.path());
        if (!caller.valid()) break;
        callers.push_back(std::move(caller));
        ASSERT_LT(callers.size(), 10U);
    }
    EXPECT_TRUE(find_statistics(folder_.path()).empty());
    EXPECT_TRUE(fs::exists(folder_ / name_));
}

TEST_F(HostileServer, ReadersShortOfDescriptorsReadWhatTheyCan) {
    const File listener = listen_as(folder_ / name_);
    const int before = open_descriptors();
    for (std::size_t spare = 0; spare < 3; ++spare) {
        const DescriptorsUsedUp used(spare);
        EXPECT_TRUE(find_statistics(folder_.path()).empty());
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(fs::exists(folder_ / name_));
}

}  // namespace
}  // namespace via::agent::statistics_test
