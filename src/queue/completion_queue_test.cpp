#include "queue/completion_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <thread>

#include "base/random.hpp"

namespace via::queue::completion_queue_test {
namespace {

bool pop(CompletionQueue& queue, Completion& completion) {
    bool made_room = false;
    return queue.pop(completion, made_room);
}

/// Takes everything; the VIs' numbers in order.
std::vector<std::uint64_t> drain(CompletionQueue& queue) {
    std::vector<std::uint64_t> numbers;
    Completion completion;
    for (;;) {
        while (pop(queue, completion)) numbers.push_back(completion.vi);
        if (!queue.overrun()) return numbers;
        queue.pump();
    }
}

std::vector<std::uint64_t> range(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> numbers;
    for (; from < to; ++from) numbers.push_back(from);
    return numbers;
}

TEST(CompletionQueue, KeepsOrderAndNamesTheQueue) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(4));
    Completion completion;
    EXPECT_FALSE(queue.has_entry());
    EXPECT_FALSE(pop(queue, completion));
    constexpr std::uint64_t largest = (1ULL << 63) - 1;
    EXPECT_FALSE(queue.push({1, false}, 1));
    EXPECT_FALSE(queue.push({largest, true}, 1));
    EXPECT_TRUE(queue.has_entry());
    ASSERT_TRUE(pop(queue, completion));
    EXPECT_EQ(completion.vi, 1U);
    EXPECT_FALSE(completion.receive);
    ASSERT_TRUE(pop(queue, completion));
    EXPECT_EQ(completion.vi, largest);
    EXPECT_TRUE(completion.receive);
    EXPECT_FALSE(queue.has_entry());
}

TEST(CompletionQueue, HoldsExactlyWhatWasAskedFor) {
    for (const std::uint32_t entries : {1U, 2U, 3U, 5U, 8U, 100U}) {
        CompletionQueue queue;
        ASSERT_TRUE(queue.prepare(entries));
        EXPECT_EQ(queue.entries(), entries);
        for (std::uint32_t n = 0; n < entries; ++n) ASSERT_FALSE(queue.push({n, false}, n + 1));
        EXPECT_FALSE(queue.overrun());
        EXPECT_TRUE(queue.push({entries, false}, 1)) << "one too many: the queue becomes overrun";
        EXPECT_FALSE(queue.push({entries + 1, false}, 1)) << "it is overrun already";
        EXPECT_TRUE(queue.overrun());
        EXPECT_EQ(queue.waiting(), 2U);
        EXPECT_EQ(drain(queue), range(0, entries + 2));
    }
}

TEST(CompletionQueue, WhatWaitsEntersInOrderAsEntriesAreTaken) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(2));
    for (std::uint64_t n = 0; n < 6; ++n) queue.push({n, false}, 1);
    Completion completion;
    bool made_room = false;
    ASSERT_TRUE(queue.pop(completion, made_room));
    EXPECT_TRUE(made_room);
    queue.push({6, false}, 1);  // lets 2 in, and waits behind 5
    EXPECT_EQ(queue.waiting(), 4U);
    EXPECT_EQ(drain(queue), range(1, 7));
    EXPECT_FALSE(queue.overrun());
    EXPECT_FALSE(queue.push({7, false}, 1));
    ASSERT_TRUE(queue.pop(completion, made_room));
    EXPECT_FALSE(made_room) << "nobody waits any more";
    EXPECT_FALSE(queue.push({7, false}, 1));
    queue.push({8, false}, 1);
    EXPECT_TRUE(queue.push({9, false}, 1)) << "each overrun is told once";
}

TEST(CompletionQueue, ResizeKeepsEveryEntryAndItsOrder) {
    Random random(1);
    for (int round = 0; round < 2000; ++round) {
        CompletionQueue queue;
        ASSERT_TRUE(queue.prepare(static_cast<std::uint32_t>(random.between(1, 20))));
        std::uint64_t next = 0;
        std::uint64_t expected = 0;
        Completion completion;
        for (std::uint64_t n = random.below(30); n > 0; --n) queue.push({next++, false}, 1);
        for (std::uint64_t n = random.below(10); n > 0 && pop(queue, completion); --n)
            ASSERT_EQ(completion.vi, expected++);
        for (std::uint64_t n = random.below(10); n > 0; --n) queue.push({next++, false}, 1);
        const auto entries = static_cast<std::uint32_t>(random.between(1, 40));
        ASSERT_EQ(queue.resize(entries), Status::success);
        ASSERT_EQ(queue.entries(), entries);
        queue.pump();
        ASSERT_EQ(queue.waiting(), next - expected > entries ? next - expected - entries : 0);
        for (std::uint64_t n = random.below(10); n > 0; --n) queue.push({next++, false}, 1);
        ASSERT_EQ(drain(queue), range(expected, next));
    }
}

TEST(CompletionQueue, AGrownQueueIsNotOverrunAnyMore) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(1));
    for (std::uint64_t n = 0; n < 5; ++n) queue.push({n, false}, 1);
    EXPECT_TRUE(queue.overrun());
    ASSERT_EQ(queue.resize(5), Status::success);
    EXPECT_EQ(queue.waiting(), 4U) << "who waits for an entry hears of it by who pumps";
    queue.pump();
    EXPECT_FALSE(queue.overrun());
    EXPECT_EQ(drain(queue), range(0, 5));
}

TEST(CompletionQueue, WaitingOnesThatWereTakenElsewhereAreDropped) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(1));
    queue.push({1, false}, 1);
    for (std::uint32_t nth = 2; nth <= 4; ++nth) queue.push({1, false}, nth);
    for (std::uint32_t nth = 1; nth <= 3; ++nth) queue.push({1, true}, nth);
    queue.push({2, false}, 1);
    ASSERT_EQ(queue.waiting(), 7U);
    // Taken by Done on the work queues: three sends and one receive of VI 1, nothing of VI 2.
    queue.drop_taken([](const Completion& completion) -> std::uint32_t {
        return completion.vi == 2 ? 0 : completion.receive ? 1 : 3;
    });
    EXPECT_EQ(queue.waiting(), 4U);
    std::vector<std::pair<std::uint64_t, bool>> left;
    Completion completion;
    for (;;) {
        while (pop(queue, completion)) left.emplace_back(completion.vi, completion.receive);
        if (!queue.overrun()) break;
        queue.pump();
    }
    EXPECT_EQ(left, (std::vector<std::pair<std::uint64_t, bool>>{
                        {1, false}, {1, false}, {1, true}, {1, true}, {2, false}}))
        << "what was in the ring stays, what waited is gone as far as it was taken";
}

TEST(CompletionQueue, DroppingCountsModulo2To32) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(1));
    queue.push({1, false}, 0xFFFFFFFDU);
    for (std::uint32_t nth = 0xFFFFFFFEU; nth != 3; ++nth) queue.push({1, false}, nth);
    ASSERT_EQ(queue.waiting(), 5U);
    queue.drop_taken([](const Completion&) -> std::uint32_t { return 0; });
    EXPECT_EQ(queue.waiting(), 2U) << "numbers -2, -1 and 0 were taken, 1 and 2 were not";
}

TEST(CompletionQueue, ResetEmptiesAndPrepareBeginsAnew) {
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(2));
    for (std::uint64_t n = 0; n < 5; ++n) queue.push({n, false}, 1);
    queue.reset();
    Completion completion;
    EXPECT_FALSE(pop(queue, completion)) << "a late pop finds nothing";
    EXPECT_FALSE(queue.overrun());
    ASSERT_TRUE(queue.prepare(3));
    EXPECT_FALSE(queue.has_entry());
    queue.push({9, false}, 1);
    EXPECT_EQ(drain(queue), range(9, 10));
}

TEST(CompletionQueue, MatchesAModelUnderRandomUse) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        Random random(seed);
        CompletionQueue queue;
        auto entries = static_cast<std::uint32_t>(random.between(1, 30));
        ASSERT_TRUE(queue.prepare(entries));
        std::deque<std::uint64_t> inside;
        std::deque<std::uint64_t> waiting;
        const auto pump = [&] {
            while (!waiting.empty() && inside.size() < entries) {
                inside.push_back(waiting.front());
                waiting.pop_front();
            }
        };
        std::uint64_t next = 0;
        for (int step = 0; step < 5000; ++step) {
            const std::uint64_t dice = random.below(100);
            if (dice < 45) {
                pump();
                waiting.push_back(next);
                const bool was_overrun = waiting.size() > 1;
                pump();
                ASSERT_EQ(queue.push({next++, false}, 1), !was_overrun && !waiting.empty());
            } else if (dice < 95) {
                Completion completion;
                const bool popped = pop(queue, completion);
                ASSERT_EQ(popped, !inside.empty());
                if (!popped) continue;
                ASSERT_EQ(completion.vi, inside.front());
                inside.pop_front();
            } else if (dice < 98) {
                queue.pump();
                pump();
            } else {
                entries = static_cast<std::uint32_t>(random.between(1, 30));
                ASSERT_EQ(queue.resize(entries), Status::success);
                queue.pump();
                waiting.insert(waiting.begin(), inside.begin(), inside.end());
                inside.clear();
                pump();
            }
            ASSERT_EQ(queue.waiting(), waiting.size());
            ASSERT_EQ(queue.has_entry(), !inside.empty());
        }
    }
}

TEST(CompletionQueue, OneThreadPushesAndResizesWhileOthersPop) {
    constexpr std::uint64_t total = 40'000;
    constexpr int takers = 2;
    CompletionQueue queue;
    ASSERT_TRUE(queue.prepare(7));
    Atomic<std::uint64_t> popped{0};
    std::vector<std::uint64_t> seen[takers];
    std::vector<std::thread> threads;
    for (auto& mine : seen)
        threads.emplace_back([&] {
            while (popped.load() < total) {
                Completion completion;
                if (pop(queue, completion)) {
                    mine.push_back(completion.vi);
                    popped.fetch_add(1);
                } else {
                    std::this_thread::yield();
                }
            }
        });
    Random random(1);
    for (std::uint64_t n = 0; n < total; ++n) {
        queue.push({n, false}, 1);
        if (random.chance(1)) {
            ASSERT_EQ(queue.resize(static_cast<std::uint32_t>(random.between(1, 50))),
                      Status::success);
        }
    }
    while (queue.overrun()) {
        queue.pump();
        std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::uint64_t> all;
    for (const auto& mine : seen) {
        EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end())) << "each taker sees them in order";
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, range(0, total)) << "each exactly once";
}

}  // namespace
}  // namespace via::queue::completion_queue_test
