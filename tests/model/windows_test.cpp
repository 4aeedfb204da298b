// Memory windows: who has ended one finds that nothing lands there any more. What peers do is done
// within turns, each piece behind a check of its own; ending a window takes the turn.

#include <gtest/gtest.h>

#include "checker.hpp"
#include "memory/table.hpp"
#include "nic/turn_lock.hpp"

namespace via::windows_test {
namespace {

using memory::Access;
using model::explore_all;
using model::Program;

constexpr std::uint64_t base = 1000;
constexpr int pieces = 2;

struct Placing {
    nic::TurnLock lock;
    memory::MemoryTable table{1, 1, memory::tag_generation_max, 2};
    memory::MemoryHandle region = *table.add(base, pieces, {});
    memory::MemoryHandle window = *table.bind_window(region, base, pieces, {memory::no_tag, true});
    model::Plain<int> bytes[pieces];

    Placing() = default;
    Placing(std::uintptr_t owner, std::uint32_t takes_to_own) : lock(owner, takes_to_own) {}

    /// The NIC's: a piece of a message a turn.
    void place_all(bool by_one_check = false) {
        bool may = false;
        for (int piece = 0; piece < pieces; ++piece) {
            if (!lock.try_take()) continue;
            if (piece == 0 || !by_one_check)
                may = table.check(window, base + static_cast<std::uint64_t>(piece), 1,
                                  memory::no_tag, Access::remote_write);
            if (may) bytes[piece].set(1);
            lock.release();
        }
    }
    /// The program's: from here on it may use the bytes as it likes.
    void end_and_use() {
        lock.take();
        VIA_MODEL_CHECK(table.end_window(window) == Status::success);
        lock.release();
        use();
    }
    void use() {
        for (model::Plain<int>& byte : bytes) byte.set(byte.get() + 2);
    }
};

TEST(Windows, nothing_lands_when_one_was_ended) {
    const Program<Placing> program{
        "a window ended against a message",
        {[](Placing& s) { s.place_all(); }, [](Placing& s) { s.end_and_use(); }},
        [](Placing& s) {
            for (model::Plain<int>& byte : s.bytes) VIA_MODEL_CHECK(byte.get() >= 2);
        }};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

TEST(Windows, another_one_in_its_place_serves_nobody_who_had_the_first) {
    const Program<Placing> program{
        "a window ended and bound anew against a message",
        {[](Placing& s) { s.place_all(); },
         [](Placing& s) {
             s.lock.take();
             VIA_MODEL_CHECK(s.table.end_window(s.window) == Status::success);
             const auto next = s.table.bind_window(s.region, base, pieces, {memory::no_tag, true});
             VIA_MODEL_CHECK(next && *next != s.window);
             s.lock.release();
             s.use();
         }}};
    const auto result = explore_all(program);
    EXPECT_TRUE(result.passed()) << result.report();
}

// The polling thread owns the turn, and loses it to the one that ends the window.
struct Owned : Placing {
    Owned() : Placing(model::thread_mark(0), 64) {}
};

TEST(Windows, nothing_lands_where_a_thread_owned_the_turn) {
    Program<Owned> program{"a window ended against a turn's owner",
                           {[](Owned& s) { s.place_all(); }, [](Owned& s) { s.end_and_use(); }}};
    const auto result = explore_all(program, {.heavy_fences = true});
    EXPECT_TRUE(result.passed()) << result.report();
}

// What the turn is for, and the check of each piece.
TEST(Windows, ending_one_without_the_turn_would_not_do) {
    const Program<Placing> program{
        "a window ended without the turn",
        {[](Placing& s) { s.place_all(); },
         [](Placing& s) {
             VIA_MODEL_CHECK(s.table.end_window(s.window) == Status::success);
             s.use();
         }}};
    EXPECT_FALSE(explore_all(program).passed());
}

TEST(Windows, one_check_for_a_message_would_not_do) {
    const Program<Placing> program{
        "a window asked for once",
        {[](Placing& s) { s.place_all(true); }, [](Placing& s) { s.end_and_use(); }}};
    EXPECT_FALSE(explore_all(program).passed());
}

}  // namespace
}  // namespace via::windows_test
