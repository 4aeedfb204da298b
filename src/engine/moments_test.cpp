#include "engine/moments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "base/random.hpp"

namespace via::engine::moments_test {
namespace {

using Deadlines = Moments<&Vi::connect_deadline, &Vi::deadline_place>;

struct Some {
    explicit Some(std::uint32_t count) : vis(count) {
        for (std::uint32_t n = 0; n < count; ++n) vis[n].index = n;
        moments.reserve(count);
    }
    std::vector<Vi> vis;
    Deadlines moments;
};

/// Beside a set, which keeps order by itself.
TEST(Moments, a_random_history_leaves_the_earliest_first) {
    Some some(200);
    std::set<std::pair<std::int64_t, std::uint32_t>> expected;
    Random random(7);
    for (int n = 0; n < 20000; ++n) {
        Vi& vi = some.vis[random.below(200)];
        ASSERT_EQ(expected.erase({vi.connect_deadline.ns, vi.index}),
                  vi.deadline_place != Vi::nowhere ? 1U : 0U);
        if (vi.deadline_place != Vi::nowhere && random.below(3) == 0) {
            some.moments.remove(vi);
        } else {
            const Time when = random.below(10) == 0
                                  ? Time::never()
                                  : Time{static_cast<std::int64_t>(random.below(50))};
            some.moments.set(vi, when);
            expected.insert({when.ns, vi.index});
        }
        ASSERT_EQ(some.moments.all().size(), expected.size());
        ASSERT_EQ(some.moments.empty(), expected.empty());
        if (expected.empty()) continue;
        ASSERT_EQ(some.moments.earliest().ns, expected.begin()->first);
        ASSERT_EQ(some.moments.first()->index, expected.begin()->second);
        const Time now{static_cast<std::int64_t>(random.below(60))};
        std::size_t due = 0;
        some.moments.each_due(now, [&](const Vi& found) {
            EXPECT_LE(found.connect_deadline, now);
            ++due;
        });
        ASSERT_EQ(due, std::distance(expected.begin(), expected.lower_bound({now.ns + 1, 0})));
    }
}

TEST(Moments, each_of_many_comes_and_goes_in_a_few_steps) {
    constexpr std::uint32_t count = 20000;
    Some some(count);
    Random random(7);
    for (Vi& vi : some.vis)
        some.moments.set(vi, {static_cast<std::int64_t>(random.below(1'000'000))});
    while (Vi* vi = some.moments.first()) some.moments.remove(*vi);
    EXPECT_LT(some.moments.comparisons(), std::uint64_t{count} * 4 * std::bit_width(count));
}

}  // namespace
}  // namespace via::engine::moments_test
