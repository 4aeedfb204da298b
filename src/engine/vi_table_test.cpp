#include "engine/vi_table.hpp"

#include <gtest/gtest.h>

namespace via::engine::vi_table_test {
namespace {

TEST(ViTable, a_place_is_used_again_last_and_under_another_generation) {
    ViTable vis(64, 6);
    Vi* const first = vis.next_free();
    ASSERT_NE(first, nullptr);
    EXPECT_FALSE(ViTable::exists(*first));
    vis.open(*first);
    EXPECT_EQ(first->generation.load(), 7U);
    vis.close(*first);
    EXPECT_EQ(vis.count(), 0U);
    for (int n = 0; n < 63; ++n) {
        Vi* const other = vis.next_free();
        ASSERT_NE(other, nullptr);
        EXPECT_NE(other, first);
        vis.open(*other);
    }
    ASSERT_EQ(vis.next_free(), first);
    vis.open(*first);
    EXPECT_EQ(first->generation.load(), 9U);
    EXPECT_EQ(vis.count(), 64U);
    EXPECT_EQ(vis.next_free(), nullptr) << "there are as many as may be";
}

TEST(ViTable, finds_what_was_made_and_nothing_beyond) {
    ViTable vis(128, 0);
    EXPECT_EQ(vis.at(0), nullptr);
    Vi* const made = vis.next_free();
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(vis.at(made->index), made);
    EXPECT_EQ(vis.at(vis.made()), nullptr);
    EXPECT_EQ(vis.at(128), nullptr);
    EXPECT_EQ(vis.at(~0U), nullptr);
}

TEST(ViTable, a_frame_of_another_path_epoch_or_state_finds_no_connection) {
    ViTable vis(64, 0);
    Vi& vi = *vis.next_free();
    vis.open(vi);
    vi.begin_epoch();
    vi.path = 3;
    EXPECT_EQ(vis.connected(3, vi.number()), nullptr) << "it is idle";
    vi.state.store(ViState::connected);
    EXPECT_EQ(vis.connected(3, vi.number()), &vi);
    EXPECT_TRUE(vis.is_connected(vi.number()));
    EXPECT_EQ(vis.connected(4, vi.number()), nullptr);
    const std::uint32_t before = vi.number();
    vi.begin_epoch();
    EXPECT_EQ(vis.connected(3, before), nullptr);
    EXPECT_FALSE(vis.is_connected(before));
}

}  // namespace
}  // namespace via::engine::vi_table_test
