// The memory that processes share, and its names.
#include "arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

namespace via::sockets {
namespace arena_test {
namespace {

/// The name of an arena; empty: it has none.
std::string path_of(std::uint64_t id) {
    std::array<char, 24> begin{};
    std::snprintf(begin.data(), begin.size(), "%016lx", static_cast<unsigned long>(id));
    for (const auto& entry : std::filesystem::directory_iterator(arena_folder()))
        if (entry.path().filename().string().starts_with(begin.data())) return entry.path();
    return {};
}

/// How a child that does this ends.
template <class Do>
int end_of_child(const Do& what) {
    const pid_t child = fork();
    if (child == 0) _exit(what() ? 0 : 1);
    int ended = -1;
    EXPECT_EQ(waitpid(child, &ended, 0), child);
    return ended;
}

/// Of a user who has no folder yet, made under a umask that would shut out his later programs.
TEST(ArenaFolder, IsForItsUsersLaterProgramsWhateverTheUmask) {
    if (geteuid() != 0) GTEST_SKIP() << "takes the administrator, who becomes another user";
    const auto user = static_cast<uid_t>(2'000'000'000 + getpid());
    const std::string folder = "/dev/shm/openvia-sockets-" + std::to_string(user);
    EXPECT_EQ(end_of_child([&] {
                  umask(0777);
                  if (setuid(user) != 0) return false;
                  const Arena* const made = Arena::create();
                  if (made == nullptr) return false;
                  const std::uint64_t id = made->head().id;
                  shmid_ds found{};
                  return shmctl(segment_of(id), IPC_STAT, &found) == 0 &&
                         (found.shm_perm.mode & 0777) == 0600 && !path_of(id).empty();
              }),
              0)
        << "there is an arena";
    struct stat found{};
    ASSERT_EQ(lstat(folder.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, 0700u);
    std::filesystem::remove_all(folder);
}

TEST(ArenaOfAProcess, IsNotCutShortByAPeer) {
    Arena* const made = Arena::create();
    ASSERT_NE(made, nullptr);
    const std::uint64_t id = made->head().id;
    EXPECT_EQ(end_of_child([&] {
                  const int fd = open(path_of(id).c_str(), O_RDWR);
                  const bool cut = fd >= 0 && ftruncate(fd, 0) == 0;
                  shmctl(segment_of(id), IPC_RMID, nullptr);
                  return cut && made->head().magic == ArenaHead::right_magic &&
                         made->allocate(Arena::step) != 0;
              }),
              0)
        << "whoever touches it gets no signal";
    EXPECT_NE(made->allocate(Arena::step), 0u);
    made->leave();
    EXPECT_EQ(path_of(id), "");
}

/// A server that goes into the background: its parent ends before the child says a word.
TEST(ArenaOfAProcess, IsFoundByPeersOfAChildWhoseParentHasLeft) {
    Arena* const made = Arena::create();
    ASSERT_NE(made, nullptr);
    const std::uint64_t id = made->head().id;
    std::array<int, 2> said{};
    ASSERT_EQ(pipe(said.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        const bool told = read(said[0], &byte, 1) == 1;
        _exit(told && made->enter_as_child() && !path_of(id).empty() ? 0 : 1);
    }
    made->leave();
    EXPECT_EQ(path_of(id), "");
    EXPECT_EQ(write(said[1], "", 1), 1);
    int ended = -1;
    EXPECT_EQ(waitpid(child, &ended, 0), child);
    EXPECT_EQ(ended, 0);
    made->enter();
    made->leave();
    EXPECT_EQ(path_of(id), "") << "it was the last";
    for (const int fd : said) close(fd);
}

TEST(ArenaOfAProcess, GoesWhenThatIsKilled) {
    std::array<int, 2> said{};
    ASSERT_EQ(pipe(said.data()), 0);
    const int ended = end_of_child([&] {
        const Arena* const made = Arena::create();
        if (made == nullptr) return false;
        const std::uint64_t id = made->head().id;
        if (write(said[1], &id, sizeof id) != sizeof id) return false;
        return raise(SIGKILL) != 0;
    });
    EXPECT_TRUE(WIFSIGNALED(ended)) << ended;
    std::uint64_t id = 0;
    ASSERT_EQ(read(said[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    for (const int fd : said) close(fd);
    shmid_ds found{};
    EXPECT_EQ(shmctl(segment_of(id), IPC_STAT, &found), -1) << "its memory";
    EXPECT_FALSE(path_of(id).empty());
    for (const HeldArena& arena : Arena::all()) EXPECT_NE(arena->head().id, id);
    EXPECT_EQ(path_of(id), "") << "its name";
}

}  // namespace
}  // namespace arena_test
}  // namespace via::sockets
