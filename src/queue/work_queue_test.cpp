#include "queue/work_queue.hpp"

#include <gtest/gtest.h>
#include <array>

#include <cstdlib>
#include <deque>
#include <new>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "queue/byte_walk.hpp"

namespace {

/// Chunks alive, and how many more may be made. Chunks are all that a test allocates over-aligned.
int chunks_alive = 0;
int chunks_allowed = 1 << 30;

}  // namespace

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ALLOCATOR_IS_TAKEN 1
#endif
#endif
#if !defined(ALLOCATOR_IS_TAKEN) && !defined(__SANITIZE_THREAD__)
#define CHUNKS_ARE_COUNTED 1

void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    if (chunks_allowed == 0) return nullptr;
    --chunks_allowed;
    ++chunks_alive;
    return std::aligned_alloc(static_cast<std::size_t>(alignment), size);
}
/// gtest's, for the fixture: what the deletes below free must come from here, too.
void* operator new(std::size_t size, std::align_val_t alignment) {
    ++chunks_alive;
    return std::aligned_alloc(static_cast<std::size_t>(alignment), size);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    --chunks_alive;
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
    operator delete(memory, alignment);
}

#endif  // the thread sanitizer's allocator cannot be replaced

namespace via::queue::work_queue_test {
namespace {

constexpr std::uint32_t depth = 1024;
constexpr std::uint32_t segments_max = 252;

/// Segments whose content follows from a number, so that a mixed-up cell shows.
std::vector<Segment> segments_of(std::uint32_t number, std::uint32_t count) {
    std::vector<Segment> segments(count);
    for (std::uint32_t n = 0; n < count; ++n)
        segments[n] = {(std::uint64_t{number} << 32) | n, number * 1000 + n, number ^ (n << 20)};
    return segments;
}

bool equal(const Segment& a, const Segment& b) {
    return a.address == b.address && a.handle == b.handle && a.length == b.length;
}

/// A posted descriptor as it should be.
struct Entry {
    std::uint32_t number;
    std::uint32_t count;
};

class WorkQueueTest : public ::testing::Test {
protected:
    void SetUp() override {
        chunks_alive = 0;
        chunks_allowed = 1 << 30;
        ASSERT_TRUE(queue_.prepare());
    }
    void TearDown() override {
        queue_.reset();
        EXPECT_EQ(chunks_alive, 0) << "reset frees everything";
    }

    Status post(std::uint32_t number, std::uint32_t count, std::uint32_t limit = depth) {
        ControlSegment control{};
        control.segment_count = static_cast<std::uint16_t>(count);
        control.control = static_cast<std::uint16_t>(number);
        control.length = number + 1;
        control.immediate_data = number + 2;
        const std::vector<Segment> segments = segments_of(number, count);
        Descriptor& descriptor = descriptors_[number % depth];
        descriptor.control.status = status::done;
        const WorkQueue::Lock::Guard guard(queue_.post_lock());
        return queue_.post(&descriptor, number + 3, control, segments.data(), number + 4, limit);
    }

    void expect_entry(Cursor at, const Entry& expected) {
        const WorkEntry& entry = at.cell();
        ASSERT_EQ(entry.descriptor, &descriptors_[expected.number % depth]);
        ASSERT_EQ(entry.handle, expected.number + 3);
        ASSERT_EQ(entry.segment_count, expected.count);
        ASSERT_EQ(entry.control, static_cast<std::uint16_t>(expected.number));
        ASSERT_EQ(entry.length, expected.number + 1);
        ASSERT_EQ(entry.immediate_data, expected.number + 2);
        ASSERT_EQ(entry.status, expected.number + 4);
        const std::vector<Segment> segments = segments_of(expected.number, expected.count);
        for (const std::uint32_t first : {0U, 1U}) {
            SegmentWalk walk(at, first);
            for (std::uint32_t n = first; n < expected.count; ++n) {
                ASSERT_FALSE(walk.done());
                ASSERT_TRUE(equal(walk.next(), segments[n])) << "segment " << n;
            }
            ASSERT_TRUE(walk.done());
        }
    }

    /// Starts, completes and takes the head.
    void finish(const Entry& expected) {
        ASSERT_TRUE(queue_.has_current());
        expect_entry(queue_.current(), expected);
        queue_.start_next();
        queue_.complete_oldest();
        Taken taken;
        ASSERT_TRUE(queue_.take(taken));
        ASSERT_EQ(taken.descriptor, &descriptors_[expected.number % depth]);
        ASSERT_EQ(taken.status, expected.number + 4);
    }

    WorkQueue queue_;
    std::vector<Descriptor> descriptors_ = std::vector<Descriptor>(depth);
};

TEST_F(WorkQueueTest, BeginsEmpty) {
    EXPECT_TRUE(queue_.empty());
    EXPECT_FALSE(queue_.has_current());
    EXPECT_FALSE(queue_.has_outstanding());
    EXPECT_FALSE(queue_.has_started());
    EXPECT_FALSE(queue_.has_done());
    Taken taken;
    EXPECT_FALSE(queue_.take(taken));
    EXPECT_FALSE(queue_.head_is_written());
    EXPECT_TRUE(queue_.prepare());
    EXPECT_LE(chunks_alive, 1) << "preparing again changes nothing";
}

TEST_F(WorkQueueTest, ADescriptorWalksThroughAllThreeParties) {
    ASSERT_EQ(post(7, 3), Status::success);
    EXPECT_EQ(descriptors_[7].control.status, 0U) << "an old DONE is cleared (VIPL 4.9)";
    Taken taken;
    EXPECT_FALSE(queue_.take(taken));
    EXPECT_FALSE(queue_.empty()) << "posted, not done";
    EXPECT_TRUE(queue_.has_current());
    EXPECT_TRUE(queue_.has_outstanding());
    EXPECT_FALSE(queue_.has_started());
    expect_entry(queue_.current(), {7, 3});
    queue_.start_next();
    EXPECT_FALSE(queue_.has_current());
    EXPECT_TRUE(queue_.has_started());
    EXPECT_TRUE(queue_.has_outstanding());
    EXPECT_FALSE(queue_.head_is_written());
    descriptors_[7].control.status = status::done;
    EXPECT_TRUE(queue_.head_is_written()) << "written, not counted yet";
    expect_entry(queue_.oldest(), {7, 3});
    queue_.complete_oldest();
    EXPECT_TRUE(queue_.has_done());
    EXPECT_FALSE(queue_.has_outstanding());
    EXPECT_FALSE(queue_.empty());
    EXPECT_EQ(queue_.completed_count(), 1U);
    EXPECT_EQ(queue_.taken_count(), 0U);
    EXPECT_TRUE(queue_.take(taken));
    EXPECT_EQ(taken.status, 11U);
    EXPECT_TRUE(queue_.empty());
    EXPECT_EQ(queue_.taken_count(), 1U);
}

TEST_F(WorkQueueTest, CommonDescriptorsTakeTheFastPathAsTheyTakeTheOtherOne) {
    std::uint32_t short_ones = 0;
    for (std::uint32_t number = 0; number < 200; ++number) {
        const std::uint16_t count = number % 3 == 0 ? 2 : 1;
        ControlSegment control{};
        control.segment_count = count;
        control.control = static_cast<std::uint16_t>(number);
        control.length = number + 1;
        control.immediate_data = number + 2;
        Descriptor& descriptor = descriptors_[number];
        descriptor.control.status = status::done;
        const std::vector<Segment> all = segments_of(number, count);
        const WorkQueue::Lock::Guard guard(queue_.post_lock());
        const bool posted = count == 1 ? queue_.post_common(&descriptor, number + 3, control,
                                                            std::array{all[0]}, depth)
                                       : queue_.post_common(&descriptor, number + 3, control,
                                                            std::array{all[0], all[1]}, depth);
        short_ones += posted ? 1 : 0;
        if (!posted) {
            ASSERT_EQ(queue_.post(&descriptor, number + 3, control, all.data(), 0, depth),
                      Status::success);
        }
        EXPECT_EQ(descriptor.control.status, 0U);
        WorkEntry* const entry = queue_.oldest_current();
        ASSERT_NE(entry, nullptr);
        EXPECT_TRUE(queue_.is_last_posted());
        EXPECT_EQ(entry->status, 0U);
        entry->status = number + 4;
        expect_entry(queue_.current(), {number, count});
        queue_.complete_current();
        EXPECT_EQ(queue_.oldest_current(), nullptr);
        EXPECT_FALSE(queue_.has_started());
        EXPECT_EQ(queue_.completed_count(), number + 1);
        Taken taken;
        ASSERT_TRUE(queue_.take(taken));
        EXPECT_EQ(taken.descriptor, &descriptor);
        EXPECT_EQ(taken.status, number + 4);
        EXPECT_TRUE(queue_.empty());
    }
    EXPECT_GT(short_ones, 180U) << "all but the first of each chunk";
}

TEST_F(WorkQueueTest, TheFastPathKnowsTheLimitAndWhatIsOutstanding) {
    const std::array<Segment, 1> segments{};
    ControlSegment control{};
    control.segment_count = 1;
    ASSERT_TRUE(queue_.post_common(&descriptors_[0], 1, control, segments, 2));
    ASSERT_TRUE(queue_.post_common(&descriptors_[1], 1, control, segments, 2));
    EXPECT_FALSE(queue_.post_common(&descriptors_[2], 1, control, segments, 2));
    EXPECT_FALSE(queue_.is_last_posted());
    ASSERT_NE(queue_.oldest_current(), nullptr);
    queue_.start_next();
    EXPECT_EQ(queue_.oldest_current(), nullptr) << "one before it is outstanding";
    queue_.complete_oldest();
    EXPECT_NE(queue_.oldest_current(), nullptr);
    queue_.complete_current();
    queue_.reset();
    EXPECT_FALSE(queue_.post_common(&descriptors_[2], 1, control, segments, 2)) << "it is gone";
    ASSERT_TRUE(queue_.prepare());
}

TEST_F(WorkQueueTest, EveryNumberOfSegmentsFits) {
    for (std::uint32_t count = 0; count <= segments_max; ++count) {
        ASSERT_EQ(post(count, count), Status::success);
        ASSERT_NO_FATAL_FAILURE(finish({count, count})) << count << " segments";
    }
}

TEST_F(WorkQueueTest, EveryNumberOfSegmentsFitsAtEveryPlaceInAChunk) {
    std::uint32_t number = 0;
    for (std::uint32_t skip = 0; skip < Chunk::cell_count; ++skip)
        for (const std::uint32_t count : {2U, 3U, 6U, 7U, 50U, 58U, 59U, 62U, 63U, 251U, 252U}) {
            const std::uint32_t position = queue_.posted() % Chunk::cell_count;
            for (std::uint32_t n = (skip + Chunk::cell_count - position) % Chunk::cell_count; n > 0;
                 --n) {
                ASSERT_EQ(post(number, 0), Status::success);
                ASSERT_NO_FATAL_FAILURE(finish({number++, 0}));
            }
            ASSERT_EQ(queue_.posted() % Chunk::cell_count, skip);
            ASSERT_EQ(post(number, count), Status::success);
            ASSERT_NO_FATAL_FAILURE(finish({number++, count})) << count << " at " << skip;
        }
}

TEST_F(WorkQueueTest, ADescriptorKeptForItsFaultHasNoSegments) {
    ControlSegment control{};
    control.segment_count = 60'000;
    {
        const WorkQueue::Lock::Guard guard(queue_.post_lock());
        ASSERT_EQ(
            queue_.post(descriptors_.data(), 1, control, nullptr, status::format_error, depth),
            Status::success);
    }
    EXPECT_EQ(queue_.current().cell().segment_count, 0U);
    EXPECT_EQ(queue_.current().cell().status, status::format_error);
    EXPECT_EQ(queue_.posted(), 1U) << "one cell";
}

TEST_F(WorkQueueTest, TheLimitCountsWhatIsNotTakenYet) {
    for (std::uint32_t n = 0; n < 5; ++n) ASSERT_EQ(post(n, 1, 5), Status::success);
    EXPECT_EQ(post(5, 1, 5), Status::error_resource);
    queue_.start_next();
    queue_.complete_oldest();
    EXPECT_EQ(post(5, 1, 5), Status::error_resource) << "done but not taken";
    Taken taken;
    ASSERT_TRUE(queue_.take(taken));
    EXPECT_EQ(post(5, 1, 5), Status::success);
    EXPECT_EQ(post(6, 1, 5), Status::error_resource);
}

#ifdef CHUNKS_ARE_COUNTED
TEST_F(WorkQueueTest, SeveralAreTakenUpToTheFirstFault) {
    const auto finish_all = [&] {
        while (queue_.has_current()) {
            queue_.start_next();
            queue_.complete_oldest();
        }
    };
    std::array<void*, 4> taken{};
    bool failed = false;
    EXPECT_EQ(queue_.take(taken, failed), 0U);
    for (const std::uint32_t fault : {0U, 0U, status::format_error, 0U}) {
        const WorkQueue::Lock::Guard guard(queue_.post_lock());
        ASSERT_EQ(queue_.post(descriptors_.data(), 3, {}, nullptr, fault, depth), Status::success);
    }
    EXPECT_EQ(queue_.take(taken, failed), 0U) << "none is done";
    finish_all();
    EXPECT_EQ(queue_.take(std::span(taken).first(1), failed), 1U) << "no more than there is room";
    EXPECT_FALSE(failed);
    EXPECT_EQ(queue_.take(taken, failed), 2U);
    EXPECT_TRUE(failed);
    EXPECT_EQ(queue_.taken_count(), 3U);
    failed = false;
    EXPECT_EQ(queue_.take(taken, failed), 1U);
    EXPECT_EQ(taken[0], descriptors_.data());
    EXPECT_FALSE(failed);
    EXPECT_TRUE(queue_.empty());
}

TEST_F(WorkQueueTest, MemoryFollowsTheDeepestUseAndIsReused) {
    std::uint32_t number = 0;
    const auto rounds = [&](int count, std::uint32_t deep, std::uint32_t segments) {
        for (int round = 0; round < count; ++round) {
            for (std::uint32_t n = 0; n < deep; ++n)
                ASSERT_EQ(post(number + n, segments), Status::success);
            for (std::uint32_t n = 0; n < deep; ++n)
                ASSERT_NO_FATAL_FAILURE(finish({number + n, segments}));
            number += deep;
        }
    };
    rounds(1000, 1, 1);
    EXPECT_LE(chunks_alive, 3) << "a queue hardly used stays small";
    rounds(10, 300, 1);
    const int after_burst = chunks_alive;
    EXPECT_GE(after_burst, 300 / 15);
    EXPECT_LE(after_burst, 300 / 15 + 3);
    rounds(100, 300, 1);
    rounds(1000, 7, 3);
    EXPECT_EQ(chunks_alive, after_burst) << "no growth without deeper use";
    rounds(20, 4, segments_max);
    const int after_large = chunks_alive;
    EXPECT_LE(after_large, 4 * 64 / 15 + 3 + after_burst);
    rounds(200, 4, segments_max);
    EXPECT_EQ(chunks_alive, after_large);
}

TEST_F(WorkQueueTest, NoMemoryIsAnAnswerAndLeavesTheQueueWhole) {
    std::uint32_t number = 0;
    std::deque<Entry> model;
    for (int round = 0; round < 50; ++round) {
        // A large descriptor wants several chunks: let the first, second, ... of them fail.
        chunks_allowed = round % 7;
        for (const std::uint32_t count : {segments_max, 1U, 9U}) {
            const Status posted = post(number, count);
            ASSERT_TRUE(posted == Status::success || posted == Status::error_resource);
            if (posted == Status::success) model.push_back({number++, count});
        }
        chunks_allowed = 1 << 30;
        while (model.size() > static_cast<std::size_t>(round % 3)) {
            ASSERT_NO_FATAL_FAILURE(finish(model.front())) << round;
            model.pop_front();
        }
    }
    EXPECT_GT(number, 50U);
}

TEST_F(WorkQueueTest, NoMemoryAtTheVeryBeginning) {
    WorkQueue queue;
    chunks_allowed = 0;
    EXPECT_FALSE(queue.prepare());
    chunks_allowed = 1;
    EXPECT_TRUE(queue.prepare());
}

TEST_F(WorkQueueTest, AnAttemptThatFailedLeavesItsChunksForTheNext) {
    int attempts = 0;
    do {
        chunks_allowed = 1;
        ASSERT_LE(++attempts, 5);
    } while (post(1, segments_max) != Status::success);
    EXPECT_EQ(chunks_alive, 5) << "64 cells";
    EXPECT_EQ(attempts, 4) << "the first chunk was there";
    ASSERT_NO_FATAL_FAILURE(finish({1, segments_max}));
}
#endif

TEST_F(WorkQueueTest, ResetMakesItNew) {
    for (std::uint32_t n = 0; n < 100; ++n) ASSERT_EQ(post(n, 9), Status::success);
    queue_.reset();
    EXPECT_EQ(chunks_alive, 0);
    queue_.reset();
    ASSERT_TRUE(queue_.prepare());
    EXPECT_TRUE(queue_.empty());
    EXPECT_EQ(queue_.completed_count(), 0U);
    ASSERT_EQ(post(5, 9), Status::success);
    ASSERT_NO_FATAL_FAILURE(finish({5, 9}));
}

TEST_F(WorkQueueTest, MatchesAModelUnderRandomUse) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        queue_.reset();
        ASSERT_TRUE(queue_.prepare());
        Random random(seed);
        std::deque<Entry> entries;  // posted and not taken
        std::size_t started = 0;
        std::size_t completed = 0;
        std::uint32_t number = 0;
        std::uint32_t taken_count = 0;
        const auto limit = static_cast<std::uint32_t>(random.between(1, 200));
        const bool large = random.chance(50);
        for (int step = 0; step < 4000; ++step) {
            // Weights that let the queue fill up, then run dry, and so on.
            const bool filling = step / 400 % 2 == 0;
            const std::uint64_t dice = random.below(10);
            if (dice < (filling ? 5U : 2U)) {
                const auto count = static_cast<std::uint32_t>(
                    random.chance(70) ? random.below(4) : random.below(large ? 253 : 20));
                const Status posted = post(number, count, limit);
                ASSERT_EQ(posted,
                          entries.size() == limit ? Status::error_resource : Status::success);
                if (posted == Status::success) entries.push_back({number++, count});
            } else if (dice < 7) {
                ASSERT_EQ(queue_.has_current(), started != entries.size());
                if (queue_.has_current()) {
                    ASSERT_NO_FATAL_FAILURE(expect_entry(queue_.current(), entries[started]));
                    queue_.start_next();
                    ++started;
                }
            } else if (dice < 9) {
                ASSERT_EQ(queue_.has_started(), completed != started);
                if (queue_.has_started()) {
                    ASSERT_NO_FATAL_FAILURE(expect_entry(queue_.oldest(), entries[completed]));
                    queue_.complete_oldest();
                    ++completed;
                }
            } else {
                for (std::uint64_t n = random.below(4); n > 0; --n) {
                    Taken taken;
                    const bool took = queue_.take(taken);
                    ASSERT_EQ(took, completed != 0);
                    if (!took) break;
                    ASSERT_EQ(taken.descriptor, &descriptors_[entries.front().number % depth]);
                    ASSERT_EQ(taken.status, entries.front().number + 4);
                    entries.pop_front();
                    --completed;
                    --started;
                    ++taken_count;
                }
            }
            ASSERT_TRUE(queue_.is_in_order());
            ASSERT_EQ(queue_.empty(), entries.empty());
            ASSERT_EQ(queue_.has_done(), completed != 0);
            ASSERT_EQ(queue_.has_outstanding(), completed != entries.size());
            ASSERT_EQ(queue_.taken_count(), taken_count);
            ASSERT_EQ(queue_.completed_count(), taken_count + completed);
        }
    }
}

TEST_F(WorkQueueTest, ThreePartiesInThreeThreads) {
    constexpr std::uint32_t total = 20'000;
    const auto count_of = [](std::uint32_t number) { return number * 2654435761U % 40; };
    std::thread nic([&] {
        for (std::uint32_t number = 0; number < total; ++number) {
            for (unsigned spins = 0; !queue_.has_current(); ++spins) {
                relax(spins);
                std::this_thread::yield();
            }
            SegmentWalk walk(queue_.current());
            for (const Segment& expected : segments_of(number, count_of(number)))
                ASSERT_TRUE(equal(walk.next(), expected)) << number;
            ASSERT_TRUE(walk.done());
            queue_.start_next();
            queue_.complete_oldest();
        }
    });
    std::thread taker([&] {
        for (std::uint32_t number = 0; number < total;) {
            Taken taken;
            if (!queue_.take(taken)) {
                std::this_thread::yield();
                continue;
            }
            ASSERT_EQ(taken.status, number + 4);
            ++number;
        }
    });
    for (std::uint32_t number = 0; number < total;) {
        if (post(number, count_of(number), 64) == Status::success) {
            ++number;
        } else {
            std::this_thread::yield();
        }
    }
    nic.join();
    taker.join();
    EXPECT_TRUE(queue_.empty());
}

TEST_F(WorkQueueTest, BytesAreWalkedInPiecesOfAnySize) {
    Random random(3);
    std::vector<std::byte> memory(4096);
    for (int round = 0; round < 300; ++round) {
        const auto count = static_cast<std::uint32_t>(random.below(30));
        std::vector<Segment> segments(count);
        std::vector<std::byte*> bytes;
        for (std::uint32_t n = 0; n < count; ++n) {
            std::byte* begin = memory.data() + random.below(4000);
            const auto length =
                static_cast<std::uint32_t>(random.chance(20) ? 0 : random.below(96));
            segments[n] = {reinterpret_cast<std::uintptr_t>(begin), n + 1, length};
            for (std::uint32_t at = 0; at < length; ++at) bytes.push_back(begin + at);
        }
        ControlSegment control{};
        control.segment_count = static_cast<std::uint16_t>(count);
        {
            const WorkQueue::Lock::Guard guard(queue_.post_lock());
            ASSERT_EQ(queue_.post(descriptors_.data(), 1, control, segments.data(), 0, depth),
                      Status::success);
        }
        for (const std::uint32_t first : {0U, 1U}) {
            std::size_t skipped = first == 1 && count > 0 ? segments[0].length : 0;
            ByteWalk walk(queue_.current(), first);
            std::vector<std::byte*> walked;
            while (skipped + walked.size() < bytes.size()) {
                const std::size_t left = bytes.size() - skipped - walked.size();
                const std::size_t piece = random.between(1, left);
                std::size_t here = 0;
                walk.take(piece, [&](std::byte* at, std::size_t length) {
                    ASSERT_GT(length, 0U);
                    const Segment& segment = segments.at(walk.handle() - 1);
                    ASSERT_LE(segment.address, reinterpret_cast<std::uintptr_t>(at));
                    ASSERT_GE(segment.address + segment.length,
                              reinterpret_cast<std::uintptr_t>(at) + length);
                    for (std::size_t n = 0; n < length; ++n) walked.push_back(at + n);
                    here += length;
                });
                ASSERT_EQ(here, piece);
            }
            walk.take(0, [](std::byte*, std::size_t) { FAIL() << "nothing was asked for"; });
            ASSERT_EQ(walked,
                      std::vector<std::byte*>(bytes.begin() + static_cast<std::ptrdiff_t>(skipped),
                                              bytes.end()));
        }
        queue_.start_next();
        queue_.complete_oldest();
        Taken taken;
        ASSERT_TRUE(queue_.take(taken));
    }
}

TEST(Descriptor, IsReadMemberByMember) {
    Descriptor from{};
    from.control.segment_count = 2;
    from.control.control = 12;
    from.control.reserved = 3;
    from.control.immediate_data = 4;
    from.control.length = 5;
    from.segments[0] = {6, 7, 8};
    from.segments[1] = {9, 10, 11};
    const ControlSegment control = read(from.control);
    EXPECT_EQ(control.segment_count, 2);
    EXPECT_EQ(control.control, 12);
    EXPECT_EQ(control.reserved, 3U);
    EXPECT_EQ(control.immediate_data, 4U);
    EXPECT_EQ(control.length, 5U);
    for (int n = 0; n < 2; ++n) {
        const Segment segment = read(from.segments[n]);
        EXPECT_EQ(segment.address, from.segments[n].address);
        EXPECT_EQ(segment.handle, from.segments[n].handle);
        EXPECT_EQ(segment.length, from.segments[n].length);
    }
}

using WorkQueueDeathTest = WorkQueueTest;

TEST_F(WorkQueueDeathTest, CompletingWhatWasNotStartedStopsTheProgram) {
    ASSERT_EQ(post(1, 1), Status::success);
    EXPECT_DEATH(queue_.complete_oldest(), "broken invariant");
}

}  // namespace
}  // namespace via::queue::work_queue_test
