#include "agent/directory.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <fstream>
#include <iterator>

#include "agent/base_directory.hpp"
#include "agent/test_support.hpp"

namespace via::agent::directory_test {
namespace {

using test::DescriptorLimit;
using test::open_descriptors;
using test::TemporaryFolder;
using test::Variable;
namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

void make_folder(const std::string& path, mode_t mode = 0700) {
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0) << path;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

void make_file(const std::string& path) { std::ofstream(path) << "kept"; }

std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void make_dead_socket(const std::string& path) {
    const int file = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(file);
}

/// As if nothing had been changed in it since 2001.
void make_old(const std::string& path) {
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

/// The error must name the path, what is wrong, and what to do.
void expect_refusal(const std::expected<std::string, std::string>& result, const std::string& path,
                    const std::string& wrong, const std::string& remedy) {
    ASSERT_FALSE(result.has_value()) << *result;
    for (const std::string& part : {path, wrong, remedy})
        EXPECT_NE(result.error().find(part), std::string::npos)
            << result.error() << "\n lacks " << part;
}

TEST(PrivateDirectory, IsMadeForUsAlone) {
    TemporaryFolder folder;
    const mode_t mask = umask(0);
    const auto made = private_directory(folder / "new");
    umask(mask);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(*made, folder / "new");
    EXPECT_EQ(mode_of(*made), 0700U);
    EXPECT_TRUE(private_directory(folder / "new")) << "one that is there is taken as it is";
}

TEST(PrivateDirectory, IsMadeForUsAloneWhateverTheUmask) {
    TemporaryFolder folder;
    const mode_t mask = umask(0777);
    const auto made = private_directory(folder / "new");
    umask(mask);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(mode_of(*made), 0700U);
}

TEST(PrivateDirectory, AnOwnerWhomTheUserNamespaceDoesNotKnowIsToldAsSuch) {
    EXPECT_EQ(owner_text(65534), "user 65534");
    EXPECT_EQ(test::in_child([] {
                  if (unshare(CLONE_NEWUSER) != 0) return 0;  // not for us here
                  const int map = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
                  const std::string own =
                      "0 " + std::to_string(getuid() == 65534 ? 0 : getuid()) + " 1";
                  static_cast<void>(write(map, own.data(), own.size()) < 0);
                  return owner_text(65534).find("user namespace") == std::string::npos ? 1 : 0;
              }),
              0);
    EXPECT_EQ(owner_text(1), "user 1");
}

TEST(PrivateDirectory, RefusesASymbolicLinkEvenToAGoodDirectory) {
    TemporaryFolder folder;
    make_folder(folder / "good");
    ASSERT_EQ(symlink("good", (folder / "link").c_str()), 0);
    expect_refusal(private_directory(folder / "link"), folder / "link", "is a symbolic link",
                   "remove it");
    ASSERT_EQ(symlink("elsewhere", (folder / "dangling").c_str()), 0);
    expect_refusal(private_directory(folder / "dangling"), folder / "dangling",
                   "is a symbolic link", "remove it");
    EXPECT_FALSE(fs::exists(folder / "elsewhere")) << "nothing may be made through the link";
}

TEST(PrivateDirectory, RefusesWhatIsNoDirectory) {
    TemporaryFolder folder;
    make_file(folder / "file");
    expect_refusal(private_directory(folder / "file"), folder / "file", "is not a directory",
                   "remove it");
    EXPECT_EQ(content(folder / "file"), "kept");
}

TEST(PrivateDirectory, RefusesEveryBitForOthersAndEveryMissingOneOfOurs) {
    TemporaryFolder folder;
    make_folder(folder / "d");
    for (const mode_t bit : {040U, 020U, 010U, 04U, 02U, 01U}) {
        ASSERT_EQ(chmod((folder / "d").c_str(), 0700 | bit), 0);
        expect_refusal(private_directory(folder / "d"), folder / "d", "others can enter",
                       "chmod 700");
    }
    for (const mode_t bit : {0400U, 0200U, 0100U}) {
        ASSERT_EQ(chmod((folder / "d").c_str(), 0700 & ~bit), 0);
        expect_refusal(private_directory(folder / "d"), folder / "d", "we cannot use", "chmod 700");
    }
    ASSERT_EQ(chmod((folder / "d").c_str(), 02700), 0);
    EXPECT_TRUE(private_directory(folder / "d")) << "set-group-id lets nobody in";
}

TEST(PrivateDirectory, RefusesAnotherOwner) {
    TemporaryFolder folder;
    std::string path = "/usr";  // the administrator's, for whoever is somebody else
    if (geteuid() == 0) {
        path = folder / "foreign";
        make_folder(path);
        ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    }
    expect_refusal(private_directory(path), path, "belongs to user", "XDG_RUNTIME_DIR");
}

TEST(PrivateDirectory, SaysWhatTheSystemSaid) {
    TemporaryFolder folder;
    expect_refusal(private_directory(folder / "no/way"), folder / "no/way", "No such file",
                   "XDG_RUNTIME_DIR");
    make_folder(folder / "d");
    const DescriptorLimit none(0);
    expect_refusal(private_directory(folder / "d"), folder / "d", "Too many open files",
                   "ulimit -n");
}

TEST(SubDirectory, IsMadeWithinAndChecked) {
    TemporaryFolder folder;
    const auto made = sub_directory(folder.path(), "shm-left.1");
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(*made, folder / "shm-left.1");
    EXPECT_EQ(mode_of(*made), 0700U);
    ASSERT_EQ(symlink("shm-left.1", (folder / "link").c_str()), 0);
    expect_refusal(sub_directory(folder.path(), "link"), folder / "link", "is a symbolic link",
                   "remove it");
    ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
    expect_refusal(sub_directory(folder.path(), "shm-left.1"), folder.path(), "others can enter",
                   "chmod 700");
}

TEST(SubDirectory, TakesPlainNamesOnly) {
    TemporaryFolder folder;
    make_folder(folder / "host");
    for (const std::string& name : {std::string(""), std::string("."), std::string(".."),
                                    std::string("a/b"), std::string("../x"), std::string("/abs"),
                                    std::string("a\0b", 3), std::string(256, 'a')}) {
        const auto made = sub_directory(folder / "host", name);
        EXPECT_FALSE(made.has_value()) << name;
    }
    EXPECT_TRUE(fs::is_empty(folder / "host"));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(HostFolder, IsBootAndNetworkNamespace) {
    const auto name = host_folder();
    ASSERT_TRUE(name) << name.error();
    const std::string boot = content("/proc/sys/kernel/random/boot_id");
    struct stat network{};
    ASSERT_EQ(stat("/proc/self/ns/net", &network), 0);
    EXPECT_EQ(*name, boot.substr(0, 8) + "-" + std::to_string(network.st_ino));
}

/// In a mount namespace of the child's own.
bool has_own_mounts() {
    return unshare(CLONE_NEWNS) == 0 &&
           mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

TEST(PrivateDirectory, OfAReadOnlyFileSystemCallPlaceAndReasonAreTold) {
    const TemporaryFolder folder;
    constexpr int not_allowed = 77;
    const int result = test::in_child([&] {
        if (!has_own_mounts() ||
            mount("none", folder.path().c_str(), "tmpfs", MS_RDONLY, nullptr) != 0)
            return not_allowed;
        const auto made = private_directory(folder / "new");
        if (made) return 1;
        const std::string wanted = "cannot make the directory " + (folder / "new") +
                                   " (mkdir): Read-only file system; set XDG_RUNTIME_DIR";
        return made.error().starts_with(wanted) ? 0 : 2;
    });
    if (result == not_allowed) GTEST_SKIP() << "no right to mount a file system";
    EXPECT_EQ(result, 0);
}

TEST(HostFolder, WhereProcShowsProcessesOnlyTheAdviceIsAboutProc) {
    constexpr int not_allowed = 77;
    const int result = test::in_child([] {
        if (!has_own_mounts() || mount("proc", "/proc", "proc", 0, "subset=pid") != 0)
            return not_allowed;
        const auto name = host_folder();
        if (name) return 1;
        if (name.error().find("subset=pid") == std::string::npos) return 2;
        return name.error().find("XDG_RUNTIME_DIR") == std::string::npos ? 0 : 3;
    });
    if (result == not_allowed) GTEST_SKIP() << "no right to mount a file system";
    EXPECT_EQ(result, 0);
}

TEST(HostFolder, DiffersBetweenNetworkNamespaces) {
    const auto here = host_folder();
    ASSERT_TRUE(here);
    constexpr int not_allowed = 77;
    const int result = test::in_child([&] {
        if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
            return not_allowed;
        const auto there = host_folder();
        return there && *there != *here && there->substr(0, 9) == here->substr(0, 9) ? 0 : 1;
    });
    if (result == not_allowed) GTEST_SKIP() << "this system lets us make no network namespace";
    EXPECT_EQ(result, 0);
}

TEST(HostDirectory, LiesInTheRuntimeDirectory) {
    TemporaryFolder runtime;
    const Variable variable("XDG_RUNTIME_DIR", runtime.path().c_str());
    const auto made = host_directory();
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(*made, runtime / "openvia/" + *host_folder());
    EXPECT_EQ(mode_of(runtime / "openvia"), 0700U);
    EXPECT_EQ(mode_of(*made), 0700U);
    EXPECT_EQ(host_directory(), made);
}

TEST(HostDirectory, RefusesASymbolicLinkAtEitherLevel) {
    TemporaryFolder runtime;
    TemporaryFolder trap;
    const Variable variable("XDG_RUNTIME_DIR", runtime.path().c_str());
    ASSERT_EQ(symlink(trap.path().c_str(), (runtime / "openvia").c_str()), 0);
    expect_refusal(host_directory(), runtime / "openvia", "is a symbolic link", "remove it");
    EXPECT_TRUE(fs::is_empty(trap.path()));

    ASSERT_EQ(unlink((runtime / "openvia").c_str()), 0);
    make_folder(runtime / "openvia");
    const std::string host = runtime / "openvia/" + *host_folder();
    ASSERT_EQ(symlink(trap.path().c_str(), host.c_str()), 0);
    expect_refusal(host_directory(), host, "is a symbolic link", "remove it");
}

TEST(HostDirectory, FallsBackWhenTheRuntimeDirectoryIsNoGood) {
    TemporaryFolder folder;
    make_file(folder / "file");
    make_folder(folder / "open", 0777);
    std::vector<std::string> bad = {"", "relative", folder / "missing", folder / "file",
                                    folder / "open"};
    if (geteuid() == 0) {
        make_folder(folder / "foreign");
        ASSERT_EQ(chown((folder / "foreign").c_str(), 12345, 12345), 0);
        bad.push_back(folder / "foreign");
    }
    const std::string expected = [] {
        const Variable variable("XDG_RUNTIME_DIR", nullptr);
        return *base_directory() + "/" + *host_folder();
    }();
    for (const std::string& value : bad) {
        const Variable variable("XDG_RUNTIME_DIR", value.c_str());
        const auto made = host_directory();
        ASSERT_TRUE(made) << made.error();
        EXPECT_EQ(*made, expected) << value;
    }
    const Variable variable("XDG_RUNTIME_DIR", nullptr);
    EXPECT_EQ(host_directory(), expected);
}

class OldHosts : public ::testing::Test {
protected:
    /// A folder of a host as it is left behind.
    std::string leave(const std::string& name) {
        const std::string path = folder_ / name;
        make_folder(path);
        make_file(path + "/file");
        make_dead_socket(path + "/stat-1-00");
        make_folder(path + "/shm");
        make_dead_socket(path + "/shm/nic-1-00");
        EXPECT_EQ(symlink("nic-1-00", (path + "/shm/d-00").c_str()), 0);
        make_old(path);
        return path;
    }
    static bool there(const std::string& path) {
        struct stat status{};
        return lstat(path.c_str(), &status) == 0;
    }
    TemporaryFolder folder_;
};

TEST_F(OldHosts, OfOtherBootsAreRemoved) {
    leave("00000000-4026531840");
    leave("0000abcd-1");
    EXPECT_EQ(remove_old_hosts(folder_.path()), 2U);
    EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(OldHosts, AreRemovedByWhoeverOpensTheHostDirectory) {
    const Variable variable("XDG_RUNTIME_DIR", folder_.path().c_str());
    make_folder(folder_ / "openvia");
    const std::string old = leave("openvia/00000000-1");
    ASSERT_TRUE(host_directory());
    EXPECT_FALSE(there(old));
}

TEST_F(OldHosts, OfThisBootAndYoungerOnesStay) {
    const std::string same_boot = leave(host_folder()->substr(0, 9) + "1");
    const std::string elsewhere = leave("00000000-1");
    const timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    ASSERT_EQ(utimensat(AT_FDCWD, elsewhere.c_str(), now, 0), 0);
    EXPECT_EQ(remove_old_hosts(folder_.path()), 0U);
    EXPECT_TRUE(there(same_boot + "/shm/d-00"));
    EXPECT_TRUE(there(elsewhere + "/shm/d-00"));
}

TEST_F(OldHosts, OnlyNamesOfOurPatternAreTouched) {
    for (const char* name : {"00000000", "00000000-", "0000000-1", "000000000-1", "0000000G-1",
                             "0000000A-1", "00000000-1a", "00000000_1", "x00000000-1",
                             "00000000-1.", "00000000-123456789012345678901"})
        leave(name);
    EXPECT_EQ(remove_old_hosts(folder_.path()), 0U);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 11);
    EXPECT_TRUE(there(folder_ / "00000000/shm/d-00"));
}

TEST_F(OldHosts, LinksAreNotFollowed) {
    TemporaryFolder other;
    make_file(other / "precious");
    ASSERT_EQ(symlink(other.path().c_str(), (folder_ / "00000000-1").c_str()), 0);
    make_old(folder_ / "00000000-1");
    const std::string old = leave("00000000-2");
    ASSERT_EQ(symlink(other.path().c_str(), (old + "/way-out").c_str()), 0);
    ASSERT_EQ(symlink(other.path().c_str(), (old + "/shm/way-out").c_str()), 0);
    make_old(old);
    EXPECT_EQ(remove_old_hosts(folder_.path()), 1U);
    EXPECT_TRUE(there(folder_ / "00000000-1"));
    EXPECT_FALSE(there(old));
    EXPECT_EQ(content(other / "precious"), "kept");
}

TEST_F(OldHosts, WhatWeNeverMakeStays) {
    const std::string with_pipe = leave("00000000-1");
    ASSERT_EQ(mkfifo((with_pipe + "/pipe").c_str(), 0600), 0);
    make_old(with_pipe);
    const std::string deep = leave("00000000-2");
    make_folder(deep + "/shm/deeper");
    make_file(deep + "/shm/deeper/file");
    make_old(deep);
    testing::internal::CaptureStderr();
    EXPECT_EQ(remove_old_hosts(folder_.path()), 0U);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(with_pipe), std::string::npos) << said;
    EXPECT_NE(said.find(deep), std::string::npos) << said;
    EXPECT_TRUE(there(with_pipe + "/pipe"));
    EXPECT_EQ(content(deep + "/shm/deeper/file"), "kept");
}

TEST_F(OldHosts, OfAnotherOwnerStay) {
    if (geteuid() != 0) GTEST_SKIP() << "only the administrator can give folders away";
    const std::string path = leave("00000000-1");
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(remove_old_hosts(folder_.path()), 0U);
    EXPECT_TRUE(there(path + "/shm/d-00"));
}

TEST_F(OldHosts, NothingHereKeepsDescriptors) {
    const Variable variable("XDG_RUNTIME_DIR", folder_.path().c_str());
    const int before = open_descriptors();
    make_folder(folder_ / "openvia");
    for (int n = 0; n < 20; ++n) {
        leave("openvia/00000000-1");
        ASSERT_TRUE(host_directory());
        ASSERT_TRUE(sub_directory(folder_ / "openvia", "shm"));
        ASSERT_FALSE(private_directory(folder_ / "openvia/no/way"));
    }
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace via::agent::directory_test
