#include "agent/shared_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/directory.hpp"
#include "agent/file.hpp"
#include "agent/test_support.hpp"

namespace via::agent::shared_directory_test {
namespace {

using test::TemporaryFolder;
namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

struct Common : TemporaryFolder {
    Common() { EXPECT_EQ(chmod(path().c_str(), 01777), 0); }
};

/// As if nothing had been changed in it since 2001.
void make_old(const std::string& path) {
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

TEST(SharedDirectory, IsOneForEachNameThatOthersMayLookInto) {
    const Common place;
    const TemporaryFolder ours;
    const auto first = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(first) << first.error();
    EXPECT_TRUE(first->shared);
    EXPECT_EQ(mode_of(first->path), 0711U);
    const std::string begin = place.path() + "/openvia-" + *host_folder() + "-udp-x-";
    EXPECT_EQ(first->path.substr(0, first->path.size() - 6), begin);
    EXPECT_EQ(shared_directory(ours.path(), "udp-x", place.path())->path, first->path);
    EXPECT_NE(shared_directory(ours.path(), "udp-y", place.path())->path, first->path);
    const TemporaryFolder theirs;
    EXPECT_NE(shared_directory(theirs.path(), "udp-x", place.path())->path, first->path);
}

TEST(SharedDirectory, OneThatIsGoneIsMadeAnew) {
    const Common place;
    const TemporaryFolder ours;
    const auto first = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(first);
    fs::remove(first->path);
    const auto second = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->shared);
    EXPECT_TRUE(fs::is_directory(second->path));
    EXPECT_EQ(chmod(second->path.c_str(), 0777), 0);
    EXPECT_NE(shared_directory(ours.path(), "udp-x", place.path())->path, second->path)
        << "others may write there";
}

TEST(SharedDirectory, WithoutAPlaceItIsOursAlone) {
    const TemporaryFolder place, ours;  // a place whose names anybody with its rights may remove
    for (const std::string& where : {place.path(), place.path() + "/none"}) {
        const auto own = shared_directory(ours.path(), "udp-x", where);
        ASSERT_TRUE(own) << own.error();
        EXPECT_FALSE(own->shared);
        EXPECT_EQ(own->path, ours.path() + "/udp-x");
        EXPECT_EQ(mode_of(own->path), 0700U);
    }
}

TEST(SharedDirectory, OursAloneReplacesALinkIntoAPlaceThatIsNoneAnyMore) {
    const Common place;
    const TemporaryFolder ours;
    const auto before = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(before);
    ASSERT_EQ(chmod(place.path().c_str(), 0700), 0);
    const auto used = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_FALSE(used) << "somebody may be in it";
    EXPECT_NE(used.error().find("other NICs of yours use " + before->path), std::string::npos)
        << used.error();
    EXPECT_NE(used.error().find("no sticky bit"), std::string::npos) << used.error();
    make_old(before->path);
    const auto dead = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(dead) << dead.error();
    EXPECT_EQ(dead->path, ours.path() + "/udp-x");
    EXPECT_FALSE(dead->shared);
    EXPECT_TRUE(fs::is_directory(fs::symlink_status(dead->path)));

    const std::string lost = shared_directory(ours.path(), "udp-y", place.path())->path;
    EXPECT_EQ(lost, ours.path() + "/udp-y");
    ASSERT_EQ(chmod(place.path().c_str(), 01777), 0);
    const auto again = shared_directory(ours.path(), "udp-y", place.path());
    ASSERT_TRUE(again && again->shared);
    fs::remove_all(again->path);
    ASSERT_EQ(chmod(place.path().c_str(), 0700), 0);
    const auto gone = shared_directory(ours.path(), "udp-y", place.path());
    ASSERT_TRUE(gone) << gone.error();
    EXPECT_EQ(gone->path, lost);

    fs::create_symlink("/elsewhere", ours / "udp-z");
    EXPECT_FALSE(shared_directory(ours.path(), "udp-z", place.path())) << "not of our making";
}

TEST(SharedDirectory, AHeldLockDelaysNobodyForEver) {
    const Common place;
    const TemporaryFolder ours;
    const File other(open(ours.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
    alarm(20);  // ends a test that hangs
    const auto refused = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().find("cannot lock " + ours.path()), std::string::npos)
        << refused.error();
    ASSERT_EQ(flock(other.get(), LOCK_UN), 0);
    const auto made = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(made) << made.error();
    ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
    const auto again = shared_directory(ours.path(), "udp-x", place.path());
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->path, made->path) << "without the lock";
    alarm(0);
}

TEST(SharedDirectory, WhatTheDeadLeftIsRemoved) {
    const Common place;
    const TemporaryFolder ours, theirs;
    const std::string dead = shared_directory(ours.path(), "udp-a", place.path())->path;
    const std::string alive = shared_directory(ours.path(), "udp-b", place.path())->path;
    const std::string young = shared_directory(ours.path(), "udp-c", place.path())->path;
    for (const std::string& path : {dead, alive, young}) std::ofstream(path + "/nic-1");
    fs::create_symlink("nic-1", dead + "/d-61");
    const int locked = open((alive + "/nic-1").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(locked, F_OFD_SETLK, &lock), 0);
    for (const std::string& path : {dead, alive}) make_old(path);
    ASSERT_TRUE(shared_directory(theirs.path(), "udp-a", place.path()));
    EXPECT_FALSE(fs::exists(dead));
    EXPECT_TRUE(fs::exists(alive));
    EXPECT_TRUE(fs::exists(young));
    close(locked);
}

}  // namespace
}  // namespace via::agent::shared_directory_test
