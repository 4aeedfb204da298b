#include "agent/locked_lines.hpp"

#include <gtest/gtest.h>

#include "agent/lock_test_support.hpp"
#include "agent/test_support.hpp"
#include "base/random.hpp"

namespace via::agent::locked_lines_test {
namespace {

using test::FakeSystem;
using test::in_child;
using test::limit_locking;
using test::page;
using test::Pages;
using test::status_bytes;

std::set<std::uint64_t> pages(std::uint64_t begin, std::uint64_t end) {
    std::set<std::uint64_t> all;
    while (begin < end) all.insert(begin++);
    return all;
}

/// A small table of lines of two pages, and the agent's side of it.
struct Scene {
    explicit Scene(Pin pin = Pin::require, std::uint64_t bytes_max = 100 * page,
                   const memory::CacheShape& shape = {4, 2, 2})
        : lines(memory, pin, bytes_max, "test"), table(shape, regions, counters, lines) {
        lines.serve(table);
    }

    memory::MemoryHandle add(std::uint64_t first_page, std::uint64_t count) {
        return regions.add(first_page * page, count * page, {}).value();
    }
    bool reach(memory::MemoryHandle region, std::uint64_t first_page, std::uint64_t count = 1) {
        return table.reach(region, first_page * page, count * page);
    }
    void end(memory::MemoryHandle region) {
        regions.suspend(region);
        table.forget(region);
        regions.remove(region);
    }

    FakeSystem system;
    LockedMemory memory{system};
    memory::MemoryTable regions{16, 16};
    Counters counters{};
    LockedLines lines;
    memory::TranslationCache table;
};

TEST(LockedLines, AreLockedWhenTheyAreNeeded) {
    Scene s;
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.system.locked.empty()) << "not when memory is registered";
    EXPECT_TRUE(s.reach(region, 103));
    EXPECT_EQ(s.system.locked, pages(102, 104));
    EXPECT_TRUE(s.reach(region, 102, 2));
    EXPECT_EQ(s.system.locks, 1U);
    EXPECT_EQ(s.lines.bytes(), 2 * page);
}

TEST(LockedLines, StayLockedWhenTheyLeaveTheTable) {
    Scene s;  // one set of two lines
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.reach(region, 100, 6));
    EXPECT_EQ(s.counters.get(Counter::translation_evictions), 1U);
    EXPECT_EQ(s.system.locked, pages(100, 106));
    EXPECT_TRUE(s.reach(region, 100));
    EXPECT_EQ(s.counters.get(Counter::translation_misses), 4U);
    EXPECT_EQ(s.system.locks, 3U) << "what is still locked costs no call";
}

TEST(LockedLines, TheLongestUnusedGoFirstBeyondTheHighWaterMark) {
    Scene s(Pin::require, 8 * page);
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.reach(region, 100, 8));
    EXPECT_EQ(s.system.locked, pages(100, 108));
    EXPECT_TRUE(s.reach(region, 100)) << "it left the table first, and comes back";
    EXPECT_TRUE(s.reach(region, 110));
    EXPECT_EQ(s.lines.bytes(), 8 * page);
    EXPECT_FALSE(s.system.locked.contains(102));
    EXPECT_TRUE(s.system.locked.contains(100));
    EXPECT_TRUE(s.system.locked.contains(110));
}

TEST(LockedLines, WhatTheTableHoldsIsTakenBackLast) {
    Scene s(Pin::require, 4 * page, {16, 2, 8});
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.reach(region, 100, 6));
    EXPECT_EQ(s.system.locked, pages(102, 106)) << "no more than the mark, though there is room";
    EXPECT_EQ(s.counters.get(Counter::translation_evictions), 0U);
    EXPECT_TRUE(s.reach(region, 100));
    EXPECT_EQ(s.counters.get(Counter::translation_misses), 4U) << "the table knows that it went";
    EXPECT_TRUE(s.system.locked.contains(100));
}

TEST(LockedLines, OthersMayHaveUsedUpTheLimit) {
    Scene s;
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.reach(region, 100, 4));
    // The kernel allows four pages, whoever has them.
    s.system.fail_lock = [&](std::uint64_t) { return s.system.locked.size() > 2 ? ENOMEM : 0; };
    EXPECT_TRUE(s.reach(region, 110));
    EXPECT_EQ(s.system.locked, (std::set<std::uint64_t>{102, 103, 110, 111}));
}

TEST(LockedLines, WhatCannotBeLockedIsRefusedOrUsedUnlocked) {
    for (const int error : {EPERM, ENOMEM}) {
        Scene required(Pin::require);
        const auto region = required.add(100, 50);
        EXPECT_TRUE(required.reach(region, 100));
        required.system.fail_lock = [&](std::uint64_t) { return error; };
        testing::internal::CaptureStderr();
        EXPECT_FALSE(required.reach(region, 110));
        EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot be used with pin=require"),
                  std::string::npos);
        required.system.fail_lock = nullptr;
        EXPECT_TRUE(required.reach(region, 110)) << "asked again";

        Scene preferred(Pin::prefer);
        const auto other = preferred.add(100, 50);
        preferred.system.fail_lock = [&](std::uint64_t) { return error; };
        testing::internal::CaptureStderr();
        EXPECT_TRUE(preferred.reach(other, 100, 20));
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_NE(said.find("not locked while they are used"), std::string::npos);
        EXPECT_EQ(said.find("not locked while they are used"),
                  said.rfind("not locked while they are used"))
            << "said once";
        EXPECT_TRUE(preferred.system.locked.empty());
        EXPECT_EQ(preferred.lines.bytes(), 0U);
        preferred.end(other);
    }
}

TEST(LockedLines, AHoleUnlocksNobodyElse) {
    Scene s(Pin::require, 100 * page, {16, 2, 8});
    const auto region = s.add(100, 50);
    EXPECT_TRUE(s.reach(region, 100, 4));
    s.system.unmapped.insert(111);
    s.system.fail_lock = [&](std::uint64_t first) { return first == 110 ? ENOMEM : 0; };
    testing::internal::CaptureStderr();
    EXPECT_FALSE(s.reach(region, 110));
    EXPECT_NE(testing::internal::GetCapturedStderr().find("not mapped"), std::string::npos);
    EXPECT_EQ(s.system.locked, pages(100, 104));
}

TEST(LockedLines, ALineLargerThanTheMarkCannotBeLocked) {
    Scene s(Pin::require, page);
    const auto region = s.add(100, 50);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(s.reach(region, 100));
    EXPECT_NE(testing::internal::GetCapturedStderr().find("lock_max is 4096 bytes"),
              std::string::npos);
    EXPECT_EQ(s.system.locks, 0U);
}

TEST(LockedLines, NothingIsLockedForPinNeverNorForAllMemory) {
    Scene never(Pin::never);
    EXPECT_TRUE(never.reach(never.add(100, 50), 100, 10));
    EXPECT_EQ(never.system.locks, 0U);
    Scene all(Pin::require);
    EXPECT_TRUE(all.reach(all.regions.add(0, ~0ULL, {}).value(), 100, 10));
    EXPECT_EQ(all.system.locks, 0U) << "it has holes everywhere";
}

TEST(LockedLines, ADeregisteredRegionIsUnlockedAtOnce) {
    Scene s;
    const auto region = s.add(100, 50);
    const auto other = s.add(104, 50);
    EXPECT_TRUE(s.reach(region, 100, 6));
    EXPECT_TRUE(s.reach(other, 104, 2));
    s.end(region);
    EXPECT_EQ(s.system.locked, pages(104, 106)) << "in the table or not, but for the other's";
    EXPECT_EQ(s.lines.bytes(), 2 * page);
    s.lines.end();
    EXPECT_TRUE(s.system.locked.empty());
    EXPECT_TRUE(s.reach(other, 110));
    EXPECT_TRUE(s.system.locked.empty()) << "a NIC that is closed locks no more";
    s.end(other);
}

TEST(LockedLines, KeepTheirPromisesUnderRandomUse) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Random random(seed);
        const std::uint64_t most = random.between(4, 40) * page;
        Scene s(Pin::require, most,
                {8U * static_cast<std::uint32_t>(random.between(1, 5)), 2, 4,
                 static_cast<memory::Replacement>(random.below(3)), seed});
        std::vector<memory::MemoryHandle> regions;
        for (int step = 0; step < 3000; ++step) {
            if (regions.size() < 3) regions.push_back(s.add(random.between(100, 150), 60));
            const std::size_t chosen = random.below(regions.size());
            if (random.chance(2)) {
                s.end(regions[chosen]);
                regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(chosen));
                continue;
            }
            const std::uint64_t first = random.between(150, 158);
            const std::uint64_t misses = s.counters.get(Counter::translation_misses);
            ASSERT_TRUE(s.reach(regions[chosen], first));
            ASSERT_TRUE(s.system.locked.contains(first)) << "found in the table, so it is locked";
            ASSERT_LE(s.lines.bytes(), most);
            ASSERT_LE(s.system.locked.size() * page, s.lines.bytes());
            ASSERT_LE(s.counters.get(Counter::translation_misses), misses + 1);
        }
        for (const auto region : regions) s.end(region);
        ASSERT_TRUE(s.system.locked.empty());
        ASSERT_EQ(s.lines.bytes(), 0U);
    }
}

TEST(HighWaterMark, LeavesAQuarterOfTheLimitToOthers) {
    FakeSystem system;
    NicOptions options;
    EXPECT_EQ(high_water_mark(options, system), 64ULL << 20) << "nothing limits";
    system.limit = 8 << 20;
    EXPECT_EQ(high_water_mark(options, system), 64ULL << 20) << "the limit is not for us";
    system.right = false;
    EXPECT_EQ(high_water_mark(options, system), 6ULL << 20);
    options.lock_max = 12345;
    EXPECT_EQ(high_water_mark(options, system), 12345U);
}

TEST(LockedLines, WithTheRealKernelNeverPassItsLimit) {
    const int status = in_child([] {
        constexpr std::uint64_t limit = 1 << 20;
        constexpr std::uint64_t count = 4096;
        if (!limit_locking(limit)) return 2;
        test::ChildSystem system;
        LockedMemory memory(system);
        const Pages all(count);
        NicOptions options;
        LockedLines lines(memory, Pin::require, high_water_mark(options, system), "test");
        memory::MemoryTable regions(4, 4);
        Counters counters{};
        memory::TranslationCache table({64, 4, 4}, regions, counters, lines);
        lines.serve(table);
        const auto region = regions.add(all.address(), all.length(), {}).value();
        Random random(1);
        for (int n = 0; n < 2000; ++n) {
            if (!table.reach(region, all.address(random.below(count)), 1)) return 3;
            if (n % 100 == 0 && status_bytes("VmLck") > limit / 4 * 3) return 4;
        }
        return status_bytes("VmLck") == 0 ? 5 : 0;
    });
    if (status == 2) GTEST_SKIP() << "the limit cannot be set";
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace via::agent::locked_lines_test
