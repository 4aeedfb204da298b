#include "memory/windows.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.hpp"
#include "memory/table.hpp"

namespace via::memory::windows_test {
namespace {

constexpr std::uint64_t end_of_memory = ~0ULL;

MemoryAttributes grant(ProtectionTag tag = no_tag, bool write = true, bool read = true,
                       bool atomics = true) {
    MemoryAttributes attributes{tag, write, read};
    attributes.atomics = atomics;
    return attributes;
}

bool may(const MemoryTable& table, MemoryHandle handle, std::uint64_t address, std::uint64_t length,
         Access access = Access::remote_write, ProtectionTag tag = no_tag) {
    return table.check(handle, address, length, tag, access);
}

void end(MemoryTable& table, MemoryHandle region) {
    table.suspend(region);
    table.remove(region);
}

TEST(Windows, GrantExactlyTheirBytes) {
    MemoryTable table(16, 16);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    const MemoryHandle window = table.bind_window(region, 1010, 20, grant()).value();
    EXPECT_TRUE(is_window(window));
    EXPECT_FALSE(is_window(region));
    for (std::uint64_t address = 990; address <= 1060; ++address)
        for (std::uint64_t length = 0; length <= 60; ++length)
            ASSERT_EQ(may(table, window, address, length),
                      address >= 1010 && address + length <= 1030)
                << address << " + " << length;
    for (const std::uint64_t length : {end_of_memory, end_of_memory - 1009, end_of_memory - 1008})
        EXPECT_FALSE(may(table, window, 1010, length)) << length;
    EXPECT_FALSE(may(table, region, 1010, 1)) << "the region has no rights";
}

TEST(Windows, GrantWholePagesNeverByThemselves) {
    MemoryTable table(16, 16);
    table.grant_whole_pages();
    const MemoryHandle region = table.add(0x5123, 0x1000, {}).value();
    const MemoryHandle window = table.bind_window(region, 0x5000, 0x10, grant()).value();
    EXPECT_TRUE(may(table, window, 0x5000, 0x10)) << "the region's whole pages are its bytes";
    EXPECT_FALSE(may(table, window, 0x5000, 0x11));
    EXPECT_FALSE(table.misses_by_a_page(window, 0x5000, 0x11, no_tag, Access::remote_write));
}

TEST(Windows, GrantEachRightByItself) {
    MemoryTable table(16, 16);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    constexpr Access all[] = {Access::remote_write, Access::remote_read, Access::remote_atomic};
    for (unsigned rights = 1; rights < 8; ++rights) {
        const MemoryHandle window =
            table
                .bind_window(region, 1000, 50,
                             grant(no_tag, (rights & 1) != 0, (rights & 2) != 0, (rights & 4) != 0))
                .value();
        for (unsigned n = 0; n < 3; ++n)
            EXPECT_EQ(may(table, window, 1000, 8, all[n]), (rights >> n & 1) != 0) << rights;
        EXPECT_FALSE(may(table, window, 1000, 8, Access::local)) << "it is for peers only";
        EXPECT_FALSE(may(table, window, 1000, 8, Access::local_write));
        EXPECT_EQ(table.end_window(window), Status::success);
    }
}

TEST(Windows, HaveATagOfTheirOwn) {
    MemoryTable table(16, 16);
    const ProtectionTag of_region = table.create_tag().value();
    const ProtectionTag of_window = table.create_tag().value();
    const MemoryHandle region = table.add(1000, 50, {of_region, true, true}).value();
    const MemoryHandle window = table.bind_window(region, 1000, 50, grant(of_window)).value();
    const MemoryHandle plain = table.bind_window(region, 1000, 50, grant()).value();
    const auto write = Access::remote_write;
    EXPECT_TRUE(may(table, window, 1000, 1, write, of_window));
    EXPECT_TRUE(may(table, window, 1000, 1, write, no_tag));
    EXPECT_FALSE(may(table, window, 1000, 1, write, of_region));
    EXPECT_FALSE(may(table, plain, 1000, 1, write, of_window));
    EXPECT_TRUE(may(table, plain, 1000, 1, write, no_tag));
    EXPECT_EQ(table.destroy_tag(of_window, 0), Status::error_resource) << "a window carries it";
    EXPECT_EQ(table.end_window(window), Status::success);
    EXPECT_EQ(table.destroy_tag(of_window, 0), Status::success);
    EXPECT_EQ(table.bind_window(region, 1000, 50, grant(of_window)).error(), Status::invalid_ptag);
}

TEST(Windows, AreRefusedWhereTheyCannotBe) {
    MemoryTable table(16, 16);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    MemoryAttributes read_only;
    read_only.writable = false;
    const MemoryHandle constant = table.add(1000, 50, read_only).value();
    const MemoryHandle all = table.add(0, end_of_memory, {}).value();
    const MemoryHandle window = table.bind_window(region, 1000, 50, grant()).value();
    const auto refused = [&](MemoryHandle handle, std::uint64_t address, std::uint64_t length,
                             const MemoryAttributes& attributes) {
        const auto bound = table.bind_window(handle, address, length, attributes);
        return !bound && bound.error() == Status::invalid_parameter;
    };
    EXPECT_TRUE(refused(region, 1000, 0, grant()));
    EXPECT_TRUE(refused(region, 999, 2, grant()));
    EXPECT_TRUE(refused(region, 1049, 2, grant()));
    EXPECT_TRUE(refused(region, 1001, end_of_memory, grant())) << "it would wrap around";
    EXPECT_TRUE(refused(region, 1000, 50, grant(no_tag, false, false, false))) << "no right";
    EXPECT_TRUE(refused(region + 1000, 1000, 50, grant()));
    EXPECT_TRUE(refused(window, 1000, 50, grant())) << "of a window";
    EXPECT_TRUE(refused(0, 1000, 50, grant()));
    EXPECT_TRUE(refused(all, 1000, 50, grant())) << "memory that need not be there";
    EXPECT_TRUE(refused(constant, 1000, 50, grant(no_tag, true, false, false)));
    EXPECT_TRUE(refused(constant, 1000, 50, grant(no_tag, false, false, true)));
    EXPECT_TRUE(table.bind_window(constant, 1000, 50, grant(no_tag, false, true, false)));
    EXPECT_EQ(table.windows(), 2U);
    end(table, region);
    EXPECT_TRUE(refused(region, 1000, 50, grant()));
}

TEST(Windows, AnEndedOneIsRefusedForEver) {
    MemoryTable table(16, 16, tag_generation_max, 1);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    std::set<MemoryHandle> known;
    for (std::uint32_t n = 0; n < handle_generation_max; ++n) {
        const MemoryHandle window = table.bind_window(region, 1000, 50, grant()).value();
        ASSERT_TRUE(known.insert(window).second) << "one slot, and no handle twice";
        ASSERT_EQ(table.bind_window(region, 1000, 50, grant()).error(), Status::error_resource);
        ASSERT_TRUE(may(table, window, 1000, 50));
        ASSERT_EQ(table.end_window(window), Status::success);
        ASSERT_EQ(table.end_window(window), Status::invalid_parameter);
        ASSERT_EQ(table.window(window).region, 0U);
        for (const MemoryHandle each : known) ASSERT_FALSE(may(table, each, 1000, 1));
    }
    EXPECT_TRUE(known.contains(table.bind_window(region, 1000, 50, grant()).value()))
        << "then they come again";
}

TEST(Windows, EndWithTheirRegionButForTheirHandles) {
    MemoryTable table(1, 16);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    const MemoryHandle window = table.bind_window(region, 1000, 50, grant()).value();
    table.suspend(region);
    EXPECT_FALSE(may(table, window, 1000, 1)) << "who changes or ends it waits for nobody";
    table.resume(region);
    EXPECT_TRUE(may(table, window, 1000, 1));
    end(table, region);
    EXPECT_FALSE(may(table, window, 1000, 1));
    const MemoryHandle next = table.add(1000, 50, {no_tag, true, true}).value();
    EXPECT_EQ(handle_index(next), handle_index(region));
    EXPECT_FALSE(may(table, window, 1000, 1)) << "another region in its place is another one";
    EXPECT_EQ(table.window(window).region, region) << "what it was";
    EXPECT_EQ(table.end_window(window), Status::success);
    EXPECT_EQ(table.windows(), 0U);
}

TEST(Windows, InventedHandlesAreRefused) {
    MemoryTable table(16, 16);
    const MemoryHandle region = table.add(1000, 50, {}).value();
    EXPECT_FALSE(may(table, window_bit, 1000, 1));
    EXPECT_FALSE(may(table, ~0U, 1000, 1));
    const MemoryHandle window = table.bind_window(region, 1000, 50, grant()).value();
    Random random(1);
    for (int n = 0; n < 100'000; ++n) {
        const auto invented = static_cast<MemoryHandle>(random.next()) | window_bit;
        if (invented == window) continue;
        ASSERT_FALSE(may(table, invented, 1000, 1)) << invented;
        ASSERT_EQ(table.end_window(invented), Status::invalid_parameter);
        ASSERT_EQ(table.region_of(invented), 0U);
    }
    EXPECT_TRUE(may(table, window, 1000, 1));
}

TEST(Windows, SlotsRestBeforeTheyServeAgain) {
    constexpr std::uint32_t rest = 10;
    WindowTable windows(1000, rest);
    const Window any{1, 1000, 1050, no_tag, 1};
    std::map<std::uint32_t, std::uint32_t> used_at;  // by slot
    Window was;
    for (std::uint32_t n = 0; n < 1000; ++n) {
        const MemoryHandle handle = windows.add(any).value();
        const auto before = used_at.find(handle_index(handle));
        if (before != used_at.end()) {
            ASSERT_GE(n - before->second, rest);
        }
        used_at[handle_index(handle)] = n;
        ASSERT_TRUE(windows.remove(handle, was));
        ASSERT_EQ(was.end, 1050U);
    }
    EXPECT_EQ(used_at.size(), rest) << "and no more are made than that takes";
}

TEST(Windows, AMillionAtOnce) {
    MemoryTable table(16, 16);
    constexpr std::uint32_t million = 1U << 20;
    const MemoryHandle region = table.add(1000, 8ULL * million, {}).value();
    std::vector<MemoryHandle> handles;
    for (std::uint64_t n = 0; n < million; ++n)
        handles.push_back(table.bind_window(region, 1000 + 8 * n, 8, grant()).value());
    EXPECT_EQ(table.bind_window(region, 1000, 8, grant()).error(), Status::error_resource);
    for (std::uint64_t n = 0; n < million; n += 999) {
        ASSERT_TRUE(may(table, handles[n], 1000 + 8 * n, 8));
        ASSERT_FALSE(may(table, handles[n], 1000 + 8 * n - 1, 8));
        ASSERT_FALSE(may(table, handles[n], 1000 + 8 * n + 1, 8));
    }
    for (const MemoryHandle handle : handles) ASSERT_EQ(table.end_window(handle), Status::success);
    EXPECT_EQ(table.windows(), 0U);
}

TEST(Windows, MatchAModelUnderRandomUse) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Random random(seed);
        MemoryTable table(4, 4, tag_generation_max, 12);
        struct Known {
            MemoryHandle region;
            std::uint64_t begin;
            std::uint64_t end;
            bool write;
        };
        std::map<MemoryHandle, Known> windows;  // bound and not ended
        std::set<MemoryHandle> regions;         // live
        std::vector<MemoryHandle> ended;
        for (int step = 0; step < 3000; ++step) {
            const std::uint64_t what = random.below(100);
            if (what < 5 && regions.size() < 4) {
                regions.insert(table.add(100 * (1 + random.below(3)), 100, {}).value());
            } else if (what < 8 && !regions.empty()) {
                end(table, *regions.begin());
                regions.erase(regions.begin());
            } else if (what < 40 && !regions.empty()) {
                const MemoryHandle region = *regions.rbegin();
                const std::uint64_t begin = table.bounds(region).begin + random.below(100);
                const std::uint64_t length = random.between(1, table.bounds(region).end - begin);
                const bool write = random.chance(50);
                const auto bound =
                    table.bind_window(region, begin, length, grant(no_tag, write, !write, false));
                ASSERT_EQ(bound.has_value(), windows.size() < 12);
                if (bound) {
                    const Known known{region, begin, begin + length, write};
                    ASSERT_TRUE(windows.try_emplace(*bound, known).second);
                }
            } else if (what < 70 && !windows.empty()) {
                const auto at = std::next(
                    windows.begin(), static_cast<std::ptrdiff_t>(random.below(windows.size())));
                ASSERT_EQ(table.end_window(at->first), Status::success);
                ended.push_back(at->first);
                windows.erase(at);
            }
            ASSERT_EQ(table.windows(), windows.size());
            const std::uint64_t address = 90 + random.below(330);
            const std::uint64_t length = random.below(60);
            for (const auto& [handle, known] : windows)
                ASSERT_EQ(may(table, handle, address, length),
                          known.write && regions.contains(known.region) && address >= known.begin &&
                              address + length <= known.end);
            if (!ended.empty()) {
                const MemoryHandle former = ended[random.below(ended.size())];
                ASSERT_TRUE(windows.contains(former) || !may(table, former, address, length));
            }
        }
    }
}

}  // namespace
}  // namespace via::memory::windows_test
