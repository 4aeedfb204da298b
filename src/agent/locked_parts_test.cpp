// Large regions are locked and unlocked a part at a time, and others lock in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "agent/lock_test_support.hpp"
#include "agent/locked_memory.hpp"

namespace via::agent::locked_parts_test {
namespace {

using test::FakeSystem;
using test::page;

/// Books calls instead of pages.
class Calls : public FakeSystem {
public:
    int mlock(std::uint64_t address, std::uint64_t length) override {
        longest = std::max(longest, length);
        ++locks;
        const int error = fail_lock ? fail_lock(address / page) : 0;
        if (error == 0) bytes += length;
        errno = error;
        return error == 0 ? 0 : -1;
    }
    int munlock(std::uint64_t, std::uint64_t length) override {
        longest = std::max(longest, length);
        bytes -= length;
        return 0;
    }
    std::uint64_t longest = 0;
    std::uint64_t bytes = 0;  ///< locked
};

constexpr std::uint64_t part = LockedMemory::part_bytes;

TEST(LockingInParts, TheKernelIsNeverAskedForMuchAtATime) {
    Calls system;
    LockedMemory memory(system);
    ASSERT_TRUE(memory.lock(5 * page, 20 * part));
    EXPECT_EQ(system.longest, part);
    EXPECT_EQ(memory.bytes_locked(), 20 * part);
    ASSERT_TRUE(memory.lock(7 * page, page));
    memory.unlock(5 * page, 20 * part);
    EXPECT_EQ(system.longest, part);
    EXPECT_EQ(system.bytes, page) << "as counted";
}

TEST(LockingInParts, AFailureInAPartLeavesNothing) {
    Calls system;
    LockedMemory memory(system);
    system.fail_lock = [](std::uint64_t first) { return first == 3 * part / page ? EAGAIN : 0; };
    ASSERT_FALSE(memory.lock(page, 10 * part));
    EXPECT_EQ(memory.bytes_locked(), 0U);
    EXPECT_EQ(system.locks, 4U) << "nothing behind it is tried";
}

TEST(LockingInParts, WhatTheLimitRefusesIsNotMadePresentFirst) {
    Calls system;
    LockedMemory memory(system);
    system.right = false;
    system.limit = 4 * part;
    const auto locked = memory.lock(0, 5 * part);
    ASSERT_FALSE(locked);
    EXPECT_EQ(locked.error().error, ENOMEM);
    EXPECT_EQ(system.locks, 0U);
    EXPECT_TRUE(memory.lock(0, 4 * part));
    EXPECT_TRUE(memory.lock(0, 4 * part)) << "once more costs nothing";
}

TEST(LockingInParts, OthersComeInBetween) {
    Calls system;
    LockedMemory memory(system);
    constexpr std::uint64_t elsewhere = 1ULL << 40;
    std::atomic<bool> other_locks{false};
    std::thread other;
    system.fail_lock = [&](std::uint64_t first) {
        if (first * page == elsewhere) {
            other_locks.store(true);
        } else if (!other.joinable()) {
            other = std::thread([&] { EXPECT_TRUE(memory.lock(elsewhere, page)); });
        }
        std::this_thread::yield();
        return first * page != elsewhere && other_locks.load() ? EAGAIN : 0;
    };
    // So many parts that it ends before its time, or the other one waits for all of them.
    EXPECT_FALSE(memory.lock(0, 40'000 * part));
    other.join();
    EXPECT_EQ(memory.bytes_locked(), page);
}

TEST(LockingInParts, PinningMakesPagesPresentBefore) {
    FakeSystem system;
    DmaPins pins(system);
    ASSERT_TRUE(pins.pin(page, 2 * DmaPins::buffer_bytes_max + 1));
    EXPECT_EQ(system.populated.size(), 2 * DmaPins::buffer_bytes_max / DmaPins::present_bytes + 1);
    EXPECT_EQ(std::ranges::max(system.populated), DmaPins::present_bytes);
}

TEST(LockingInParts, ARegionOfANicThatClosesMeanwhileIsLetGo) {
    Calls system;
    LockedMemory memory(system);
    RegionPins pins(memory, Pin::require, "one");
    system.fail_lock = [&](std::uint64_t) {
        if (system.locks == 2) pins.end();
        return 0;
    };
    EXPECT_EQ(pins.pin(5, 0, 4 * part), Status::success);
    EXPECT_EQ(memory.bytes_locked(), 0U);
    EXPECT_EQ(pins.pin(5, 0, 4 * part), Status::success);
    EXPECT_EQ(memory.bytes_locked(), 0U) << "closed before";
}

TEST(LockingInParts, OtherRegionsGoMeanwhile) {
    Calls system;
    LockedMemory memory(system);
    RegionPins pins(memory, Pin::require, "one");
    ASSERT_EQ(pins.pin(7, 1ULL << 40, page), Status::success);
    system.fail_lock = [&](std::uint64_t) {
        // As another thread does, which may wait for this part, and for nothing else.
        if (system.locks == 2) std::thread([&] { pins.unpin(8); }).join();
        return 0;
    };
    EXPECT_EQ(pins.pin(5, 0, 4 * part), Status::success);
    EXPECT_EQ(memory.bytes_locked(), 4 * part + page);
}

}  // namespace
}  // namespace via::agent::locked_parts_test
