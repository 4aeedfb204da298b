#include "sim/arena.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace via::sim::arena_test {
namespace {

using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Runs look(Arena& arena) {
    Runs runs;
    arena.look([&](std::uint64_t at, std::uint64_t length) { runs.emplace_back(at, length); });
    return runs;
}

TEST(Arena, sees_what_others_wrote_once) {
    Arena arena(3 * 4096);
    arena.open(0, arena.length());
    EXPECT_EQ(look(arena), Runs{});
    for (std::uint64_t at : {10U, 11U, 13U, 4095U, 4096U, 12287U}) *arena.at(at) = std::byte{1};
    EXPECT_EQ(look(arena), (Runs{{10, 2}, {13, 1}, {4095, 1}, {4096, 1}, {12287, 1}}));
    EXPECT_EQ(look(arena), Runs{});
}

TEST(Arena, the_programs_own_writes_are_no_change) {
    Arena arena(4096);
    arena.open(0, 4096);
    const std::vector<std::byte> bytes(100, std::byte{9});
    arena.write(50, bytes);
    EXPECT_EQ(look(arena), Runs{});
    EXPECT_EQ(*arena.at(149), std::byte{9});
    EXPECT_EQ(arena.offset_of(arena.at(77)), 77U);
    *arena.at(60) = std::byte{1};
    EXPECT_EQ(look(arena), (Runs{{60, 1}}));
}

TEST(Arena, sees_at_once_where_somebody_may_write) {
    Arena arena(1 << 20);
    const auto write = [&](std::uint64_t at) { *arena.at(at) = ~*arena.at(at); };
    arena.open(700'000, 200);
    arena.open(700'100, 10);
    for (std::uint64_t at : {700'000U, 700'105U, 700'199U}) {
        write(at);
        EXPECT_EQ(look(arena), (Runs{{at, 1}}));
    }
    arena.close(700'000, 200);
    write(700'105);
    EXPECT_EQ(look(arena), (Runs{{700'105, 1}}));
}

TEST(Arena, sees_all_that_is_open_wherever_it_lies) {
    constexpr std::uint64_t page = 4096;
    Arena arena(200 * page);
    Runs written;
    for (std::uint64_t in : {0U, 63U, 64U, 130U, 199U}) {
        const std::uint64_t at = in * page + 100;
        arena.open(at, 1);
        arena.open(at + 1000, 1);
        arena.close(at, 1);  // the page's other unit stays open
        *arena.at(at + 1000) = std::byte{1};
        written.emplace_back(at + 1000, 1);
    }
    EXPECT_EQ(look(arena), written);
}

TEST(Arena, sees_everything_within_some_looks) {
    for (const std::uint64_t length : {4096ULL, 5 * 4096ULL, 100 * 4096ULL}) {
        Arena arena(length);
        for (std::uint64_t at : {std::uint64_t{0}, length / 2, length - 1}) {
            *arena.at(at) = ~*arena.at(at);
            Runs seen;
            for (std::uint64_t n = 0; n < Arena::looks_for_all; ++n)
                for (const auto& run : look(arena)) seen.push_back(run);
            EXPECT_EQ(seen, (Runs{{at, 1}}));
        }
    }
}

TEST(Arena, sees_where_it_is_told_to_look) {
    Arena arena(64 * 4096);
    for (std::uint64_t at : {99'999U, 100'000U, 100'010U}) *arena.at(at) = std::byte{1};
    Runs runs;
    const auto note = [&](std::uint64_t at, std::uint64_t length) {
        runs.emplace_back(at, length);
    };
    arena.look_at(100'000, 10, note);
    EXPECT_EQ(runs, (Runs{{100'000, 1}}));
    arena.look_at(99'000, 5'000, note);
    EXPECT_EQ(runs, (Runs{{100'000, 1}, {99'999, 1}, {100'010, 1}}));
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
}  // namespace via::sim::arena_test
