// Who comes to own the turn, and who has it. What several threads do to it at once is looked at in
// tests/model/turn_test.cpp.
#include "nic/turn_lock.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace via::nic::turn_lock_test {
namespace {

// One thread after the other: a fence of the caller is all they need.
class TurnLock : public ::testing::Test {
protected:
    TurnLock() {
        set_heavy_fence(FenceReach::process, [] { atomic_fence(std::memory_order_seq_cst); });
    }
    ~TurnLock() override { set_heavy_fence(FenceReach::process, nullptr); }
};

void take_once(nic::TurnLock& turn) {
    ASSERT_TRUE(turn.try_take());
    EXPECT_TRUE(turn.is_callers());
    EXPECT_FALSE(turn.try_take());
    turn.release();
    EXPECT_FALSE(turn.is_callers());
}

void in_another_thread(const std::function<void()>& call) { std::thread(call).join(); }

TEST_F(TurnLock, is_owned_after_as_many_takes_in_a_row) {
    nic::TurnLock turn;
    const auto owned = [&turn] {
        bool is = false;
        in_another_thread([&] { is = turn.is_anothers(); });
        return is;
    };
    for (std::uint32_t i = 1; i < nic::TurnLock::takes_to_own; ++i) take_once(turn);
    EXPECT_FALSE(owned());
    take_once(turn);
    EXPECT_TRUE(owned());
    EXPECT_FALSE(turn.is_anothers());
    take_once(turn);
    in_another_thread([&] {
        ASSERT_TRUE(turn.try_take_rarely());
        turn.release();
    });
    EXPECT_FALSE(owned());
}

// This thread and so many others, all alive at once, come to own it; then one more takes it.
void own_all_and_take(nic::TurnLock& turn, std::size_t others) {
    ASSERT_TRUE(turn.try_take_rarely());  // from its owner
    turn.release();
    take_once(turn);
    in_another_thread([&] { EXPECT_TRUE(turn.is_anothers()); });
    in_another_thread([&] {
        if (others > 0) return own_all_and_take(turn, others - 1);
        ASSERT_TRUE(turn.try_take_rarely());
        turn.release();
        for (int i = 0; i < 3; ++i) take_once(turn);
        in_another_thread([&] { EXPECT_FALSE(turn.is_anothers()); });
    });
}

TEST_F(TurnLock, who_comes_too_late_to_own_it_takes_it_all_the_same) {
    nic::TurnLock turn(0, 1);
    own_all_and_take(turn, nic::TurnLock::owners_most - 1);
    take_once(turn);  // one that owned it before does again
    in_another_thread([&] { EXPECT_TRUE(turn.is_anothers()); });
}

}  // namespace
}  // namespace via::nic::turn_lock_test
