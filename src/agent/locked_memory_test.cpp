#include "agent/locked_memory.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "agent/lock_test_support.hpp"
#include "agent/process.hpp"
#include "agent/test_support.hpp"
#include "base/random.hpp"

namespace via::agent::locked_memory_test {
namespace {

using test::ChildSystem;
using test::FakeSystem;
using test::fork_past_handlers;
using test::in_child;
using test::limit_locking;
using test::page;
using test::Pages;
using test::status_bytes;
using Refusal = LockedMemory::Refusal;

std::set<std::uint64_t> pages(std::uint64_t begin, std::uint64_t end) {
    std::set<std::uint64_t> all;
    while (begin < end) all.insert(begin++);
    return all;
}

class LockedMemoryTest : public testing::Test {
protected:
    bool lock(std::uint64_t first, std::uint64_t count) {
        return memory_.lock(first * page, count * page).has_value();
    }
    void unlock(std::uint64_t first, std::uint64_t count) {
        memory_.unlock(first * page, count * page);
    }

    FakeSystem system_;
    LockedMemory memory_{system_};
};

TEST_F(LockedMemoryTest, AsksTheKernelOnlyForWhatChanges) {
    ASSERT_TRUE(lock(10, 10));
    EXPECT_EQ(system_.locked, pages(10, 20));
    ASSERT_TRUE(lock(10, 10));
    ASSERT_TRUE(lock(12, 3));
    EXPECT_EQ(system_.locks, 1U) << "a range already locked costs no call";
    ASSERT_TRUE(lock(5, 30));
    EXPECT_EQ(system_.locks, 3U) << "what is missing before and behind";
    unlock(5, 30);
    EXPECT_EQ(system_.locked, pages(10, 20));
    unlock(12, 3);
    unlock(10, 10);
    EXPECT_EQ(system_.locked, pages(10, 20)) << "one lock is left";
    unlock(10, 10);
    EXPECT_TRUE(system_.locked.empty());
    EXPECT_EQ(system_.unlocks, 3U);
    EXPECT_EQ(memory_.bytes_locked(), 0U);
}

TEST_F(LockedMemoryTest, LocksWholePages) {
    ASSERT_TRUE(memory_.lock(3 * page + 100, 2));
    ASSERT_TRUE(memory_.lock(4 * page - 1, 2));
    EXPECT_EQ(system_.locked, pages(3, 5));
    memory_.unlock(3 * page + 100, 2);
    EXPECT_EQ(system_.locked, pages(3, 5)) << "the page is another's, too";
    memory_.unlock(4 * page - 1, 2);
    EXPECT_TRUE(system_.locked.empty());
}

TEST_F(LockedMemoryTest, AFailureHalfWayLeavesNothing) {
    ASSERT_TRUE(lock(10, 2));
    ASSERT_TRUE(lock(20, 2));
    const auto before = system_.locked;
    for (const int error : {ENOMEM, EPERM, EAGAIN}) {
        system_.fail_lock = [&](std::uint64_t first) { return first == 22 ? error : 0; };
        const auto locked = memory_.lock(5 * page, 30 * page);
        ASSERT_FALSE(locked);
        EXPECT_EQ(locked.error().refusal, Refusal::by_kernel);
        EXPECT_EQ(locked.error().error, error);
        EXPECT_EQ(system_.locked, before);
        EXPECT_EQ(memory_.bytes_locked(), 4 * page);
    }
    system_.fail_lock = nullptr;
    EXPECT_TRUE(lock(5, 30)) << "later it may work";
    EXPECT_EQ(system_.locked, pages(5, 35));
}

TEST_F(LockedMemoryTest, WhatNoProgramHasIsRefused) {
    const auto locked = memory_.lock(1, ~0ULL - 1);
    ASSERT_FALSE(locked);
    EXPECT_EQ(locked.error().error, ENOMEM);
    EXPECT_EQ(system_.locks, 0U);
}

TEST_F(LockedMemoryTest, SeparateAreasAreBounded) {
    system_.mappings = 80;
    LockedMemory memory(system_);
    ASSERT_EQ(memory.areas_max(), 10U);
    for (std::uint64_t n = 0; n < 10; ++n) ASSERT_TRUE(memory.lock(2 * n * page, page)) << n;
    const auto one_more = memory.lock(100 * page, page);
    ASSERT_FALSE(one_more);
    EXPECT_EQ(one_more.error().refusal, Refusal::too_many_areas);
    EXPECT_NE(memory.why(one_more.error(), 100 * page, page).find("10 separate areas"),
              std::string::npos);
    EXPECT_EQ(system_.locks, 10U);
    EXPECT_TRUE(memory.lock(page, page)) << "two areas become one";
    EXPECT_TRUE(memory.lock(100 * page, page)) << "so there is room";
    EXPECT_TRUE(memory.lock(101 * page, page)) << "as a part of that area";
}

TEST_F(LockedMemoryTest, AForkedChildUnlocksNothing) {
    ASSERT_TRUE(lock(10, 10));
    system_.is_child = true;
    unlock(10, 10);
    EXPECT_EQ(system_.unlocks, 0U);
}

TEST_F(LockedMemoryTest, WhatTheProgramUnmappedDoesNotKeepTheRestLocked) {
    ASSERT_TRUE(lock(10, 10));
    system_.unmapped = {13, 14};
    unlock(10, 10);
    EXPECT_EQ(system_.locked, (std::set<std::uint64_t>{13, 14})) << "gone in truth";
}

TEST_F(LockedMemoryTest, WhatCannotBeUnlockedIsTold) {
    ASSERT_TRUE(lock(10, 10));
    system_.unlock_error = EPERM;
    testing::internal::CaptureStderr();
    unlock(10, 10);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("10 pages stay locked"),
              std::string::npos);
}

TEST_F(LockedMemoryTest, SaysWhy) {
    const auto why = [&](int error) {
        return memory_.why({Refusal::by_kernel, error}, 10 * page + 5, page);
    };
    const auto has = [](const std::string& text, const char* part) {
        return text.find(part) != std::string::npos;
    };
    EXPECT_TRUE(has(why(EAGAIN), "not enough memory"));
    EXPECT_TRUE(has(why(EPERM), "mlock: Operation not permitted; a filter of system calls"));
    EXPECT_TRUE(has(why(EINVAL), strerror(EINVAL)));
    EXPECT_TRUE(has(why(ENOMEM), "vm.max_map_count is 65530"));
    system_.limit = 0;
    system_.right = false;
    EXPECT_TRUE(has(why(EPERM), "RLIMIT_MEMLOCK is 0"));
    system_.limit = 65536;
    ASSERT_TRUE(lock(100, 3));
    EXPECT_TRUE(has(why(ENOMEM), "RLIMIT_MEMLOCK is 65536 bytes, of which NICs have locked 12288"));
    EXPECT_TRUE(has(why(ENOMEM), "CAP_IPC_LOCK"));
    system_.unmapped = {11};
    EXPECT_TRUE(has(why(ENOMEM), "not mapped"));
    system_.unmapped.clear();
    system_.right = true;
    system_.limit = 3 * page;
    EXPECT_TRUE(has(why(ENOMEM), "outside of user namespaces")) << why(ENOMEM);
    EXPECT_TRUE(has(memory_.why({Refusal::out_of_memory, 0}, 0, 1), "out of memory"));
}

TEST_F(LockedMemoryTest, ThreadsLockAndUnlockTogether) {
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
        threads.emplace_back([this, seed] {
            Random random(seed);
            for (int round = 0; round < 500; ++round) {
                const std::uint64_t first = random.below(50);
                const std::uint64_t count = 1 + random.below(20);
                if (!lock(first, count)) return ADD_FAILURE();
                unlock(first, count);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(system_.locked.empty());
    EXPECT_EQ(memory_.bytes_locked(), 0U);
}

// Regions of NICs ---------------------------------------------------------------------------------

class RegionPinsTest : public LockedMemoryTest {
protected:
    static Status pin(RegionPins& pins, memory::MemoryHandle region, std::uint64_t first,
                      std::uint64_t count) {
        return pins.pin(region, first * page, count * page);
    }
};

TEST_F(RegionPinsTest, NicsShareWhatTheyLock) {
    RegionPins one(memory_, Pin::require, "one");
    RegionPins other(memory_, Pin::prefer, "other");
    ASSERT_EQ(pin(one, 1, 10, 10), Status::success);
    ASSERT_EQ(pin(other, 1, 15, 10), Status::success);
    ASSERT_EQ(pin(other, 2, 10, 10), Status::success);
    EXPECT_EQ(system_.locks, 2U);
    one.unpin(1);
    EXPECT_EQ(system_.locked, pages(10, 25)) << "the other NIC's pages";
    other.unpin(2);
    EXPECT_EQ(system_.locked, pages(15, 25));
    other.unpin(7);  // no region
    other.unpin(1);
    EXPECT_TRUE(system_.locked.empty());
}

TEST_F(RegionPinsTest, AClosedNicLetsGoOfAllItsRegionsAndOfNoOthers) {
    RegionPins one(memory_, Pin::require, "one");
    {
        RegionPins other(memory_, Pin::require, "other");
        ASSERT_EQ(pin(one, 1, 10, 10), Status::success);
        ASSERT_EQ(pin(other, 1, 15, 10), Status::success);
        ASSERT_EQ(pin(other, 2, 40, 10), Status::success);
        other.end();
        EXPECT_EQ(system_.locked, pages(10, 20));
        EXPECT_EQ(pin(other, 3, 60, 10), Status::success) << "a late call";
        other.unpin(1);
        EXPECT_EQ(system_.locked, pages(10, 20));
    }
    EXPECT_EQ(system_.locked, pages(10, 20));
}

// Deregistering frees the index first: another thread may have it before unpin() is called.
TEST_F(RegionPinsTest, AnIndexThatIsUsedAgainMixesNothingUp) {
    RegionPins pins(memory_, Pin::require, "one");
    const memory::MemoryHandle old = memory::make_handle(5, 1);
    const memory::MemoryHandle young = memory::make_handle(5, 2);
    ASSERT_EQ(pin(pins, old, 10, 10), Status::success);
    ASSERT_EQ(pin(pins, young, 15, 10), Status::success);
    EXPECT_EQ(system_.locked, pages(15, 25));
    pins.unpin(old);
    EXPECT_EQ(system_.locked, pages(15, 25));
    pins.unpin(young);
    EXPECT_TRUE(system_.locked.empty());
}

TEST_F(RegionPinsTest, RequireFailsAndSaysWhy) {
    RegionPins pins(memory_, Pin::require, "shm:left");
    system_.fail_lock = [](std::uint64_t) { return ENOMEM; };
    system_.limit = 65536;
    system_.right = false;
    testing::internal::CaptureStderr();
    EXPECT_EQ(pin(pins, 1, 10, 10), Status::error_resource);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("NIC shm:left: cannot register 40960 bytes at 0xa000 with pin=require: "
                        "RLIMIT_MEMLOCK is 65536 bytes"),
              std::string::npos)
        << said;
    EXPECT_TRUE(system_.locked.empty());
    system_.fail_lock = nullptr;
    EXPECT_EQ(pin(pins, 1, 10, 10), Status::success);
}

TEST_F(RegionPinsTest, PreferGoesOnAndSaysItOnce) {
    RegionPins pins(memory_, Pin::prefer, "one");
    RegionPins other(memory_, Pin::prefer, "other");
    system_.fail_lock = [](std::uint64_t first) { return first < 50 ? EAGAIN : 0; };
    testing::internal::CaptureStderr();
    for (memory::MemoryHandle region = 1; region <= 9; ++region)
        EXPECT_EQ(pin(pins, region, 10, 10), Status::success);
    EXPECT_EQ(pin(other, 1, 10, 10), Status::success);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << "each NIC once: " << said;
    EXPECT_NE(said.find("NIC one: 40960 registered bytes at 0xa000 are not locked"),
              std::string::npos)
        << said;
    EXPECT_TRUE(system_.locked.empty());
    EXPECT_EQ(pin(pins, 10, 60, 1), Status::success);
    EXPECT_EQ(system_.locked, pages(60, 61)) << "what can be locked is";
    const unsigned unlocks = system_.unlocks;
    pins.unpin(1);
    EXPECT_EQ(system_.unlocks, unlocks) << "it was not locked";
}

TEST_F(RegionPinsTest, NeverAsksNobody) {
    RegionPins pins(memory_, Pin::never, "one");
    EXPECT_EQ(pin(pins, 1, 10, 10), Status::success);
    pins.unpin(1);
    EXPECT_EQ(system_.locks + system_.unlocks, 0U);
}

TEST_F(RegionPinsTest, DmaPinsEachRegion) {
    RegionPins pins(memory_, Pin::dma, "one");
    ASSERT_EQ(pin(pins, 1, 10, 10), Status::success);
    ASSERT_EQ(pin(pins, 2, 10, 10), Status::success);
    EXPECT_EQ(system_.buffers.size(), 2U);
    EXPECT_EQ(system_.locks, 0U) << "a pinned page stays anyway";
    pins.unpin(1);
    EXPECT_EQ(system_.buffers.size(), 1U);
    pins.end();
    EXPECT_TRUE(system_.buffers.empty());
}

TEST_F(RegionPinsTest, DmaFailsWhereItIsForbidden) {
    RegionPins pins(memory_, Pin::dma, "one");
    system_.setup_error = EPERM;
    testing::internal::CaptureStderr();
    EXPECT_EQ(pin(pins, 1, 10, 10), Status::error_resource);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("with pin=dma: io_uring is forbidden here"), std::string::npos) << said;
}

// The real kernel ---------------------------------------------------------------------------------

/// Is the test allowed to lock a few pages at all?
bool may_lock() {
    return LockSystem::real().has_lock_right() ||
           LockSystem::real().locked_bytes_max() >= 1024 * page;
}

TEST(RealLocking, CountsWhatTheKernelCounts) {
    if (!may_lock()) GTEST_SKIP() << "RLIMIT_MEMLOCK is below 4 MiB";
    LockedMemory memory(LockSystem::real());
    const Pages room(64);
    const std::uint64_t before = status_bytes("VmLck");
    const auto more = [&] { return status_bytes("VmLck") - before; };
    ASSERT_TRUE(memory.lock(room.address(0), 32 * page));
    EXPECT_EQ(more(), 32 * page);
    ASSERT_TRUE(memory.lock(room.address(16), 32 * page));
    EXPECT_EQ(more(), 48 * page);
    memory.unlock(room.address(0), 32 * page);
    EXPECT_EQ(more(), 32 * page);
    memory.unlock(room.address(16), 32 * page);
    EXPECT_EQ(more(), 0U);
}

TEST(RealLocking, AHoleMakesItFailAndNothingStaysLocked) {
    if (!may_lock()) GTEST_SKIP() << "RLIMIT_MEMLOCK is below 4 MiB";
    LockedMemory memory(LockSystem::real());
    const Pages room(64);
    room.unmap(40, 8);
    const std::uint64_t before = status_bytes("VmLck");
    const auto locked = memory.lock(room.address(), room.length());
    ASSERT_FALSE(locked);
    EXPECT_EQ(status_bytes("VmLck"), before);
    EXPECT_NE(memory.why(locked.error(), room.address(), room.length()).find("not mapped"),
              std::string::npos);
}

TEST(RealLocking, AHoleThatComesLaterDoesNotKeepTheRestLocked) {
    if (!may_lock()) GTEST_SKIP() << "RLIMIT_MEMLOCK is below 4 MiB";
    LockedMemory memory(LockSystem::real());
    const Pages room(64);
    const std::uint64_t before = status_bytes("VmLck");
    ASSERT_TRUE(memory.lock(room.address(), room.length()));
    room.unmap(10, 1);
    room.unmap(40, 8);
    memory.unlock(room.address(), room.length());
    EXPECT_EQ(status_bytes("VmLck"), before);
}

TEST(RealLocking, TheLimitIsMetAndNamed) {
    const int outcome = in_child([] {
        if (!limit_locking(16 * page)) return 100;
        ChildSystem system;
        LockedMemory memory(system);
        const Pages room(64);
        RegionPins require(memory, Pin::require, "require");
        RegionPins prefer(memory, Pin::prefer, "prefer");
        if (require.pin(1, room.address(), 16 * page) != Status::success) return 1;
        if (status_bytes("VmLck") != 16 * page) return 2;
        testing::internal::CaptureStderr();
        if (require.pin(2, room.address(8), 16 * page) != Status::error_resource) return 3;
        if (prefer.pin(1, room.address(8), 16 * page) != Status::success) return 4;
        const std::string said = testing::internal::GetCapturedStderr();
        const std::string why = "RLIMIT_MEMLOCK is 65536 bytes, of which NICs have locked 65536";
        if (said.find("with pin=require: " + why) == said.npos) return 5;
        if (said.find("are not locked and may be swapped out: " + why) == said.npos) return 6;
        if (status_bytes("VmLck") != 16 * page) return 7;
        if (require.pin(3, room.address(), 16 * page) != Status::success) return 8;
        require.end();
        return status_bytes("VmLck") == 0 ? 0 : 9;
    });
    if (outcome == 100) GTEST_SKIP() << "no right to set limits here";
    EXPECT_EQ(outcome, 0);
}

TEST(RealLocking, ALimitOfNothingIsNamed) {
    const int outcome = in_child([] {
        if (!limit_locking(0)) return 100;
        ChildSystem system;
        LockedMemory memory(system);
        const Pages room(1);
        const auto locked = memory.lock(room.address(), page);
        if (locked || locked.error().error != EPERM) return 1;
        const std::string why = memory.why(locked.error(), room.address(), page);
        return why.find("RLIMIT_MEMLOCK is 0") == why.npos ? 2 : 0;
    });
    if (outcome == 100) GTEST_SKIP() << "no right to set limits here";
    EXPECT_EQ(outcome, 0);
}

TEST(RealLocking, AForkedChildCountsAnew) {
    if (!may_lock()) GTEST_SKIP() << "RLIMIT_MEMLOCK is below 4 MiB";
    ASSERT_TRUE(remember_process());
    const Pages room(16);
    ASSERT_TRUE(LockedMemory::of_process().lock(room.address(), room.length()));
    const int outcome = in_child([&] {
        LockedMemory& memory = LockedMemory::of_process();
        if (memory.bytes_locked() != 0) return 1;
        if (!memory.lock(room.address(), page)) return 2;
        return status_bytes("VmLck") == page ? 0 : 3;
    });
    EXPECT_EQ(outcome, 0);
    EXPECT_EQ(LockedMemory::of_process().bytes_locked(), room.length());
    LockedMemory::of_process().unlock(room.address(), room.length());
}

TEST(RealLocking, AForkLeavesTheParentsLocks) {
    if (!may_lock()) GTEST_SKIP() << "RLIMIT_MEMLOCK is below 4 MiB";
    ASSERT_TRUE(remember_process());
    LockedMemory memory(LockSystem::real());
    RegionPins pins(memory, Pin::require, "one");
    const Pages room(16);
    const std::uint64_t before = status_bytes("VmLck");
    ASSERT_EQ(pins.pin(1, room.address(), room.length()), Status::success);
    const int outcome = in_child(
        [&] {
            if (status_bytes("VmLck") != 0) return 1;  // the kernel gives a child no locks
            // What the child locks itself is not ours to take away.
            if (LockSystem::real().mlock(room.address(), room.length()) < 0) return 2;
            pins.unpin(1);
            pins.end();
            return status_bytes("VmLck") == room.length() ? 0 : 3;
        },
        fork_past_handlers);
    EXPECT_EQ(outcome, 0);
    EXPECT_EQ(status_bytes("VmLck") - before, room.length());
    pins.unpin(1);
    EXPECT_EQ(status_bytes("VmLck"), before);
}

}  // namespace
}  // namespace via::agent::locked_memory_test
