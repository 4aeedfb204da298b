// Bits that peers set, and waking a thread that sleeps beside them.
#include "board.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace via::sockets {
namespace board_test {
namespace {

constexpr std::uint32_t all_words = Board::bits_max / 64;

std::vector<std::uint32_t> taken(Board& board, std::uint32_t words = all_words) {
    std::vector<std::uint32_t> bits;
    board.take(words, [&](std::uint32_t bit) { bits.push_back(bit); });
    return bits;
}

TEST(Board, GivesEachMarkOutOnce) {
    const auto board = std::make_unique<Board>();
    for (const std::uint32_t bit : {65535u, 64u, 0u, 63u, 64u}) EXPECT_EQ(board->mark(bit), 0u);
    board->clear(63);
    EXPECT_TRUE(board->any(2));
    EXPECT_EQ(taken(*board, 2), (std::vector<std::uint32_t>{0, 64}));
    EXPECT_FALSE(board->any(2));
    EXPECT_EQ(taken(*board), std::vector<std::uint32_t>{65535});
    EXPECT_FALSE(board->any(all_words));
}

TEST(Board, WhoMarksLearnsOfASleepUntilItsByteIsSent) {
    const auto board = std::make_unique<Board>();
    board->sleep(7);
    EXPECT_EQ(board->mark(1), 7u);
    EXPECT_EQ(board->mark(2), 7u);  // the first may have stopped in front of its byte
    board->woken(7);
    EXPECT_EQ(board->mark(3), 0u);
}

TEST(Board, ALateWakeDoesNotEndTheNextSleep) {
    const auto board = std::make_unique<Board>();
    board->sleep(7);
    const std::uint64_t seen = board->mark(1);
    board->end_sleep();
    board->sleep(8);
    board->woken(seen);
    EXPECT_EQ(board->mark(1), 8u);
}

TEST(Board, IsEmptyWhenItIsUsedAgain) {
    const auto board = std::make_unique<Board>();
    board->sleep(3);
    board->mark(9);
    board->reset();
    EXPECT_FALSE(board->any(all_words));
    EXPECT_EQ(board->mark(4), 0u);
}

TEST(Mark, IsAWordAndNeverOfMoreThanABoard) {
    const Mark mark = Mark::of(Mark{.board = 0xFFFFFFC0, .bit = 65535, .room = true}.word());
    EXPECT_EQ(mark.board, 0xFFFFFFC0u);
    EXPECT_EQ(mark.bit, 65535u);
    EXPECT_TRUE(mark.room);
    EXPECT_LT(Mark::of(~0ull).bit, Board::bits_max);  // whatever a peer writes
}

/// What is stored is found, by a thread that sleeps whenever it has found nothing. A wake that is
/// lost stops both.
TEST(Board, NoStoreIsLostBesideASleeper) {
    constexpr std::uint32_t turns = 20'000;
    const auto board = std::make_unique<Board>();
    std::atomic<std::uint32_t> stored{0};
    std::atomic<std::uint32_t> found{0};
    std::atomic<std::uint32_t> bytes{0};
    std::thread peer([&] {
        for (std::uint32_t turn = 1; turn <= turns; ++turn) {
            stored.store(turn, std::memory_order_release);
            std::atomic_thread_fence(std::memory_order_seq_cst);
            if (const std::uint64_t sleep = board->mark(100)) {
                bytes.fetch_add(1);
                bytes.notify_one();
                board->woken(sleep);
            }
            for (std::uint32_t at = found.load(); at != turn; at = found.load()) found.wait(at);
        }
    });
    std::uint64_t sleeps = 0;
    while (found.load() != turns) {
        const std::uint32_t before = bytes.load();
        bool any = false;
        board->take(2, [&](std::uint32_t) { any = true; });
        if (any && stored.load(std::memory_order_acquire) != found.load()) {
            found.store(stored.load(std::memory_order_acquire));
            found.notify_one();
            continue;
        }
        board->sleep(++sleeps);
        if (!board->any(2)) bytes.wait(before);
        board->end_sleep();
    }
    peer.join();
    EXPECT_EQ(found.load(), turns);
}

}  // namespace
}  // namespace board_test
}  // namespace via::sockets
