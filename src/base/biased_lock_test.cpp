// The biased lock with real threads and the kernel's fences. What they may do to each other at
// once is looked at in tests/model/biased_lock_test.cpp.
#include "base/biased_lock.hpp"

#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace via::biased_lock_test {
namespace {

int membarrier(int command) { return static_cast<int>(syscall(SYS_membarrier, command, 0, 0)); }

std::atomic<int> fences_made{0};

void make_fence() {
    ++fences_made;
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) std::abort();
}

/// Where the kernel makes no such fences these tests see that the lock does without.
class BiasedLock : public ::testing::Test {
protected:
    BiasedLock() {
        fences_made = 0;
        works_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
        set_heavy_fence(FenceReach::process, works_ ? make_fence : nullptr);
    }
    ~BiasedLock() override { set_heavy_fence(FenceReach::process, nullptr); }

    void add() {
        const Lock::Guard guard(lock_);
        ++count_;
    }
    void add_in_another_thread() {
        std::thread([this] { add(); }).join();
    }
    /// How many fences of those made so far are expected.
    int fences(int count) const { return works_ ? count : 0; }

    using Lock = via::BiasedLock<>;
    Lock lock_;
    long count_ = 0;
    bool works_ = false;
};

TEST_F(BiasedLock, is_taken_from_its_owner_once) {
    for (std::uint32_t n = 0; n < BiasEarning::takes_to_own; ++n) add();
    EXPECT_EQ(fences_made, 0);
    add();
    add_in_another_thread();
    EXPECT_EQ(fences_made, fences(1));
    add_in_another_thread();
    add();
    EXPECT_EQ(fences_made, fences(1)) << "nobody owned it";
}

TEST_F(BiasedLock, comes_back_to_who_has_it_alone_for_long) {
    constexpr std::uint32_t takes_more = 16;
    for (std::uint32_t n = 0; n < BiasEarning::takes_to_own; ++n) add();
    add_in_another_thread();
    for (std::uint32_t n = 0; n + 1 < takes_more * BiasEarning::takes_to_own; ++n) add();
    EXPECT_EQ(fences_made, fences(1));
    add();
    add_in_another_thread();
    EXPECT_EQ(fences_made, fences(2));
}

TEST_F(BiasedLock, who_only_waits_for_its_holder_leaves_it_to_its_owner) {
    for (std::uint32_t n = 0; n < BiasEarning::takes_to_own; ++n) add();
    bool fenced = false;
    lock_.wait_for_holder(fenced);
    EXPECT_FALSE(fenced) << "the owner itself";
    for (int n = 0; n < 2; ++n) {
        std::thread([this] {
            bool made = false;
            lock_.wait_for_holder(made);
            lock_.wait_for_holder(made);
            EXPECT_EQ(made, works_);
        }).join();
        add();
        EXPECT_EQ(fences_made, fences(n + 1));
    }
}

TEST_F(BiasedLock, of_a_thread_that_ended_is_anybodys) {
    std::thread([this] {
        for (std::uint32_t n = 0; n <= BiasEarning::takes_to_own; ++n) add();
    }).join();
    add();
    EXPECT_EQ(count_, BiasEarning::takes_to_own + 2);
}

TEST_F(BiasedLock, no_count_is_lost_between_owners_and_others) {
    constexpr int threads = 3;
    constexpr int rounds = 200;
    Lock lock(0, 0);  // each that takes it owns it then
    long count = 0;
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread)
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round)
                for (int n = 0; n < 50; ++n) {
                    const Lock::Guard guard(lock);
                    ++count;
                }
        });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(count, long{threads} * rounds * 50);
}

}  // namespace
}  // namespace via::biased_lock_test
