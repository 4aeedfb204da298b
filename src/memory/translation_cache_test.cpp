#include "memory/translation_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace via::memory::translation_cache_test {
namespace {

constexpr std::uint64_t page = table_page_length;

/// The agent's side, which only writes down what it was told.
struct Notes final : LineLoader {
    bool load(const Line& line) override {
        loads.push_back(line);
        if (refuse) return false;
        EXPECT_TRUE(present.emplace(line.name, line).second) << "it is there already";
        return true;
    }
    void evicted(const LineName& line) override {
        EXPECT_EQ(present.erase(line), 1U);
        gone.push_back(line);
    }
    void forget(MemoryHandle handle) override {
        std::erase_if(present, [&](const auto& one) { return one.first.handle == handle; });
    }

    bool refuse = false;
    std::map<LineName, Line> present;
    std::vector<Line> loads;
    std::vector<LineName> gone;
};

struct Scene {
    explicit Scene(const CacheShape& shape) : cache(shape, table, counters, notes) {}

    MemoryHandle add(std::uint64_t address, std::uint64_t length) {
        return table.add(address, length, {}).value();
    }
    void end(MemoryHandle handle) {
        table.suspend(handle);
        cache.forget(handle);
        table.remove(handle);
    }
    std::uint64_t count(Counter counter) const { return counters.get(counter); }

    MemoryTable table{64, 16};
    Counters counters{};
    Notes notes;
    TranslationCache cache;
};

TEST(TranslationCache, NamesWhatIsWrongWithAShape) {
    EXPECT_EQ(fault_of({}), nullptr);
    EXPECT_EQ(fault_of({16, 2, 2}), nullptr);
    EXPECT_EQ(fault_of({48, 4, 3}), nullptr) << "any number of sets and ways";
    EXPECT_STREQ(fault_of({17, 2, 2}),
                 "table_entries is not a multiple of table_line * table_ways");
    EXPECT_STREQ(fault_of({16, 0, 2}), "table_line is a power of two, at most 512");
    EXPECT_STREQ(fault_of({48, 3, 2}), "table_line is a power of two, at most 512");
    EXPECT_STREQ(fault_of({1024, 1024, 1}), "table_line is a power of two, at most 512");
    EXPECT_STREQ(fault_of({16, 2, 0}), "table_ways is 1 to 64");
    EXPECT_STREQ(fault_of({1024, 2, 65}), "table_ways is 1 to 64");
    EXPECT_STREQ(fault_of({(1U << 20) + 4, 2, 2}), "table_entries is more than 1048576");
}

TEST(TranslationCache, LoadsALineOnceAndThenFindsIt) {
    Scene s({16, 4, 2});
    const MemoryHandle region = s.add(100 * page, 64 * page);
    EXPECT_TRUE(s.cache.reach(region, 105 * page + 17, 1));
    ASSERT_EQ(s.notes.loads.size(), 1U);
    EXPECT_EQ(s.notes.loads[0].name, (LineName{region, 105 / 4}));
    EXPECT_EQ(s.notes.loads[0].begin, 104 * page) << "lines are aligned";
    EXPECT_EQ(s.notes.loads[0].length, 4 * page);
    EXPECT_TRUE(s.cache.reach(region, 104 * page, 4 * page));
    EXPECT_TRUE(s.cache.reach(region, 108 * page - 1, 1));
    EXPECT_TRUE(s.cache.reach(region, 0, 0)) << "no byte, no page";
    EXPECT_EQ(s.notes.loads.size(), 1U);
    EXPECT_EQ(s.count(Counter::translation_misses), 1U);
    EXPECT_EQ(s.count(Counter::translation_hits), 2U);
    EXPECT_TRUE(s.cache.reach(region, 108 * page - 1, 2));
    EXPECT_EQ(s.notes.loads.size(), 2U) << "one byte in the next line";
}

TEST(TranslationCache, ALineEndsWhereItsRegionEnds) {
    Scene s({64, 8, 2});
    const MemoryHandle middle = s.add(9 * page + 5, 2 * page);
    EXPECT_TRUE(s.cache.reach(middle, 10 * page, 1));
    EXPECT_EQ(s.notes.loads[0].begin, 9 * page);
    EXPECT_EQ(s.notes.loads[0].length, 3 * page) << "whole pages, also those used in part";
    const MemoryHandle whole = s.add(16 * page, 8 * page);
    EXPECT_TRUE(s.cache.reach(whole, 24 * page - 1, 1));
    EXPECT_EQ(s.notes.loads[1].begin, 16 * page);
    EXPECT_EQ(s.notes.loads[1].length, 8 * page);
    const MemoryHandle all = s.add(0, ~0ULL);
    EXPECT_TRUE(s.cache.reach(all, ~0ULL - 1, 1));
    EXPECT_EQ(s.notes.loads[2].begin, 0 - 8 * page);
    EXPECT_EQ(s.notes.loads[2].length, 8 * page) << "nothing wraps at the end of memory";
    EXPECT_TRUE(s.cache.reach(all, 0, 1));
    EXPECT_EQ(s.notes.loads[3].begin, 0U);
}

TEST(TranslationCache, RegionsShareNothing) {
    Scene s({64, 4, 4});
    const MemoryHandle one = s.add(0, 64 * page);
    const MemoryHandle two = s.add(0, 64 * page);
    EXPECT_TRUE(s.cache.reach(one, 0, 1));
    EXPECT_TRUE(s.cache.reach(two, 0, 1));
    EXPECT_EQ(s.notes.loads.size(), 2U) << "the same pages, but another region";
}

TEST(TranslationCache, ARunMayBeLongerThanTheCache) {
    Scene s({4, 1, 2});
    const MemoryHandle region = s.add(0, 100 * page);
    EXPECT_TRUE(s.cache.reach(region, 1, 100 * page - 1));
    EXPECT_EQ(s.count(Counter::translation_misses), 100U);
    EXPECT_EQ(s.count(Counter::translation_evictions), 100 - s.notes.present.size());
    EXPECT_LE(s.notes.present.size(), 4U);
}

/// One set of three ways; what it throws out when a fourth line comes.
LineName thrown_out(Replacement replacement, std::uint64_t seed = 1) {
    Scene s({3, 1, 3, replacement, seed});
    const MemoryHandle region = s.add(0, 100 * page);
    for (const std::uint64_t number : {7U, 8U, 9U, 7U, 7U, 9U, 8U, 10U})
        EXPECT_TRUE(s.cache.reach(region, number * page, 1));
    EXPECT_EQ(s.count(Counter::translation_evictions), 1U);
    EXPECT_EQ(s.notes.gone.size(), 1U);
    return s.notes.gone.empty() ? LineName{} : s.notes.gone[0];
}

TEST(TranslationCache, ReplacesAsItWasTold) {
    {
        Scene s({3, 1, 3, Replacement::lru});
        const MemoryHandle region = s.add(0, 100 * page);
        for (const std::uint64_t number : {7U, 8U, 9U, 7U, 10U})
            EXPECT_TRUE(s.cache.reach(region, number * page, 1));
        EXPECT_EQ(s.notes.gone, (std::vector<LineName>{{region, 8}}));
    }
    EXPECT_EQ(thrown_out(Replacement::lru).number, 7U);
    {
        Scene s({3, 1, 3, Replacement::fifo});
        const MemoryHandle region = s.add(0, 100 * page);
        for (const std::uint64_t number : {7U, 8U, 9U, 7U, 10U, 7U})
            EXPECT_TRUE(s.cache.reach(region, number * page, 1));
        EXPECT_EQ(s.notes.gone, (std::vector<LineName>{{region, 7}, {region, 8}}));
    }
    std::set<std::uint64_t> numbers;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const LineName gone = thrown_out(Replacement::random, seed);
        EXPECT_EQ(gone, thrown_out(Replacement::random, seed)) << "the same seed, the same choice";
        numbers.insert(gone.number);
    }
    EXPECT_EQ(numbers.size(), 3U) << "each of them is chosen by some seed";
}

TEST(TranslationCache, ARefusedLineIsNotThere) {
    Scene s({4, 1, 4});
    const MemoryHandle region = s.add(0, 100 * page);
    s.notes.refuse = true;
    EXPECT_FALSE(s.cache.reach(region, 0, 3 * page));
    EXPECT_EQ(s.notes.loads.size(), 1U) << "the first refusal ends it";
    s.notes.refuse = false;
    EXPECT_TRUE(s.cache.reach(region, 0, 1));
    EXPECT_EQ(s.notes.loads.size(), 2U) << "asked again";
}

TEST(TranslationCache, ForgetsARegionAndNoOther) {
    for (const std::uint64_t pages : {4U, 4000U}) {  // fewer lines than the cache, and more
        Scene s({64, 1, 4});
        const MemoryHandle region = s.add(0, pages * page);
        const MemoryHandle other = s.add(0, pages * page);
        EXPECT_TRUE(s.cache.reach(region, 0, 4 * page));
        EXPECT_TRUE(s.cache.reach(other, 0, 4 * page));
        s.end(region);
        EXPECT_EQ(s.notes.present.size(), 4U);
        EXPECT_TRUE(s.cache.reach(other, 0, 4 * page));
        EXPECT_EQ(s.notes.loads.size(), 8U) << "the other one's lines are still there";
        s.end(other);
        EXPECT_TRUE(s.notes.present.empty());
        EXPECT_EQ(s.count(Counter::translation_evictions), 0U);
    }
}

TEST(TranslationCache, TheAgentMayTakeALineBack) {
    Scene s({4, 1, 4});
    const MemoryHandle region = s.add(0, 100 * page);
    EXPECT_TRUE(s.cache.reach(region, 0, 4 * page));
    s.cache.take_back({region, 2});
    s.notes.present.erase({region, 2});
    s.cache.take_back({region, 77});  // not there: nothing happens
    EXPECT_TRUE(s.cache.reach(region, 50 * page, 1));
    EXPECT_TRUE(s.notes.gone.empty()) << "its place was free";
    EXPECT_TRUE(s.cache.reach(region, 2 * page, 1));
    EXPECT_EQ(s.notes.gone.size(), 1U);
}

TEST(TranslationCache, SpreadsLinesOverAllSets) {
    // Neighbours, strides of powers of two, and the same place in many regions.
    constexpr std::uint32_t lines = 256;
    for (const std::uint64_t stride : {1ULL, 64ULL, 4096ULL, 1ULL << 18}) {
        Scene s({lines, 1, 4});
        const MemoryHandle region = s.add(0, ~0ULL);
        for (std::uint64_t n = 0; n < lines; ++n)
            EXPECT_TRUE(s.cache.reach(region, n * stride * page, 1));
        EXPECT_GT(s.notes.present.size(), lines / 2) << "stride " << stride;
    }
    Scene s({lines, 1, 4});
    for (int n = 0; n < 64; ++n) {
        const MemoryHandle region = s.add(0, 4 * page);
        EXPECT_TRUE(s.cache.reach(region, 0, 4 * page));
    }
    EXPECT_GT(s.notes.present.size(), lines / 2);
}

/// Random runs in regions that come and go: what was reached is there, as far as it fits, and what
/// is there lies within its region.
TEST(TranslationCache, MatchesAModelUnderRandomUse) {
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
        Random random(seed);
        CacheShape shape;
        shape.line = 1U << random.below(5);
        shape.ways = static_cast<std::uint32_t>(random.between(1, 5));
        shape.entries = static_cast<std::uint32_t>(shape.line * shape.ways * random.between(1, 9));
        shape.replacement = static_cast<Replacement>(random.below(3));
        shape.seed = seed;
        Scene s(shape);
        const std::uint64_t line_length = shape.line * page;
        std::map<MemoryHandle, Bounds> regions;
        for (int step = 0; step < 4000; ++step) {
            const std::uint64_t choice = random.below(100);
            if (regions.empty() || (choice < 4 && regions.size() < 20)) {
                const std::uint64_t begin = random.below(100 * page);
                const std::uint64_t length = random.between(1, 60 * page);
                regions[s.add(begin, length)] = {begin, begin + length};
                continue;
            }
            const auto at = std::next(regions.begin(),
                                      static_cast<std::ptrdiff_t>(random.below(regions.size())));
            const auto [handle, region] = *at;
            if (choice < 7) {
                s.end(handle);
                regions.erase(at);
                for (const auto& [name, line] : s.notes.present) ASSERT_NE(name.handle, handle);
                continue;
            }
            const std::uint64_t begin = random.between(region.begin, region.end - 1);
            const std::uint64_t length =
                random.between(1, std::min(region.end - begin, 3 * line_length));
            const std::size_t loads = s.notes.loads.size();
            const auto before = s.notes.present;
            ASSERT_TRUE(s.cache.reach(handle, begin, length));
            const std::uint64_t last = (begin + length - 1) / line_length;
            std::size_t missing = 0;
            for (std::uint64_t n = begin / line_length; n <= last; ++n)
                missing += before.contains({handle, n}) ? 0 : 1;
            if (begin / line_length == last) {
                ASSERT_EQ(s.notes.loads.size() - loads, missing);
            } else {
                ASSERT_GE(s.notes.loads.size() - loads, missing) << "its lines may push each other";
            }
            ASSERT_TRUE(s.notes.present.contains({handle, last})) << "the last one is surely there";
            ASSERT_LE(s.notes.present.size(), shape.entries / shape.line);
            for (const auto& [name, line] : s.notes.present) {
                const Bounds& whole = regions.at(name.handle);
                ASSERT_EQ(line.begin / line_length, name.number);
                ASSERT_EQ((line.begin + line.length - 1) / line_length, name.number);
                ASSERT_EQ(line.begin,
                          std::max(name.number * line_length, whole.begin / page * page));
                ASSERT_EQ(line.begin + line.length, std::min((name.number + 1) * line_length,
                                                             (whole.end + page - 1) / page * page));
            }
        }
        ASSERT_EQ(s.count(Counter::translation_misses), s.notes.loads.size());
        ASSERT_EQ(s.count(Counter::translation_evictions), s.notes.gone.size());
    }
}

}  // namespace
}  // namespace via::memory::translation_cache_test
