#include <gtest/gtest.h>
#include <cstring>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "device/shm/in_order.hpp"
#include "device/shm/ring_writer.hpp"

namespace via::device::shm::mailbox_test {
namespace {

constexpr std::uint32_t slots = 8;
constexpr std::uint32_t arena_size = 1U << 15;

/// One side of a pair that shares a mailbox, with a ring each way, over ordinary memory.
struct Side {
    Slot ring[slots]{};
    std::vector<std::byte> arena = std::vector<std::byte>(arena_size);
    std::vector<std::uint64_t> shadow = std::vector<std::uint64_t>(slots);
    Atomic<std::uint32_t> head{0};  ///< of the peer's ring, given back
    RingWriter writer;
    RingReader reader;
    Mailbox mailbox;
    std::uint32_t sent = 0, received = 0;

    void meet(Side& peer, MailboxLayout& shared, bool begins) {
        writer.attach(ring, slots, arena.data(), arena_size, shadow.data(), &peer.head);
        reader.attach(peer.ring, slots, peer.arena.data(), arena_size, &head);
        mailbox.attach(&shared.line, shared.room, begins);
    }
    bool send_by_mailbox() {
        if (!mailbox.ours() || !writer.all_published()) return false;
        const std::uint64_t number = ++sent;
        mailbox.put(number, ~number, reinterpret_cast<const std::byte*>(&number), sizeof number,
                    writer.published());
        return true;
    }
    bool send_by_ring() {
        const std::uint64_t number = sent + 1;
        const auto* bytes = reinterpret_cast<const std::byte*>(&number);
        if (!writer.put(number, ~number, bytes, sizeof number)) {
            EXPECT_NE(writer.refresh(), RingWriter::Refresh::lie);
            if (!writer.put(number, ~number, bytes, sizeof number)) return false;
        }
        ++sent;
        return true;
    }
    /// Takes up to `room` frames and holds that they are the next ones. Whether any came.
    bool receive(std::size_t room) {
        Frame frames[slots];
        const Arrival arrival = take_in_order(reader, mailbox, std::span(frames).first(room), 7);
        EXPECT_NE(arrival.why, RingReader::Take::lie);
        for (std::size_t n = 0; n < arrival.count; ++n) {
            std::uint64_t words[3];
            std::memcpy(words, frames[n].bytes, sizeof words);
            ++received;
            EXPECT_EQ(frames[n].length, sizeof words);
            EXPECT_EQ(words[0], received);
            EXPECT_EQ(words[1], ~std::uint64_t{received});
            EXPECT_EQ(words[2], received);
            EXPECT_EQ(frames[n].path, 7U);
        }
        reader.release();
        if (reader.unannounced()) reader.announce();
        return arrival.count != 0;
    }
};

struct Pair {
    MailboxLayout shared{};
    Slot& line = shared.line;
    Side a, b;
    Pair() {
        a.meet(b, shared, true);
        b.meet(a, shared, false);
    }
};

/// Both ends of a mailbox alone.
struct Ends {
    MailboxLayout shared{};
    Mailbox first, second;
    Ends() {
        first.attach(&shared.line, shared.room, true);
        second.attach(&shared.line, shared.room, false);
    }
};

TEST(ShmMailbox, CarriesEveryLengthToAndFro) {
    Ends ends;
    std::vector<std::byte> bytes(payload_max);
    std::vector<std::uint32_t> lengths;
    for (std::uint32_t length = 0; length < 300; ++length) lengths.push_back(length);
    for (const std::uint32_t length : {1000U, 4095U, 4096U, payload_max - 1, payload_max})
        lengths.push_back(length);
    const auto once = lengths.size();
    lengths.insert(lengths.end(), lengths.begin(), lengths.end());
    for (std::uint32_t n = 0; n < lengths.size(); ++n) {
        Mailbox& from = n % 2 == 0 ? ends.first : ends.second;
        Mailbox& to = n % 2 == 0 ? ends.second : ends.first;
        const std::uint32_t length = lengths[n];
        for (std::uint32_t i = 0; i < length; ++i) bytes[i] = std::byte(n * 31 + i);
        ASSERT_TRUE(from.ours());
        ASSERT_FALSE(to.ours());
        ASSERT_FALSE(to.look().is_there);
        const std::uint32_t split = length / 3;
        if (n < once)
            from.put(n, ~n, bytes.data(), length, n);
        else
            from.put_pieces(n, ~n, {bytes.data(), split, bytes.data() + split, length - split}, n);
        EXPECT_FALSE(from.ours());
        EXPECT_FALSE(from.look().is_there) << "it is not for us";
        const Mailbox::Look look = to.look();
        ASSERT_TRUE(look.is_there);
        EXPECT_EQ(look.behind(n), 0);
        Frame frame;
        ASSERT_TRUE(to.take(look, frame));
        std::uint64_t words[2];
        std::memcpy(words, frame.bytes, sizeof words);
        EXPECT_EQ(words[0], n);
        EXPECT_EQ(words[1], std::uint64_t{~n});
        const bool in_line = length <= slot_room - sizeof words;
        EXPECT_EQ(frame.length, sizeof words + (in_line ? length : 0));
        EXPECT_EQ(frame.payload, in_line ? nullptr : ends.shared.room);
        EXPECT_EQ(frame.payload_length, in_line ? 0 : length);
        const std::byte* const payload = in_line ? frame.bytes + sizeof words : frame.payload;
        EXPECT_EQ(std::memcmp(payload, bytes.data(), length), 0) << length;
        EXPECT_EQ(to.count(), n + 1);
        EXPECT_FALSE(to.look().is_there) << "it is taken once";
    }
}

TEST(ShmMailbox, PositionsAreComparedAroundTheirEnd) {
    Ends ends;
    const std::uint64_t number = 0;
    ends.first.put(1, 2, reinterpret_cast<const std::byte*>(&number), 8, 0xFFFC0003);
    const Mailbox::Look look = ends.second.look();
    EXPECT_EQ(look.behind(0xFFFC0003), 0);
    EXPECT_EQ(look.behind(0xFFFBFFFE), 5);
    EXPECT_EQ(look.behind(0xFFFC0005), -2);
    EXPECT_EQ(look.behind(0xFFFC0003 - Layout::ring_slots_max),
              static_cast<std::int32_t>(Layout::ring_slots_max));
}

TEST(ShmMailbox, AFrameComesBehindThoseOfTheRingThatWentBefore) {
    Pair pair;
    ASSERT_TRUE(pair.a.send_by_ring());
    ASSERT_TRUE(pair.a.send_by_ring());
    ASSERT_TRUE(pair.a.send_by_mailbox());
    ASSERT_TRUE(pair.a.send_by_ring());
    EXPECT_FALSE(pair.a.send_by_mailbox()) << "it is the peer's now";
    EXPECT_TRUE(is_pending(pair.b.reader, pair.b.mailbox));
    EXPECT_TRUE(pair.b.receive(1));
    EXPECT_TRUE(pair.b.receive(slots)) << "the second, not the one behind the mailbox";
    EXPECT_EQ(pair.b.received, 2U);
    EXPECT_TRUE(pair.b.receive(slots));
    EXPECT_EQ(pair.b.received, 3U);
    EXPECT_TRUE(pair.b.receive(slots));
    EXPECT_EQ(pair.b.received, 4U);
    EXPECT_FALSE(is_pending(pair.b.reader, pair.b.mailbox));
    EXPECT_FALSE(pair.b.receive(slots));
}

TEST(ShmMailbox, AnyMixtureArrivesInOrder) {
    Pair pair;
    Random random(1);
    for (int step = 0; step < 100000; ++step) {
        Side& side = random.below(2) == 0 ? pair.a : pair.b;
        switch (random.below(4)) {
            case 0:
                side.send_by_mailbox();
                break;
            case 1:
                side.send_by_ring();
                break;
            default:
                side.receive(1 + random.below(slots));
        }
        ASSERT_FALSE(HasFailure()) << step;
    }
    while (pair.a.receive(slots) || pair.b.receive(slots)) {
    }
    EXPECT_EQ(pair.a.received, pair.b.sent);
    EXPECT_EQ(pair.b.received, pair.a.sent);
    EXPECT_GT(pair.a.mailbox.count(), 1000U);
}

TEST(ShmMailbox, TwoThreadsKeepTheOrder) {
    Pair pair;
    constexpr std::uint32_t frames = 200000;
    const auto run = [](Side& side, std::uint64_t seed) {
        Random random(seed);
        for (unsigned spins = 0; side.sent < frames || side.received < frames; ++spins) {
            if (side.sent < frames && random.below(2) == 0 &&
                (random.below(3) == 0 ? side.send_by_ring() : side.send_by_mailbox()))
                spins = 0;
            if (side.receive(1 + random.below(slots))) spins = 0;
            if (spins > 1000) std::this_thread::yield();
        }
    };
    std::thread other([&] { run(pair.b, 2); });
    run(pair.a, 3);
    other.join();
    EXPECT_EQ(pair.a.received, frames);
    EXPECT_EQ(pair.b.received, frames);
}

TEST(ShmMailbox, ALiarDelaysItsOwnFrameAtMost) {
    Pair pair;
    ASSERT_TRUE(pair.a.send_by_mailbox());
    const std::uint64_t good = pair.line.words[0].load();
    // Too long for line and room, up to all that the field can say.
    for (std::uint64_t length = 16 + payload_max + 1; length < 1U << 14; ++length) {
        pair.line.words[0].store((good & ~(0x3FFFULL << 32)) | length << 32);
        Frame frames[2];
        const Arrival arrival = take_in_order(pair.b.reader, pair.b.mailbox, frames, 0);
        EXPECT_EQ(arrival.why, RingReader::Take::lie) << length;
        EXPECT_EQ(arrival.count, 0U);
    }
    // Behind frames that never come: nothing is pending, and the ring goes on.
    pair.line.words[0].store(good | 5ULL << 46);
    EXPECT_FALSE(is_pending(pair.b.reader, pair.b.mailbox));
    EXPECT_FALSE(pair.b.receive(2));
    ASSERT_TRUE(pair.a.send_by_ring());
    pair.b.received = 1;  // the one that waits
    EXPECT_TRUE(pair.b.receive(2));
    // One that sends out of its turn sends one more.
    pair.line.words[0].store(good);
    pair.b.received = 0;
    EXPECT_TRUE(pair.b.receive(2));
    pair.line.words[0].store(good + 1);
    pair.b.received = 0;
    EXPECT_TRUE(pair.b.receive(2));
    EXPECT_TRUE(pair.b.mailbox.ours());
}

TEST(ShmMailbox, WaitsNoLongerThanAnswersTake) {
    Mailbox mailbox;
    const auto rounds_at = [&] { return mailbox.patience(); };
    const std::uint32_t first = rounds_at();
    ASSERT_GT(first, 0U);
    for (int n = 0; n < 1000; ++n) mailbox.judge(true);
    EXPECT_EQ(rounds_at(), 0U) << "each look finds it: it was there before";
    mailbox.judge(false);
    EXPECT_GT(rounds_at(), 0U);
    std::uint32_t longest = 0;
    int misses = 0;
    for (; rounds_at() != 0; ++misses) {
        longest = std::max(longest, rounds_at());
        mailbox.judge(false);
        ASSERT_LT(misses, 1000) << "who never answers in time is not waited for";
    }
    EXPECT_LE(longest, 2048U) << "less than a microsecond";
    int without = 0;
    for (; rounds_at() == 0; ++without) mailbox.judge(false);
    EXPECT_GT(without, 10 * misses) << "and tried again seldom";
    EXPECT_EQ(rounds_at(), first);
}

}  // namespace
}  // namespace via::device::shm::mailbox_test
