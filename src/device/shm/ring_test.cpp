#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "device/shm/ring_reader.hpp"
#include "device/shm/ring_writer.hpp"

namespace via::device::shm::ring_test {
namespace {

constexpr std::uint32_t arena_size = 1U << 15;

/// Both ends over ordinary memory; the test may write into it as a hostile peer would.
struct Ring {
    explicit Ring(std::uint32_t slots, std::uint32_t first = 0)
        : memory(new Slot[slots]), arena(arena_size), shadow(slots) {
        head.store(first, memory_order_relaxed);
        writer.attach(memory.get(), slots, arena.data(), arena_size, shadow.data(), &head, first);
        reader.attach(memory.get(), slots, arena.data(), arena_size, &head, first);
    }

    bool send(std::uint32_t header, std::uint32_t payload, unsigned seed) {
        FrameSlot slot;
        if (!writer.reserve(header, payload, slot)) {
            if (writer.refresh() != RingWriter::Refresh::moved) return false;
            if (!writer.reserve(header, payload, slot)) return false;
        }
        fill(slot.header, header, seed);
        fill(slot.payload, payload, seed + 7);
        return true;
    }

    static void fill(std::byte* to, std::uint32_t length, unsigned seed) {
        for (std::uint32_t i = 0; i < length; ++i) to[i] = std::byte(seed * 31 + i);
    }
    static bool holds(const std::byte* at, std::uint32_t length, unsigned seed) {
        for (std::uint32_t i = 0; i < length; ++i) {
            if (at[i] != std::byte(seed * 31 + i)) return false;
        }
        return true;
    }

    void expect(std::uint32_t header, std::uint32_t payload, unsigned seed) {
        Frame frame;
        ASSERT_EQ(reader.take(frame), RingReader::Take::frame);
        if (header + payload <= slot_room) {
            EXPECT_EQ(frame.length, header + payload);
            EXPECT_EQ(frame.payload, nullptr);
            EXPECT_TRUE(holds(frame.bytes + header, payload, seed + 7));
        } else {
            EXPECT_EQ(frame.length, header);
            ASSERT_NE(frame.payload, nullptr);
            EXPECT_EQ(frame.payload_length, payload);
            EXPECT_TRUE(holds(frame.payload, payload, seed + 7));
        }
        EXPECT_TRUE(holds(frame.bytes, header, seed));
    }
    void give_back() {
        reader.release();
        reader.announce();
    }

    /// Writes a published slot, byte for byte as a liar likes.
    void forge(std::uint32_t position, std::uint64_t lengths, std::uint32_t offset,
               std::uint32_t length) {
        Slot& slot = memory[position];
        slot.words[arena_word].store(std::uint64_t{length} << 32 | offset);
        slot.words[0].store(lengths << 32 | (position + 1));
    }

    std::unique_ptr<Slot[]> memory;
    std::vector<std::byte> arena;
    std::vector<std::uint64_t> shadow;
    Atomic<std::uint32_t> head;
    RingWriter writer;
    RingReader reader;
};

TEST(ShmRing, CarriesEveryInlineSizeAndTheFirstArenaSizes) {
    Ring ring(16);
    unsigned seed = 0;
    for (std::uint32_t header = 0; header <= header_max; header += 4) {
        for (std::uint32_t payload = 0; payload <= 130; ++payload) {
            ASSERT_TRUE(ring.send(header, payload, ++seed));
            ring.writer.transmit();
            ring.expect(header, payload, seed);
            ring.give_back();
        }
    }
}

TEST(ShmRing, PutIsReservingFillingAndTransmittingInOne) {
    Ring ring(8, ~0U - 20);
    for (std::uint32_t round = 0; round < 3; ++round) {
        for (std::uint32_t payload = 0; payload <= slot_room - 16; ++payload) {
            std::byte bytes[slot_room];
            Ring::fill(bytes, 16, payload);
            Ring::fill(bytes + 16, payload, payload + 7);
            std::uint64_t words[2];
            std::memcpy(words, bytes, sizeof words);
            ASSERT_TRUE(ring.writer.put(words[0], words[1], bytes + 16, payload)) << payload;
            EXPECT_FALSE(ring.writer.transmit()) << "it is published";
            ring.expect(16, payload, payload);
            ring.give_back();
            ASSERT_NE(ring.writer.refresh(), RingWriter::Refresh::lie);
            // Others in between, with and without the arena.
            ASSERT_TRUE(ring.send(24, 4 * payload, payload));
            EXPECT_FALSE(ring.writer.put(1, 2, bytes, 8)) << "another one is reserved";
            ASSERT_TRUE(ring.writer.transmit());
            ring.expect(24, 4 * payload, payload);
            ring.give_back();
        }
    }
    EXPECT_FALSE(ring.writer.put(1, 2, nullptr, slot_room - 15)) << "it does not fit a slot";
}

TEST(ShmRing, KeptFramesArePublishedTogetherAndInOrder) {
    Ring ring(32, ~0U - 20);
    std::uint32_t payload = 0;  // the length of the next frame, which tells it from others
    std::uint32_t taken = 0;
    const auto keep = [&](bool at_once) {
        std::byte bytes[slot_room];
        Ring::fill(bytes, 16, payload);
        Ring::fill(bytes + 16, payload, payload + 7);
        std::uint64_t words[2];
        std::memcpy(words, bytes, sizeof words);
        ASSERT_TRUE(at_once ? ring.writer.put(words[0], words[1], bytes + 16, payload)
                            : ring.writer.keep(words[0], words[1], bytes + 16, payload));
        payload = payload == slot_room - 16 ? 0 : payload + 1;
    };
    const auto expect_all = [&] {
        for (; taken != payload; taken = taken == slot_room - 16 ? 0 : taken + 1)
            ring.expect(16, taken, taken);
        Frame frame;
        EXPECT_EQ(ring.reader.take(frame), RingReader::Take::empty);
        ring.give_back();
        ASSERT_NE(ring.writer.refresh(), RingWriter::Refresh::lie);
    };
    for (int round = 0; round < 60; ++round) {
        keep(false);
        keep(false);
        EXPECT_FALSE(ring.reader.pending());
        ring.writer.publish_kept();
        expect_all();
        ring.writer.publish_kept();
        expect_all();
        keep(false);
        keep(true);
        expect_all();
        for (int n = 0; n < 8; ++n) {
            EXPECT_FALSE(ring.reader.pending());
            keep(false);
        }
        expect_all();
        // Before others that were reserved behind them.
        keep(false);
        ASSERT_TRUE(ring.send(24, 300, 5));
        EXPECT_FALSE(ring.writer.keep(1, 2, nullptr, 0)) << "another one is reserved";
        EXPECT_FALSE(ring.writer.put(1, 2, nullptr, 0)) << "another one is reserved";
        ASSERT_TRUE(ring.writer.transmit());
        ring.expect(16, taken, taken);
        taken = payload;
        ring.expect(24, 300, 5);
        expect_all();
    }
}

TEST(ShmRing, KeptFramesTakeRoom) {
    Ring ring(4);
    const std::byte bytes[8]{};
    for (int n = 0; n < 4; ++n) ASSERT_TRUE(ring.writer.keep(1, 2, bytes, 8));
    EXPECT_FALSE(ring.writer.keep(1, 2, bytes, 8));
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::same);
    ring.writer.publish_kept();
    Frame frame;
    ASSERT_EQ(ring.reader.take(frame), RingReader::Take::frame);
    ring.give_back();
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::moved);
    EXPECT_TRUE(ring.writer.keep(1, 2, bytes, 8));
    EXPECT_FALSE(ring.writer.put(1, 2, bytes, 8));
}

// Their last words are stored to while the peer still may read what stands there.
TEST(ShmRing, LinesThatAreTakenInAdvanceAreFree) {
    for (std::uint32_t unread = 1; unread <= 32; ++unread) {
        Ring ring(32);
        for (std::uint32_t sent = 0, read = 0; sent < 200; ++sent) {
            if (sent - read == unread) {
                ring.expect(16, slot_room - 16, read++);
                ring.give_back();
                ASSERT_NE(ring.writer.refresh(), RingWriter::Refresh::lie);
            }
            ASSERT_TRUE(ring.send(16, slot_room - 16, sent)) << unread;
            ASSERT_TRUE(ring.writer.transmit());
        }
    }
}

TEST(ShmRing, PutFindsNoRoomInAFullRing) {
    Ring ring(4);
    const std::byte bytes[8]{};
    for (int n = 0; n < 4; ++n) ASSERT_TRUE(ring.writer.put(1, 2, bytes, 8));
    EXPECT_FALSE(ring.writer.put(1, 2, bytes, 8));
    Frame frame;
    ASSERT_EQ(ring.reader.take(frame), RingReader::Take::frame);
    ring.give_back();
    EXPECT_FALSE(ring.writer.put(1, 2, bytes, 8)) << "it looks for none";
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::moved);
    EXPECT_TRUE(ring.writer.put(1, 2, bytes, 8));
    ring.writer.close();
    EXPECT_FALSE(ring.writer.put(1, 2, bytes, 8));
}

TEST(ShmRing, SeveralAreTakenAtOnceUpToALie) {
    Ring ring(8);
    Frame frames[3];
    std::size_t count = 9;
    EXPECT_EQ(ring.reader.take(frames, 5, count), RingReader::Take::empty);
    EXPECT_EQ(count, 0U);
    for (unsigned n = 0; n < 5; ++n) ASSERT_TRUE(ring.send(16, 8 * n, n));
    ring.writer.transmit();
    EXPECT_EQ(ring.reader.take(frames, 5, count), RingReader::Take::frame) << "there may be more";
    ASSERT_EQ(count, 3U);
    for (unsigned n = 0; n < 3; ++n) {
        EXPECT_EQ(frames[n].path, 5U);
        EXPECT_EQ(frames[n].length, 16 + 8 * n);
        EXPECT_TRUE(Ring::holds(frames[n].bytes, 16, n));
        EXPECT_TRUE(Ring::holds(frames[n].bytes + 16, 8 * n, n + 7));
    }
    ring.forge(4, slot_room + 1, 0, 0);
    EXPECT_EQ(ring.reader.take(frames, 5, count), RingReader::Take::lie);
    EXPECT_EQ(count, 1U) << "those before it are there";
    EXPECT_EQ(ring.reader.position(), 4U);
}

TEST(ShmRing, NothingIsSeenBeforeTransmit) {
    Ring ring(8);
    ASSERT_TRUE(ring.send(24, 8, 1));
    Frame frame;
    EXPECT_FALSE(ring.reader.pending());
    EXPECT_EQ(ring.reader.take(frame), RingReader::Take::empty);
    EXPECT_TRUE(ring.writer.transmit());
    EXPECT_TRUE(ring.reader.pending());
    ring.expect(24, 8, 1);
    EXPECT_FALSE(ring.writer.transmit());
}

TEST(ShmRing, IsFullAfterItsSlotsAndGoesOnAfterRelease) {
    Ring ring(8);
    for (unsigned i = 0; i < 8; ++i) ASSERT_TRUE(ring.send(24, 8, i));
    EXPECT_FALSE(ring.send(24, 8, 99));
    ring.writer.transmit();
    for (unsigned i = 0; i < 8; ++i) ring.expect(24, 8, i);
    EXPECT_FALSE(ring.send(24, 8, 99)) << "taken, but not given back";
    ring.give_back();
    EXPECT_TRUE(ring.send(24, 8, 99));
    ring.writer.transmit();
    ring.expect(24, 8, 99);
}

/// The reference of a payload is stored late: before the next one's, or when it is published.
TEST(ShmRing, EachOfSeveralPayloadsIsFound) {
    Ring ring(16);
    const std::uint32_t lengths[] = {300, 8, 4096, 64, 1, 2000, 100};
    unsigned seed = 2;
    for (const std::uint32_t length : lengths) ASSERT_TRUE(ring.send(24, length, seed++));
    ring.writer.transmit();
    seed = 2;
    for (const std::uint32_t length : lengths) ring.expect(24, length, seed++);
}

TEST(ShmRing, LinesAreColdAfterPayloadsUntilTheyAreWarmed) {
    Ring ring(16);
    EXPECT_FALSE(ring.writer.cold());
    ASSERT_TRUE(ring.send(24, 8, 1));
    EXPECT_FALSE(ring.writer.cold()) << "nothing in the arena";
    for (unsigned n = 0; n < 20; ++n) {  // wherever the arena stands, full or empty
        ASSERT_TRUE(ring.send(24, payload_max, n));
        EXPECT_TRUE(ring.writer.cold());
        ring.writer.warm();
        EXPECT_FALSE(ring.writer.cold());
        ring.writer.transmit();
        if (n == 0) ring.expect(24, 8, 1);
        ring.expect(24, payload_max, n);
        ring.give_back();
    }
    ASSERT_TRUE(ring.send(24, payload_max, 1));
    ring.writer.will_stream();
    EXPECT_FALSE(ring.writer.cold()) << "no line of it is in a cache";
}

TEST(ShmRing, OnlyTheFirstTransmitAfterAFrameCameIsAnAnswer) {
    Ring ring(8);
    EXPECT_FALSE(ring.writer.answering());
    ring.writer.expect_answer();
    ring.writer.expect_answer();
    EXPECT_TRUE(ring.writer.answering());
    EXPECT_FALSE(ring.writer.transmit()) << "nothing reserved";
    EXPECT_TRUE(ring.writer.answering());
    FrameSlot slot;
    for (int n = 0; n < 2; ++n) {
        ASSERT_TRUE(ring.writer.reserve(8, 0, slot));
        EXPECT_TRUE(ring.writer.transmit());
        EXPECT_FALSE(ring.writer.answering());
    }
}

TEST(ShmRing, PagesAreBroughtOnceALapAndAgainWhenTheyWereGivenBack) {
    Ring ring(8);
    std::vector<bool> there(arena_size);
    const auto bring = [&] {
        while (ring.writer.lacks_pages()) {
            for (const std::byte& byte : ring.writer.lacking_pages())
                there[static_cast<std::size_t>(&byte - ring.arena.data())] = true;
        }
    };
    for (int life = 0; life < 3; ++life) {
        there.assign(arena_size, false);
        for (std::uint32_t sent = 0; sent < 2 * arena_size; sent += 4096) {
            FrameSlot slot;
            while (!ring.writer.reserve(16, 4096, slot)) ring.writer.refresh();
            bring();
            const auto begin = static_cast<std::size_t>(slot.payload - ring.arena.data());
            for (std::size_t at = begin; at < begin + 4096; ++at) ASSERT_TRUE(there[at]) << at;
            ring.writer.transmit();
            Frame frame;
            ASSERT_EQ(ring.reader.take(frame), RingReader::Take::frame);
            ring.give_back();
        }
        EXPECT_FALSE(ring.writer.lacks_pages());
        ring.writer.arena_given_back();
        EXPECT_FALSE(ring.writer.lacks_pages()) << "nothing is reserved";
    }
}

/// The furthest byte of an arena of 4 MB that `rounds` bursts of `burst` payloads lie at. Each
/// burst is taken before the next one.
std::size_t reach_of(std::uint32_t rounds, std::uint32_t burst, std::uint32_t length) {
    constexpr std::uint32_t slots = 1024, bytes = 1U << 22;
    std::vector<Slot> ring(slots);
    std::vector<std::byte> arena(bytes);
    std::vector<std::uint64_t> shadow(slots);
    Atomic<std::uint32_t> head{0};
    RingWriter writer;
    writer.attach(ring.data(), slots, arena.data(), bytes, shadow.data(), &head);
    std::size_t reach = 0;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        for (std::uint32_t n = 0; n < burst; ++n) {
            FrameSlot slot;
            if (!writer.reserve(16, length, slot)) {
                EXPECT_EQ(writer.refresh(), RingWriter::Refresh::moved);
                EXPECT_TRUE(writer.reserve(16, length, slot));
            }
            const auto begin = static_cast<std::size_t>(slot.payload - arena.data());
            reach = std::max(reach, begin + length);
            EXPECT_TRUE(writer.transmit());
        }
        head.store(writer.published(), memory_order_release);
    }
    return reach;
}

TEST(ShmRing, SmallPayloadsStayWhereTheArenaBeginsWhereThePeerKeepsUp) {
    constexpr std::size_t kib = 1024;
    EXPECT_EQ(reach_of(20'000, 1, 64), 256 * kib);
    EXPECT_EQ(reach_of(1000, 300, 256), 256 * kib);
    EXPECT_EQ(reach_of(1000, 700, 256), 512 * kib) << "half a lap must be there for the next ones";
    EXPECT_EQ(reach_of(20'000, 1, 1024), 1024 * kib) << "as much as the slots can refer to";
    EXPECT_EQ(reach_of(5000, 1, 1088), 4096 * kib / 1088 * 1088) << "large: all of it";
}

TEST(ShmRing, FramesBeforeTheArenaWasGivenBackDoNotTakeItsRoomAgain) {
    Ring ring(4);
    ASSERT_TRUE(ring.send(16, 64, 1));
    ring.writer.transmit();
    ring.expect(16, 64, 1);
    ring.reader.release();
    ring.reader.announce();
    ASSERT_EQ(ring.writer.refresh(), RingWriter::Refresh::moved);
    // These lie in slots, and remember where the arena stood.
    for (unsigned n = 0; n < 4; ++n) ASSERT_TRUE(ring.send(16, 8, n));
    ring.writer.transmit();
    ASSERT_TRUE(ring.writer.arena_idle());
    ring.writer.arena_given_back();
    for (unsigned n = 0; n < 4; ++n) {
        ring.expect(16, 8, n);
        ring.reader.release();
    }
    ring.reader.announce();
    FrameSlot slot;
    EXPECT_FALSE(ring.writer.reserve(16, 64, slot)) << "as far as the writer knows";
    ASSERT_EQ(ring.writer.refresh(), RingWriter::Refresh::moved);
    EXPECT_TRUE(ring.writer.arena_idle());
    for (std::uint32_t n = 0; n < arena_size / payload_max; ++n)
        EXPECT_TRUE(ring.writer.reserve(16, payload_max, slot)) << n;
}

TEST(ShmRing, PositionsWrapAround) {
    constexpr std::uint32_t slots = 8;
    Ring ring(slots, 0U - 5 * slots);
    unsigned sent = 0, taken = 0;
    for (int round = 0; round < 40; ++round) {
        while (ring.send(24, sent % 40, sent)) ++sent;
        ring.writer.transmit();
        const unsigned until = round % 2 == 0 ? sent : std::max(taken, sent - 3);
        for (; taken < until; ++taken) ring.expect(24, taken % 40, taken);
        ring.give_back();
    }
    EXPECT_GT(sent, 10 * slots);
}

TEST(ShmRing, ArenaWrapsAtEveryPhase) {
    Ring ring(64);
    Random random(4711);
    std::vector<std::uint32_t> sizes;
    std::size_t taken = 0;
    for (int round = 0; round < 3000; ++round) {
        for (;;) {
            const auto size = static_cast<std::uint32_t>(random.between(1, payload_max));
            if (!ring.send(24, size, static_cast<unsigned>(sizes.size()))) break;
            sizes.push_back(size);
        }
        ring.writer.transmit();
        const std::size_t until = taken + random.between(1, sizes.size() - taken);
        for (; taken < until; ++taken) {
            ring.expect(24, sizes[taken], static_cast<unsigned>(taken));
        }
        ring.give_back();
    }
    EXPECT_GT(sizes.size(), 3000U);
}

TEST(ShmRing, TheLargestPayloadFitsHoweverTheArenaStands) {
    for (std::uint32_t first = 64; first < arena_size; first += 64) {
        Ring ring(64);
        for (std::uint32_t left = first; left > 0;) {
            const std::uint32_t part = std::min(left, payload_max);
            ASSERT_TRUE(ring.send(8, part, 1)) << first;
            ring.writer.transmit();
            ring.expect(8, part, 1);
            ring.give_back();
            left -= part;
        }
        ASSERT_TRUE(ring.send(40, payload_max, 2)) << first;
        ring.writer.transmit();
        ring.expect(40, payload_max, 2);
    }
}

TEST(ShmRing, AnnouncementsAreDueAfterAQuarter) {
    Ring ring(16);
    for (unsigned i = 0; i < 4; ++i) ring.send(24, 8, i);
    ring.writer.transmit();
    for (unsigned i = 0; i < 3; ++i) ring.expect(24, 8, i);
    ring.reader.release();
    EXPECT_FALSE(ring.reader.announce_due());
    EXPECT_TRUE(ring.reader.unannounced());
    ring.expect(24, 8, 3);
    ring.reader.release();
    EXPECT_TRUE(ring.reader.announce_due());
    ring.reader.announce();
    EXPECT_FALSE(ring.reader.announce_due());
    EXPECT_FALSE(ring.reader.unannounced());
    ring.send(24, 8192, 5);
    ring.writer.transmit();
    ring.expect(24, 8192, 5);
    ring.reader.release();
    EXPECT_TRUE(ring.reader.announce_due()) << "a quarter of the arena";
}

TEST(ShmRing, LiesInASlotAreFound) {
    struct Lie {
        const char* what;
        std::uint64_t lengths;
        std::uint32_t offset, length;
        RingReader::Take expected;
    };
    constexpr auto lie = RingReader::Take::lie;
    constexpr auto fine = RingReader::Take::frame;
    constexpr std::uint64_t arena = arena_marker;
    const Lie lies[] = {
        {"longest inline", slot_room, 0, 0, fine},
        {"inline too long", slot_room + 1, 0, 0, lie},
        {"inline nearly the marker", 0xFFFE, 0, 0, lie},
        {"inline with header length", 1U << 16 | 8, 0, 0, lie},
        {"good", arena | 40U << 16, 0, payload_max, fine},
        {"header too long", arena | 41U << 16, 0, 8192, lie},
        {"header far too long", arena | 0xFFFFU << 16, 0, 8192, lie},
        {"no payload", arena | 24U << 16, 0, 0, lie},
        {"payload too long", arena | 24U << 16, 0, payload_max + 1, lie},
        {"payload of 4 GiB", arena | 24U << 16, 0, 0xFFFFFFFF, lie},
        {"not aligned", arena | 24U << 16, 1, 8, lie},
        {"last line", arena | 24U << 16, arena_size - 64, 64, fine},
        {"one byte over the end", arena | 24U << 16, arena_size - 64, 65, lie},
        {"behind the end", arena | 24U << 16, arena_size, 1, lie},
        {"far behind the end", arena | 24U << 16, 0xFFFFFFC0, 64, lie},
        {"wrapping around", arena | 24U << 16, 0xFFFFFFC0, 8192, lie},
    };
    for (const Lie& each : lies) {
        Ring ring(8);
        ring.forge(0, each.lengths, each.offset, each.length);
        Frame frame;
        EXPECT_EQ(ring.reader.take(frame), each.expected) << each.what;
        if (each.expected != fine) {
            EXPECT_EQ(ring.reader.position(), 0U) << each.what;
        } else if (frame.payload != nullptr) {
            EXPECT_GE(frame.payload, ring.arena.data()) << each.what;
            EXPECT_LE(frame.payload + frame.payload_length, ring.arena.data() + arena_size);
        }
    }
}

TEST(ShmRing, StampsOfOtherLapsDoNotMatch) {
    Ring ring(8);
    for (const std::uint32_t stamp : {0U, 2U, 8U, 9U, 0x80000001U, 0xFFFFFFFFU}) {
        ring.memory[0].words[0].store(std::uint64_t{8} << 32 | stamp);
        Frame frame;
        EXPECT_EQ(ring.reader.take(frame), RingReader::Take::empty) << stamp;
        EXPECT_FALSE(ring.reader.pending()) << stamp;
    }
}

TEST(ShmRing, RandomSlotsNeverLeadOutside) {
    Random random(99);
    for (int round = 0; round < 200000; ++round) {
        static Ring ring(8);
        const std::uint32_t position = ring.reader.position();
        Slot& slot = ring.memory[position & 7];
        std::uint64_t lengths = random.next() >> 32;
        if (random.chance(70)) lengths = (lengths & 0x3FFFFF) | arena_marker;
        std::uint64_t reference = random.next();
        if (random.chance(70)) reference &= 0x00003FFF'0000FFC0;
        slot.words[arena_word].store(reference);
        slot.words[0].store(lengths << 32 | std::uint32_t(position + 1));
        Frame frame;
        if (ring.reader.take(frame) != RingReader::Take::frame) continue;
        ASSERT_LE(frame.length, slot_room);
        if (frame.payload == nullptr) continue;
        ASSERT_LE(frame.length, header_max);
        ASSERT_LE(frame.payload_length, payload_max);
        ASSERT_GE(frame.payload, ring.arena.data());
        ASSERT_LE(frame.payload + frame.payload_length, ring.arena.data() + arena_size);
    }
}

TEST(ShmRing, LiesAboutTheHeadAreFound) {
    for (const std::uint32_t forged : {6U, 7U, 100U, 0x80000000U, 0xFFFFFFFFU}) {
        Ring ring(8);
        for (unsigned i = 0; i < 5; ++i) ring.send(24, 8, i);
        ring.writer.transmit();
        ring.head.store(forged);
        EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::lie) << forged;
        EXPECT_EQ(ring.writer.peer_head(), 0U) << forged;
    }
    Ring ring(8);
    for (unsigned i = 0; i < 5; ++i) ring.send(24, 8, i);
    ring.writer.transmit();
    ring.head.store(5);
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::moved);
    ring.head.store(4);
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::lie) << "it went back";
    ring.head.store(6);
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::lie) << "reserved, but never sent";
}

TEST(ShmRing, WriterNeverReadsItsSharedMemoryBack) {
    Ring ring(8);
    Random random(5);
    for (int round = 0; round < 1000; ++round) {
        // Somebody scribbles over all that we shared, each time before we go on.
        for (std::uint32_t i = 0; i < 8; ++i) {
            for (auto& word : ring.memory[i].words) word.store(random.next());
        }
        FrameSlot slot;
        if (!ring.writer.reserve(24, static_cast<std::uint32_t>(random.between(0, payload_max)),
                                 slot)) {
            ring.head.store(ring.writer.published());
            ring.writer.refresh();
            continue;
        }
        const auto* at = slot.payload;
        const bool in_ring = at >= reinterpret_cast<std::byte*>(ring.memory.get()) &&
                             at <= reinterpret_cast<std::byte*>(ring.memory.get() + 8);
        const bool in_arena = at >= ring.arena.data() && at < ring.arena.data() + arena_size;
        ASSERT_TRUE(in_ring || in_arena);
        ring.writer.transmit();
        const std::uint32_t position = ring.writer.published();
        const std::uint64_t first = ring.memory[(position - 1) & 7].words[0].load();
        ASSERT_EQ(static_cast<std::uint32_t>(first), position);
    }
}

TEST(ShmRing, TwoThreadsAgree) {
    Ring ring(16);
    constexpr unsigned frames = 100000;
    const auto size_of = [](unsigned i) { return i % 5 == 0 ? i * 7 % 6000 : i % 33; };
    std::thread sender([&] {
        for (unsigned i = 0; i < frames; ++i) {
            for (unsigned spins = 0; !ring.send(24, size_of(i), i); ++spins) {
                if (spins > 50) std::this_thread::yield();
            }
            ring.writer.transmit();
        }
    });
    for (unsigned i = 0; i < frames; ++i) {
        for (unsigned spins = 0; !ring.reader.pending(); ++spins) {
            if (ring.reader.unannounced()) ring.reader.announce();
            if (spins > 50) std::this_thread::yield();
        }
        ring.expect(24, size_of(i), i);
        ring.reader.release();
        if (ring.reader.announce_due()) ring.reader.announce();
    }
    sender.join();
}

TEST(ShmRing, HostileReadsShowTheSecondReadOfADecision) {
    Atomic<std::uint32_t> location{5};
    peer_decision();
    EXPECT_EQ(peer_load(location, memory_order_relaxed), 5U);
#ifdef VIA_HOSTILE_READS
    EXPECT_EQ(peer_load(location, memory_order_relaxed), ~5U);
#endif
    peer_decision();
    EXPECT_EQ(peer_load(location, memory_order_relaxed), 5U);
}

TEST(ShmRing, AClosedWriterHasNoRoom) {
    Ring ring(8);
    ring.send(24, 8, 1);
    ring.writer.close();
    EXPECT_FALSE(ring.send(24, 8, 2));
    ring.head.store(1);
    EXPECT_FALSE(ring.writer.room_came());
    EXPECT_EQ(ring.writer.refresh(), RingWriter::Refresh::same);
    EXPECT_FALSE(ring.send(24, 4096, 2));
}

}  // namespace
}  // namespace via::device::shm::ring_test
