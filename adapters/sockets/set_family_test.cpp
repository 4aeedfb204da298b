// Which of the processes that have an epoll set by fork() may put marks into it.
#include "set_family.hpp"

#include <gtest/gtest.h>

#include <array>

#include <sys/wait.h>
#include <unistd.h>

namespace via::sockets {
namespace set_family_test {
namespace {

/// Whether a child that has it, too, ends with true.
template <class Do>
bool in_child(const Do& what) {
    const pid_t child = fork();
    if (child == 0) _exit(what() ? 0 : 1);
    int ended = -1;
    EXPECT_EQ(waitpid(child, &ended, 0), child);
    return ended == 0;
}

TEST(SetFamily, StaysItsOwnersWhileThatIsThere) {
    SetFamily family;
    ASSERT_TRUE(family.begin(true));
    EXPECT_TRUE(in_child([&] {
        return !family.is_left() && family.is_helped() && !family.take_over(false) &&
               !family.is_contested();
    }));
    EXPECT_FALSE(family.is_left());
}

TEST(SetFamily, IsTakenOverFromAnOwnerThatHasEndedByOne) {
    std::array<int, 2> said{};
    ASSERT_EQ(pipe(said.data()), 0);
    EXPECT_TRUE(in_child([&] {  // begins it, and ends without a word
        SetFamily family;
        if (!family.begin(true)) return false;
        const pid_t owner = getpid();
        const pid_t child = fork();
        if (child != 0) return child > 0;
        while (getppid() == owner) sched_yield();
        const bool first = family.take_over(false);
        const bool right = first && !family.is_left() && !family.is_helped() &&
                           in_child([&] { return !family.take_over(true); });
        _exit(right && write(said[1], "!", 1) == 1 ? 0 : 1);
    }));
    close(said[1]);
    char byte = 0;
    EXPECT_EQ(read(said[0], &byte, 1), 1);
    close(said[0]);
}

TEST(SetFamily, IsNobodysOnceContested) {
    SetFamily family;
    ASSERT_TRUE(family.begin(false));
    EXPECT_FALSE(family.is_contested());
    EXPECT_TRUE(in_child([&] {
        family.contest();
        return family.claim() && !family.claim() && !family.is_given_up();
    }));
    EXPECT_TRUE(family.is_contested());
    EXPECT_TRUE(family.is_claimed());
    EXPECT_FALSE(family.claim()) << "one process tells the kernel";
    family.leave();
    EXPECT_TRUE(family.is_left());
    EXPECT_FALSE(family.take_over(true)) << "others rely on its being the kernel's";
    family.give_up();
    EXPECT_TRUE(in_child([&] { return family.is_given_up(); }));
}

TEST(SetFamily, OfAClosedSetLivesOnForWhoWaits) {
    SetFamily family;
    ASSERT_TRUE(family.begin(false));
    const SetFamily waiting = family;
    family.end();
    EXPECT_FALSE(family.begun());
    EXPECT_FALSE(waiting.is_given_up());
}

}  // namespace
}  // namespace set_family_test
}  // namespace via::sockets
