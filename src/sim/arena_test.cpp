#include "sim/arena.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace via::sim {
namespace {

using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Runs look(Arena& arena) {
    Runs runs;
    arena.look([&](std::uint64_t at, std::uint64_t length) { runs.emplace_back(at, length); });
    return runs;
}

TEST(Arena, sees_what_others_wrote_once) {
    Arena arena(3 * 4096);
    EXPECT_EQ(look(arena), Runs{});
    for (std::uint64_t at : {10U, 11U, 13U, 4095U, 4096U, 12287U}) *arena.at(at) = std::byte{1};
    EXPECT_EQ(look(arena), (Runs{{10, 2}, {13, 1}, {4095, 1}, {4096, 1}, {12287, 1}}));
    EXPECT_EQ(look(arena), Runs{});
}

TEST(Arena, the_programs_own_writes_are_no_change) {
    Arena arena(4096);
    const std::vector<std::byte> bytes(100, std::byte{9});
    arena.write(50, bytes);
    EXPECT_EQ(look(arena), Runs{});
    EXPECT_EQ(*arena.at(149), std::byte{9});
    EXPECT_EQ(arena.offset_of(arena.at(77)), 77U);
    *arena.at(60) = std::byte{1};
    EXPECT_EQ(look(arena), (Runs{{60, 1}}));
}

TEST(Blocks, never_overlap_and_are_used_again) {
    Blocks blocks(1000, 256);
    const auto a = blocks.take(1);
    const auto b = blocks.take(65);
    const auto c = blocks.take(0);
    ASSERT_TRUE(a && b && c);
    EXPECT_EQ(*a, 1000U);
    EXPECT_EQ(*b, 1064U);
    EXPECT_EQ(*c, 1192U);
    EXPECT_FALSE(blocks.take(1));
    blocks.give_back(*b);
    EXPECT_FALSE(blocks.take(129));
    EXPECT_EQ(*blocks.take(64), 1064U);
    EXPECT_EQ(*blocks.take(64), 1128U);
    EXPECT_FALSE(blocks.empty());
}

}  // namespace
}  // namespace via::sim
