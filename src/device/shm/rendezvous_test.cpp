#include <gtest/gtest.h>
#include <sys/stat.h>
#include <algorithm>
#include <filesystem>

#include "device/shm/rendezvous.hpp"
#include "device/shm/test_support.hpp"

namespace via::device::shm::test::rendezvous_test {
namespace {

std::unique_ptr<Rendezvous> open(const Directory& directory, std::uint64_t key) {
    auto opened = Rendezvous::open(System::real(), directory.path, key);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().text);
    return opened ? std::move(*opened) : nullptr;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(ShmRendezvous, NamesComeAndGo) {
    Directory directory;
    {
        const auto a = open(directory, 1);
        EXPECT_TRUE(a->listen(discriminator("abc")));
        EXPECT_TRUE(a->listen(discriminator("")));
        EXPECT_EQ(a->find(discriminator("abc")), a->name());
        EXPECT_EQ(a->find(discriminator("")), a->name());
        EXPECT_EQ(a->find(discriminator("ab")), "");
        EXPECT_TRUE(contains(directory.names(), "d-616263"));
        EXPECT_TRUE(contains(directory.names(), "d-"));
        EXPECT_TRUE(contains(directory.names(), a->name()));
    }
    EXPECT_TRUE(directory.names().empty());
}

TEST(ShmRendezvous, ListeningNests) {
    Directory directory;
    const auto a = open(directory, 1);
    EXPECT_TRUE(a->listen(discriminator("x")));
    EXPECT_TRUE(a->listen(discriminator("x")));
    a->unlisten(discriminator("x"));
    EXPECT_EQ(a->find(discriminator("x")), a->name());
    a->unlisten(discriminator("x"));
    EXPECT_EQ(a->find(discriminator("x")), "");
    a->unlisten(discriminator("x"));
}

TEST(ShmRendezvous, AnyDiscriminatorMakesAName) {
    Directory directory;
    const auto a = open(directory, 1);
    Discriminator longest;
    longest.length = 64;
    for (std::size_t i = 0; i < 64; ++i) longest.bytes[i] = static_cast<std::uint8_t>(255 - i);
    EXPECT_TRUE(a->listen(longest));
    EXPECT_EQ(a->find(longest), a->name());
    EXPECT_TRUE(a->listen(discriminator(std::string("/\0..", 4))));
    EXPECT_EQ(a->find(discriminator(std::string("/\0..", 4))), a->name());
}

TEST(ShmRendezvous, TheLivingKeepTheirNames) {
    Directory directory;
    const auto a = open(directory, 1);
    const auto b = open(directory, 2);
    ASSERT_TRUE(a->listen(discriminator("x")));
    const auto refused = b->listen(discriminator("x"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, Status::error_resource);
    EXPECT_NE(refused.error().text.find(a->name()), std::string::npos);
    b->unlisten(discriminator("x"));
    EXPECT_EQ(b->find(discriminator("x")), a->name());
    a->unlisten(discriminator("x"));
    EXPECT_TRUE(b->listen(discriminator("x")));
}

TEST(ShmRendezvous, NamesOfTheDeadAreTakenOver) {
    Directory directory;
    const auto before = open(directory, 2);  // opened while the other still lives
    Child child([&](Child& self) {
        const auto a = open(directory, 1);
        if (!a->listen(discriminator("x")) || !a->listen(discriminator("y"))) return false;
        self.tell('r');
        self.hear();
        return true;
    });
    ASSERT_EQ(child.hear(), 'r');
    EXPECT_FALSE(before->listen(discriminator("x")));
    child.signal(SIGKILL);
    child.join();
    EXPECT_TRUE(before->listen(discriminator("x")));
    EXPECT_EQ(before->find(discriminator("x")), before->name());
    EXPECT_EQ(directory.names().size(), 4U) << "the dead one's socket and y, ours and x";
    const auto later = open(directory, 3);
    EXPECT_EQ(directory.names().size(), 3U) << "the next opener cleans up";
    EXPECT_EQ(later->find(discriminator("y")), "");
}

/// Its process may be of another pid namespace, where its number is another one.
TEST(ShmRendezvous, ASocketThatIsBeingMadeIsLeftAlone) {
    Directory directory;
    const std::string name = "new" + make_nic_name(4194303, 1).substr(3);
    const std::string path = directory.path + "/" + name;
    ::close(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    open(directory, 1);
    EXPECT_TRUE(std::filesystem::exists(path));
    set_back(path);
    open(directory, 2);
    EXPECT_FALSE(std::filesystem::exists(path)) << "nobody takes so long";
}

TEST(ShmRendezvous, AForkedChildThatHoldsTheSocketDoesNotKeepTheNameAlive) {
    Directory directory;
    Child child([&](Child& self) {
        const auto a = open(directory, 1);
        if (!a->listen(discriminator("x"))) return false;
        // A grandchild that knows nothing of VIA inherits all descriptors and lives on.
        if (::fork() == 0) {
            self.hear();  // ends when the test closes its pipe
            ::_exit(0);
        }
        self.tell('r');
        for (;;) ::pause();
    });
    ASSERT_EQ(child.hear(), 'r');
    child.signal(SIGKILL);
    child.join();
    const auto b = open(directory, 2);
    EXPECT_TRUE(b->listen(discriminator("x")));
}

TEST(ShmRendezvous, MalformedLinksAreReplacedAndLeadNowhere) {
    Directory directory;
    ASSERT_EQ(::symlink("../../etc/passwd", (directory.path + "/d-78").c_str()), 0);
    const auto a = open(directory, 1);
    EXPECT_EQ(a->find(discriminator("x")), "");
    EXPECT_TRUE(a->listen(discriminator("x")));
    EXPECT_EQ(a->find(discriminator("x")), a->name());
}

TEST(ShmRendezvous, AStoppedHolderOfTheLockBlocksNobody) {
    Directory directory;
    ASSERT_EQ(::symlink(make_nic_name(1, 5).c_str(), (directory.path + "/d-78").c_str()), 0);
    const int lock = ::open(directory.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(lock, LOCK_EX), 0);
    const auto a = open(directory, 1);
    EXPECT_TRUE(a->listen(discriminator("y")));
    const auto refused = a->listen(discriminator("x"));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text.find("locked"), std::string::npos);
    ::close(lock);
    EXPECT_TRUE(a->listen(discriminator("x")));
}

TEST(ShmRendezvous, ManyTakeOverTheSameDeadNameAndOneWins) {
    Directory directory;
    ASSERT_EQ(::symlink(make_nic_name(1, 5).c_str(), (directory.path + "/d-78").c_str()), 0);
    std::vector<std::unique_ptr<Child>> children;
    for (std::uint64_t i = 1; i <= 8; ++i) {
        children.push_back(std::make_unique<Child>([&, i](Child& self) {
            const auto a = open(directory, i);
            self.tell('r');
            self.hear();
            const bool won = a->listen(discriminator("x")).has_value();
            self.tell(won ? 'w' : 'l');
            self.hear();
            return true;
        }));
    }
    for (auto& child : children) ASSERT_EQ(child->hear(), 'r');
    for (auto& child : children) child->tell('g');
    int winners = 0;
    for (auto& child : children) winners += child->hear() == 'w';
    EXPECT_EQ(winners, 1);
    for (auto& child : children) child->tell('e');
    for (auto& child : children) EXPECT_TRUE(child->join());
    EXPECT_TRUE(directory.names().empty());
}

TEST(ShmRendezvous, MayBeConnectedToWhateverTheUmask) {
    Directory directory;
    const mode_t mask = ::umask(0777);
    const auto opened = Rendezvous::open(System::real(), directory.path, 1);
    ::umask(mask);
    ASSERT_TRUE(opened) << opened.error().text;
    for (const auto& entry : std::filesystem::directory_iterator(directory.path))
        EXPECT_EQ(entry.status().permissions(), std::filesystem::perms(0600)) << entry;
}

TEST(ShmRendezvous, LongPathsWork) {
    Directory directory;
    std::string path = directory.path;
    std::vector<std::string> made;
    while (path.size() < 300) {
        path += "/" + std::string(60, 'p');
        ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
        made.push_back(path);
    }
    {
        auto a = Rendezvous::open(System::real(), path, 1);
        ASSERT_TRUE(a) << a.error().text;
        EXPECT_TRUE((*a)->listen(discriminator("x")));
        auto b = Rendezvous::open(System::real(), path, 2);
        ASSERT_TRUE(b);
        Descriptor socket(System::real(), System::real().socket());
        EXPECT_EQ((*b)->connect(socket.get(), {}, (*b)->find(discriminator("x"))),
                  Folder::Reach::connected);
    }
    for (; !made.empty(); made.pop_back()) EXPECT_EQ(::rmdir(made.back().c_str()), 0);
}

TEST(ShmRendezvous, UnsafeDirectoriesAreRefusedWithAdvice) {
    Directory directory;
    for (const mode_t mode : {0755U, 0770U, 0701U}) {
        ASSERT_EQ(::chmod(directory.path.c_str(), mode), 0);
        const auto opened = Rendezvous::open(System::real(), directory.path, 1);
        ASSERT_FALSE(opened) << mode;
        EXPECT_NE(opened.error().text.find("0700"), std::string::npos);
    }
    ASSERT_EQ(::chmod(directory.path.c_str(), 0700), 0);
    const auto missing = Rendezvous::open(System::real(), directory.path + "/no", 1);
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().text.find(directory.path + "/no"), std::string::npos);
    const std::string link = directory.path + "/link";
    ASSERT_EQ(::symlink(directory.path.c_str(), link.c_str()), 0);
    EXPECT_FALSE(Rendezvous::open(System::real(), link, 1)) << "a link to a directory";
}

TEST(ShmRendezvous, TheSameKeyTwiceIsAnError) {
    Directory directory;
    const auto a = open(directory, 1);
    const auto again = Rendezvous::open(System::real(), directory.path, 1);
    EXPECT_FALSE(again);
    EXPECT_EQ(directory.names().size(), 1U);
}

}  // namespace
}  // namespace via::device::shm::test::rendezvous_test
