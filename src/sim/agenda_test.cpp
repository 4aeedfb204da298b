#include "sim/agenda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"

namespace via::sim::agenda_test {

TEST(SimAgenda, NobodyIsFirstOfNobody) {
    Agenda agenda;
    EXPECT_TRUE(agenda.earliest().is_never());
    agenda.set(5, Time{7});
    agenda.set(5, Time::never());
    EXPECT_TRUE(agenda.earliest().is_never());
}

TEST(SimAgenda, OfSeveralAtOneMomentTheLowestNumberIsFirst) {
    Agenda agenda;
    for (const std::size_t node : {9UL, 2UL, 6UL}) agenda.set(node, Time{100});
    EXPECT_EQ(agenda.first(), 2U);
    agenda.set(2, Time{101});
    EXPECT_EQ(agenda.first(), 6U);
    agenda.set(0, Time{100});
    EXPECT_EQ(agenda.first(), 0U);
}

TEST(SimAgenda, IsWhatALookAtAllOfThemFinds) {
    Agenda agenda;
    Random random(3);
    std::vector<Time> all;
    for (int n = 0; n < 5'000; ++n) {
        if (all.size() < 70 && random.chance(2)) all.push_back(Time::never());
        if (all.empty()) continue;
        const auto node = static_cast<std::size_t>(random.below(all.size()));
        all[node] =
            random.chance(20) ? Time::never() : Time{static_cast<std::int64_t>(random.below(40))};
        agenda.set(node, all[node]);
        const auto first = std::ranges::min_element(all);
        ASSERT_EQ(agenda.earliest(), *first);
        if (first->is_never()) continue;
        ASSERT_EQ(agenda.first(), static_cast<std::size_t>(first - all.begin()));
    }
    EXPECT_EQ(all.size(), 70U);
}

}  // namespace via::sim::agenda_test
