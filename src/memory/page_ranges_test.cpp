#include "memory/page_ranges.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/random.hpp"

namespace via::memory::page_ranges_test {
namespace {

using Runs = std::vector<PageRun>;

/// Locks, and returns what was not locked before.
Runs lock(PageRanges& ranges, std::uint64_t begin, std::uint64_t end) {
    Runs unlocked;
    const auto runs = static_cast<std::ptrdiff_t>(ranges.runs_locked()) +
                      ranges.unlocked_in({begin, end}, unlocked);
    ranges.lock({begin, end});
    EXPECT_EQ(static_cast<std::ptrdiff_t>(ranges.runs_locked()), runs);
    return unlocked;
}

Runs unlock(PageRanges& ranges, std::uint64_t begin, std::uint64_t end) {
    Runs freed = {{1, 2}};  // of an earlier call: not to be kept
    ranges.unlock({begin, end}, freed);
    return freed;
}

TEST(PageRanges, PagesOfBytes) {
    EXPECT_EQ(pages_of(0, 1, 12), (PageRun{0, 1}));
    EXPECT_EQ(pages_of(4095, 1, 12), (PageRun{0, 1}));
    EXPECT_EQ(pages_of(4095, 2, 12), (PageRun{0, 2}));
    EXPECT_EQ(pages_of(4096, 4096, 12), (PageRun{1, 2}));
    EXPECT_EQ(pages_of(~0ULL, 1, 12), (PageRun{(1ULL << 52) - 1, 1ULL << 52})) << "the last byte";
}

TEST(PageRanges, LockingNests) {
    PageRanges ranges;
    EXPECT_EQ(lock(ranges, 10, 20), (Runs{{10, 20}}));
    EXPECT_EQ(lock(ranges, 10, 20), Runs{});
    EXPECT_EQ(ranges.count_of(9), 0U);
    EXPECT_EQ(ranges.count_of(10), 2U);
    EXPECT_EQ(ranges.count_of(19), 2U);
    EXPECT_EQ(ranges.count_of(20), 0U);
    EXPECT_EQ(unlock(ranges, 10, 20), Runs{});
    EXPECT_EQ(unlock(ranges, 10, 20), (Runs{{10, 20}}));
    EXPECT_EQ(ranges.areas(), 0U);
    EXPECT_EQ(ranges.pages_locked(), 0U);
}

// The five ways in which a new area meets an old one (the paper's figure 3).
TEST(PageRanges, EveryWayToMeetAnArea) {
    struct Way {
        PageRun added;
        Runs unlocked;
        std::size_t areas;
    };
    const Way ways[] = {
        {{5, 15}, {{5, 10}}, 3},            // front
        {{15, 25}, {{20, 25}}, 3},          // rear
        {{12, 15}, {}, 3},                  // middle
        {{5, 25}, {{5, 10}, {20, 25}}, 3},  // total
        {{30, 35}, {{30, 35}}, 2},          // disjoint
        {{20, 25}, {{20, 25}}, 1},          // disjoint, and merges
        {{5, 10}, {{5, 10}}, 1},
        {{10, 20}, {}, 1},
    };
    for (const Way& way : ways) {
        PageRanges ranges;
        lock(ranges, 10, 20);
        EXPECT_EQ(lock(ranges, way.added.begin, way.added.end), way.unlocked) << way.added.begin;
        EXPECT_EQ(ranges.areas(), way.areas) << way.added.begin;
        EXPECT_EQ(unlock(ranges, way.added.begin, way.added.end), way.unlocked);
        EXPECT_EQ(ranges.areas(), 1U) << "the areas merge again";
        EXPECT_EQ(unlock(ranges, 10, 20), (Runs{{10, 20}}));
    }
}

TEST(PageRanges, OneAreaMayBeUnlockedInParts) {
    PageRanges ranges;
    lock(ranges, 10, 20);
    lock(ranges, 20, 30);
    EXPECT_EQ(ranges.areas(), 1U);
    EXPECT_EQ(unlock(ranges, 10, 20), (Runs{{10, 20}}));
    EXPECT_EQ(unlock(ranges, 20, 30), (Runs{{20, 30}}));
}

TEST(PageRanges, ReachesBothEndsOfTheAddressSpace) {
    constexpr std::uint64_t end = 1ULL << 52;
    PageRanges ranges;
    EXPECT_EQ(lock(ranges, 0, 1), (Runs{{0, 1}}));
    EXPECT_EQ(lock(ranges, end - 1, end), (Runs{{end - 1, end}}));
    EXPECT_EQ(lock(ranges, 0, end), (Runs{{1, end - 1}}));
    EXPECT_EQ(ranges.runs_locked(), 1U);
    EXPECT_EQ(ranges.pages_locked(), end);
    EXPECT_EQ(unlock(ranges, 0, end), (Runs{{1, end - 1}}));
    EXPECT_EQ(ranges.runs_locked(), 2U);
}

TEST(PageRangesDeathTest, UnlockingWhatIsNotLockedIsABrokenInvariant) {
    PageRanges ranges;
    lock(ranges, 10, 20);
    EXPECT_DEATH(unlock(ranges, 15, 21), "");
}

/// Every page has a count of its own.
struct Model {
    static constexpr std::uint64_t pages = 96;
    std::array<std::uint32_t, pages> counts{};

    /// Counts, and returns the runs where `wanted` was the count before.
    Runs change(PageRun run, std::uint32_t wanted, std::uint32_t by) {
        Runs runs;
        for (std::uint64_t page = run.begin; page < run.end; ++page) {
            if (counts[page] == wanted) {
                if (runs.empty() || runs.back().end != page) runs.push_back({page, page});
                ++runs.back().end;
            }
            counts[page] += by;
        }
        return runs;
    }
    void compare(const PageRanges& ranges) const {
        std::size_t areas = 0;
        std::size_t runs_locked = 0;
        std::uint64_t pages_locked = 0;
        for (std::uint64_t page = 0; page < pages; ++page) {
            ASSERT_EQ(ranges.count_of(page), counts[page]) << page;
            const std::uint32_t before = page == 0 ? 0 : counts[page - 1];
            if (counts[page] == 0) continue;
            ++pages_locked;
            if (counts[page] != before) ++areas;
            if (before == 0) ++runs_locked;
        }
        ASSERT_EQ(ranges.areas(), areas);
        ASSERT_EQ(ranges.runs_locked(), runs_locked);
        ASSERT_EQ(ranges.pages_locked(), pages_locked);
    }
};

TEST(PageRanges, AMillionRandomOperationsAreAsASimpleModelSays) {
    Random random(20261122);
    Model model;
    PageRanges ranges;
    std::vector<PageRun> held;
    std::size_t most_held = 0;
    for (int step = 0; step < 1'000'000; ++step) {
        // Fills up and empties in turn, so that few and many overlap.
        const std::uint64_t locks = (step / 500) % 2 == 0 ? 65 : 35;
        if (held.empty() || random.chance(locks)) {
            const std::uint64_t begin = random.below(Model::pages);
            const std::uint64_t longest = random.chance(50) ? 6 : Model::pages;
            const std::uint64_t end = std::min(Model::pages, begin + 1 + random.below(longest));
            const Runs unlocked = lock(ranges, begin, end);
            ASSERT_EQ(unlocked, model.change({begin, end}, 0, 1)) << "step " << step;
            held.push_back({begin, end});
        } else {
            const std::size_t which = random.below(held.size());
            const PageRun run = held[which];
            held[which] = held.back();
            held.pop_back();
            ASSERT_EQ(unlock(ranges, run.begin, run.end), model.change(run, 1, ~0U))
                << "step " << step;
        }
        most_held = std::max(most_held, held.size());
        if (step % 16 == 0) {
            ASSERT_NO_FATAL_FAILURE(model.compare(ranges)) << "step " << step;
        }
    }
    EXPECT_GT(most_held, 100U);
    for (const PageRun& run : held) unlock(ranges, run.begin, run.end);
    EXPECT_EQ(ranges.areas(), 0U);
    EXPECT_EQ(ranges.runs_locked(), 0U);
}

}  // namespace
}  // namespace via::memory::page_ranges_test
