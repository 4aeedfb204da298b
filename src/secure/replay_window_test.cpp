#include "secure/replay_window.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/random.hpp"

namespace via::secure::replay_window_test {
namespace {

TEST(ReplayWindow, each_number_counts_once) {
    ReplayWindow window;
    EXPECT_TRUE(window.is_new(0));
    window.note(0);
    EXPECT_FALSE(window.is_new(0));
    EXPECT_TRUE(window.is_new(1));
    window.note(5);
    EXPECT_FALSE(window.is_new(5));
    EXPECT_TRUE(window.is_new(4));
    window.note(4);
    EXPECT_FALSE(window.is_new(4));
}

TEST(ReplayWindow, what_is_too_old_counts_as_seen) {
    ReplayWindow window;
    window.note(ReplayWindow::size + 9);
    EXPECT_TRUE(window.is_new(10));
    EXPECT_FALSE(window.is_new(9));
}

TEST(ReplayWindow, a_leap_forgets_everything_behind) {
    ReplayWindow window;
    for (std::uint64_t number = 0; number < 300; ++number) window.note(number);
    const std::uint64_t far = 1'000'000'000'007;
    window.note(far);
    EXPECT_FALSE(window.is_new(299));
    EXPECT_FALSE(window.is_new(far));
    EXPECT_TRUE(window.is_new(far - ReplayWindow::size + 1));
    EXPECT_FALSE(window.is_new(far - ReplayWindow::size));
}

/// The greatest numbers there are do not wrap anything round.
TEST(ReplayWindow, the_last_numbers) {
    ReplayWindow window;
    const std::uint64_t last = ~std::uint64_t{0} - 1;
    window.note(last);
    EXPECT_FALSE(window.is_new(last));
    EXPECT_TRUE(window.is_new(last - 1));
    EXPECT_FALSE(window.is_new(0));
}

/// Against a set of all that came, by numbers that stay, go back a bit, and leap.
TEST(ReplayWindow, as_a_set_says) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        Random random(seed);
        const auto window = std::make_unique<ReplayWindow>();
        std::set<std::uint64_t> seen;
        std::uint64_t end = 0;
        for (int step = 0; step < 20'000; ++step) {
            const std::uint64_t back = random.below(random.chance(5) ? 40'000 : 200);
            const std::uint64_t ahead = random.below(random.chance(1) ? 50'000 : 100);
            const std::uint64_t middle = end + ahead;
            const std::uint64_t number = middle > back ? middle - back : 0;
            const bool in_reach = number >= end || end - number <= ReplayWindow::size;
            const bool is_new = in_reach && !seen.contains(number);
            ASSERT_EQ(window->is_new(number), is_new) << "seed " << seed << " step " << step;
            if (!is_new) continue;
            window->note(number);
            seen.insert(number);
            end = std::max(end, number + 1);
        }
    }
}

}  // namespace
}  // namespace via::secure::replay_window_test
