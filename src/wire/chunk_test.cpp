#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "wire/bytes.hpp"
#include "wire/fields.hpp"
#include "wire/packet.hpp"

namespace via::wire::chunk_test {
namespace {

using Bytes = std::vector<std::byte>;

Ack random_ack(Random& random) {
    Ack ack;
    ack.delay = static_cast<std::uint32_t>(random.next());
    ack.count = static_cast<std::uint8_t>(random.between(1, ack_ranges_max));
    std::uint64_t named = 0;
    for (unsigned n = 0; n < ack.count; ++n) {
        const auto some = [&] {
            return static_cast<std::uint32_t>(random.chance(80) ? random.between(1, 20)
                                                                : random.next() | 1);
        };
        ack.ranges[n] = {n == 0 ? 0 : some(), some()};
        named += std::uint64_t{ack.ranges[n].missing} + ack.ranges[n].there;
    }
    ack.largest = named - 1 + (random.chance(50) ? 0 : random.below(~named));
    return ack;
}

/// A data packet in the making.
struct Packet {
    Bytes bytes = Bytes(data_header_length);

    std::byte* grow(std::size_t length) {
        bytes.resize(bytes.size() + length);
        return bytes.data() + bytes.size() - length;
    }
    Packet& frame(bool reliable, std::uint32_t number, const Bytes& frame) {
        const auto length = static_cast<std::uint32_t>(frame.size());
        std::byte* const to = grow(frame_chunk_overhead + length);
        emit_frame_chunk(reliable, number, length, to);
        std::memcpy(to + frame_chunk_overhead, frame.data(), frame.size());
        return *this;
    }
    Packet& part(std::uint32_t number, std::uint32_t n, const Bytes& frame) {
        const std::uint32_t length =
            std::min(part_length, static_cast<std::uint32_t>(frame.size()) - n * part_length);
        std::byte* const to = grow(part_chunk_overhead + length);
        EXPECT_EQ(emit_part_chunk(number, n, frame, to), part_chunk_overhead + length);
        return *this;
    }
    Packet& ack(const Ack& ack) {
        EXPECT_EQ(emit_ack_chunk(ack, grow(ack_length(ack))), ack_length(ack));
        return *this;
    }
    Packet& ping() {
        EXPECT_EQ(emit_ping_chunk(grow(chunk_prefix_length)), chunk_prefix_length);
        return *this;
    }
    Packet& padding(std::uint32_t length) {
        EXPECT_EQ(emit_padding_chunk(length, grow(length)), length);
        return *this;
    }
    const Bytes& sealed(std::uint64_t connection, std::uint64_t number) {
        seal_data(bytes, connection, number);
        return bytes;
    }
};

Bytes random_bytes(Random& random, std::size_t length) {
    Bytes bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    return bytes;
}

Packet random_packet(Random& random) {
    Packet packet;
    for (std::uint64_t left = random.below(6); left != 0; --left) {
        const bool reliable = random.chance(70);
        const auto number = reliable ? static_cast<std::uint32_t>(random.next()) : 0;
        switch (random.below(5)) {
            case 0:
                packet.frame(reliable, number, random_bytes(random, random.between(1, 300)));
                break;
            case 1:
                packet.ack(random_ack(random));
                break;
            case 2:
                packet.ping();
                break;
            case 3: {
                const Bytes frame = random_bytes(random, random.between(part_length + 1, 2000));
                const auto parts = parts_of(static_cast<std::uint32_t>(frame.size()));
                packet.part(number, static_cast<std::uint32_t>(random.below(parts)), frame);
                break;
            }
            default:
                packet.padding(static_cast<std::uint32_t>(random.between(4, 100)));
        }
    }
    return packet;
}

void append_part(Packet& packet, const Chunk& chunk) {
    Bytes frame(chunk.whole);
    std::copy(chunk.frame.begin(), chunk.frame.end(), frame.begin() + chunk.at);
    packet.part(chunk.frame_number, chunk.at / part_length, frame);
}

/// The chunk as it was written.
void append(Packet& packet, const Chunk& chunk, std::size_t padding_length) {
    if (chunk.kind == ChunkKind::frame)
        packet.frame(chunk.reliable, chunk.frame_number, {chunk.frame.begin(), chunk.frame.end()});
    else if (chunk.kind == ChunkKind::ack)
        packet.ack(chunk.ack);
    else if (chunk.kind == ChunkKind::ping)
        packet.ping();
    else if (chunk.kind == ChunkKind::part)
        append_part(packet, chunk);
    else
        packet.padding(static_cast<std::uint32_t>(padding_length));
}

/// Reads all chunks of a packet in a buffer of exactly its length, and writes them anew; `bad` when
/// the reader stopped before the end.
Bytes written_anew(const Bytes& packet, bool& bad) {
    ChunkReader reader(packet);
    Packet again;
    Chunk chunk;
    while (reader.next(chunk)) {
        const std::size_t at = again.bytes.size();
        const std::size_t length =
            chunk_prefix_length + std::size_t{get<std::uint16_t>(packet.data() + at + 2)};
        append(again, chunk, length);
        if (again.bytes.size() != at + length) ADD_FAILURE() << "another length";
    }
    bad = reader.bad();
    EXPECT_FALSE(reader.next(chunk)) << "there is nothing behind the end";
    return again.sealed(get<std::uint64_t>(packet.data() + 8), reader.packet_number());
}

TEST(Chunk, RoundTripOfEveryKind) {
    Random random(1);
    for (int n = 0; n < 5'000; ++n) {
        const std::uint64_t number = random.next();
        const Bytes packet = random_packet(random).sealed(random.next(), number);
        PacketPrefix prefix;
        ASSERT_EQ(parse_prefix(packet, prefix), PacketError::none);
        ASSERT_EQ(prefix.kind, PacketKind::data);
        ASSERT_EQ(ChunkReader(packet).packet_number(), number);
        bool bad = true;
        ASSERT_EQ(written_anew(packet, bad), packet);
        ASSERT_FALSE(bad);
    }
}

TEST(Chunk, EveryFieldStandsWhereTheTableSays) {
    Ack ack;
    ack.largest = 0x1112131415161718;
    ack.delay = 0x21222324;
    ack.count = 2;
    ack.ranges[0] = {0, 0x31323334};
    ack.ranges[1] = {0x41424344, 0x51525354};
    const Bytes packet = Packet()
                             .frame(true, 0x61626364, Bytes(3, std::byte{0x77}))
                             .ack(ack)
                             .part(0x91929394, 1, Bytes(part_length + 9))
                             .sealed(7, 0x8182838485868788);
    std::size_t at = 0;
    const auto expect = [&](std::span<const Field> fields, std::vector<std::uint64_t> values) {
        ASSERT_EQ(fields.size(), values.size());
        for (std::size_t n = 0; n < fields.size(); ++n) {
            std::uint64_t value = 0;
            std::memcpy(&value, packet.data() + at + fields[n].offset, fields[n].length);
            EXPECT_EQ(value, values[n]) << fields[n].name;
        }
    };
    expect(fields::data, {0x8182838485868788});
    at = data_header_length;
    expect(fields::chunk, {1, chunk_flag::reliable, 7});
    expect(fields::frame_chunk, {0x61626364});
    at += frame_chunk_overhead + 3;
    expect(fields::chunk, {2, 2, 28});
    expect(fields::ack_chunk, {0x21222324, 0x1112131415161718});
    at += 16;
    expect(fields::ack_range, {0, 0x31323334});
    at += 8;
    expect(fields::ack_range, {0x41424344, 0x51525354});
    at += 8;
    expect(fields::chunk, {4, 0, 17});
    expect(fields::part_chunk, {0x91929394, 512, 521});
    EXPECT_EQ(packet.size(), at + part_chunk_overhead + 9);
}

TEST(Chunk, EveryTruncatedLengthIsBad) {
    Random random(2);
    Packet packet;
    std::vector<std::size_t> ends;
    const auto end = [&](const Packet& so_far) { ends.push_back(so_far.bytes.size()); };
    end(packet);
    end(packet.ack(random_ack(random)));
    end(packet.frame(true, 5, random_bytes(random, 60)));
    end(packet.ping());
    end(packet.frame(false, 0, random_bytes(random, 1)));
    end(packet.padding(20));
    const Bytes whole = packet.sealed(1, 2);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        // Of exactly this length, so that the address sanitizer sees a look beyond it.
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        ChunkReader reader(cut);
        Chunk chunk;
        std::size_t count = 0;
        while (reader.next(chunk)) ++count;
        const auto found = std::find(ends.begin(), ends.end(), length);
        ASSERT_EQ(reader.bad(), found == ends.end()) << length;
        if (found != ends.end()) {
            ASSERT_EQ(count, found - ends.begin());
        }
    }
}

/// The only chunk is read, if it is good.
bool good(const Bytes& packet) {
    ChunkReader reader(packet);
    Chunk chunk;
    const bool read = reader.next(chunk);
    EXPECT_NE(read, reader.bad());
    return read;
}

Bytes changed(Bytes packet, std::size_t offset, std::uint8_t value) {
    packet[data_header_length + offset] = static_cast<std::byte>(value);
    return packet;
}

TEST(Chunk, EveryBadKindAndFlagIsRefused) {
    const Bytes ping = Packet().ping().bytes;
    const Bytes padding = Packet().padding(12).bytes;
    const Bytes numbered = Packet().frame(true, 5, Bytes(20)).bytes;
    const Bytes unnumbered = Packet().frame(false, 0, Bytes(20)).bytes;
    for (unsigned value = 0; value <= 255; ++value) {
        const auto byte = static_cast<std::uint8_t>(value);
        EXPECT_EQ(good(changed(ping, 0, byte)), value == 3 || value == 0) << value;
        EXPECT_EQ(good(changed(ping, 1, byte)), value == 0) << value;
        EXPECT_EQ(good(changed(padding, 1, byte)), value == 0) << value;
        EXPECT_EQ(good(changed(numbered, 1, byte)), value == chunk_flag::reliable) << value;
        EXPECT_EQ(good(changed(unnumbered, 1, byte)), value <= chunk_flag::reliable) << value;
    }
    EXPECT_FALSE(good(changed(numbered, 1, 0))) << "a number without a promise";
    EXPECT_FALSE(good(changed(numbered, 2, 4))) << "an empty frame";
    EXPECT_FALSE(good(changed(numbered, 2, 3))) << "not even a number";
    EXPECT_FALSE(good(changed(numbered, 2, 25))) << "longer than the packet";
    EXPECT_FALSE(good(changed(numbered, 3, 255)));
    EXPECT_FALSE(good(changed(padding, 0, 3))) << "a ping carries nothing";
}

TEST(Chunk, AFrameHasOneDivisionOnly) {
    const auto is_good = [](std::size_t at, std::size_t whole, std::size_t length) {
        Packet packet;
        std::byte* const to = packet.grow(part_chunk_overhead + length);
        put(to, ChunkKind::part);
        put(to + 2, static_cast<std::uint16_t>(part_chunk_overhead - 4 + length));
        put(to + 8, static_cast<std::uint16_t>(at));
        put(to + 10, static_cast<std::uint16_t>(whole));
        return good(packet.bytes);
    };
    EXPECT_TRUE(is_good(0, 513, 512));
    EXPECT_TRUE(is_good(512, 513, 1));
    EXPECT_TRUE(is_good(512, 9000, 512));
    EXPECT_TRUE(is_good(65024, frame_length_max, frame_length_max - 65024));
    EXPECT_FALSE(is_good(0, 512, 512)) << "it is all of the frame";
    EXPECT_FALSE(is_good(0, 0, 512));
    EXPECT_FALSE(is_good(0, 513, 0)) << "nothing";
    EXPECT_FALSE(is_good(0, 513, 511)) << "too little";
    EXPECT_FALSE(is_good(0, 513, 513)) << "too much";
    EXPECT_FALSE(is_good(512, 513, 2)) << "beyond the frame";
    EXPECT_FALSE(is_good(1, 9000, 512)) << "between two parts";
    EXPECT_FALSE(is_good(1024, 1024, 512)) << "behind the frame";
    EXPECT_FALSE(is_good(1536, 1024, 512));
    EXPECT_FALSE(is_good(0, frame_length_max + 1, 512)) << "longer than any frame";
    const Bytes packet = Packet().part(7, 0, Bytes(1000)).bytes;
    EXPECT_FALSE(good(changed(packet, 1, 1))) << "no flag is known";
}

bool good_ack(std::uint64_t largest, const std::vector<AckRange>& ranges) {
    Packet packet;
    std::byte* const to = packet.grow(16 + 8 * ranges.size());
    put(to, ChunkKind::ack);
    put(to + 1, static_cast<std::uint8_t>(ranges.size()));
    put(to + 2, static_cast<std::uint16_t>(12 + 8 * ranges.size()));
    put(to + 8, largest);
    for (std::size_t n = 0; n < ranges.size(); ++n) {
        put(to + 16 + 8 * n, ranges[n].missing);
        put(to + 20 + 8 * n, ranges[n].there);
    }
    return good(packet.bytes);
}

TEST(Chunk, RangesOfAnAcknowledgementKeepToTheirBounds) {
    constexpr std::uint32_t most = ~std::uint32_t{0};
    EXPECT_TRUE(good_ack(0, {{0, 1}}));
    EXPECT_FALSE(good_ack(0, {})) << "nothing is acknowledged";
    EXPECT_FALSE(good_ack(0, {{0, 0}})) << "an empty range";
    EXPECT_FALSE(good_ack(9, {{0, 1}, {1, 0}}));
    EXPECT_FALSE(good_ack(9, {{1, 1}})) << "the largest one is missing";
    EXPECT_FALSE(good_ack(9, {{0, 1}, {0, 1}})) << "two ranges that are one";
    EXPECT_TRUE(good_ack(9, {{0, 10}}));
    EXPECT_FALSE(good_ack(9, {{0, 11}})) << "below number 0";
    EXPECT_TRUE(good_ack(9, {{0, 1}, {8, 1}}));
    EXPECT_FALSE(good_ack(9, {{0, 1}, {9, 1}})) << "below number 0";
    EXPECT_FALSE(good_ack(9, {{0, 1}, {8, 2}})) << "below number 0";
    EXPECT_FALSE(good_ack(9, {{0, 1}, {most, 1}}));
    EXPECT_TRUE(good_ack(~std::uint64_t{0}, {{0, most}, {most, most}}));
    std::vector<AckRange> ranges = {{0, most}};
    for (std::uint32_t n = 1; n < ack_ranges_max; ++n) ranges.push_back({most, most});
    const std::uint64_t named = (2 * std::uint64_t{ack_ranges_max} - 1) * most;
    EXPECT_TRUE(good_ack(named - 1, ranges));
    EXPECT_FALSE(good_ack(named - 2, ranges));
    EXPECT_TRUE(good_ack(named + 1000, ranges));
    ranges.push_back({1, 1});
    EXPECT_FALSE(good_ack(~std::uint64_t{0}, ranges)) << "33 ranges";
}

TEST(Chunk, CountAndLengthOfAnAcknowledgementMustAgree) {
    Random random(3);
    const Bytes packet = Packet().ack(random_ack(random)).padding(255).bytes;
    const auto count = std::to_integer<unsigned>(packet[data_header_length + 1]);
    for (unsigned value = 0; value <= 255; ++value) {
        EXPECT_EQ(good(changed(packet, 1, static_cast<std::uint8_t>(value))), value == count);
    }
}

TEST(Chunk, WhatIsReadIsExactlyWhatWasWritten) {
    Random random(4);
    int whole = 0;
    for (int n = 0; n < 100'000; ++n) {
        Bytes packet = random_packet(random).bytes;
        for (std::uint64_t changes = random.below(4); changes != 0; --changes) {
            const std::size_t at = random.below(packet.size());
            packet[at] =
                static_cast<std::byte>(random.chance(50) ? random.below(9) : random.next());
        }
        if (random.chance(20)) packet = random_bytes(random, random.below(100));
        if (packet.size() >= data_header_length) seal_data(packet, random.next(), random.next());
        bool bad = true;
        if (packet.size() < data_header_length) {
            ASSERT_TRUE(ChunkReader(packet).bad());
            continue;
        }
        const Bytes again = written_anew(packet, bad);
        ASSERT_EQ(bad, again.size() != packet.size());
        whole += !bad;
        // But for padding, of which no byte means anything.
        ChunkReader reader(packet);
        std::size_t at = data_header_length;
        for (Chunk chunk; reader.next(chunk);) {
            const std::size_t length =
                chunk_prefix_length + std::size_t{get<std::uint16_t>(packet.data() + at + 2)};
            if (chunk.kind != ChunkKind::padding) {
                ASSERT_EQ(std::memcmp(again.data() + at, packet.data() + at, length), 0);
            }
            at += length;
        }
    }
    EXPECT_GT(whole, 30'000);
}

TEST(Chunk, APayloadThatLiesElsewhereIsCopiedAndSealedLikeOneThatIsThere) {
    for (const std::uint32_t length : {1U, 100U, 192U, 1000U, 1400U, 9000U})
        for (const std::uint32_t behind : {0U, 24U}) {
            Random random(length);
            constexpr std::uint32_t at = data_header_length + frame_chunk_overhead;
            Bytes whole(at + length + behind);
            for (std::byte& byte : whole) byte = static_cast<std::byte>(random.next());
            Bytes apart = whole;
            const Bytes elsewhere(whole.begin() + at, whole.begin() + at + length);
            std::fill_n(apart.begin() + at, length, std::byte{});
            seal_data(whole, 77, 5);
            seal_data(apart, 77, 5, {elsewhere.data(), at, length, 3 * length});
            ASSERT_EQ(apart, whole) << length << ", " << behind;
            ASSERT_TRUE(has_checksum(apart));
        }
}

/// What read_common() should find, by the reader of all packets.
bool is_common(const Bytes& packet, CommonPacket& common, Ack& ack) {
    PacketPrefix prefix;
    Bytes sealed = packet;
    put(sealed.data(), crc32c(std::span(sealed).subspan(4)));
    if (parse_prefix(sealed, prefix) != PacketError::none || prefix.kind != PacketKind::data ||
        get<std::uint8_t>(packet.data() + 4) != packet_version)
        return false;
    ChunkReader reader(packet);
    common.connection = prefix.connection;
    common.number = reader.packet_number();
    Chunk chunk;
    if (!reader.next(chunk) || chunk.kind != ChunkKind::frame || !chunk.reliable) return false;
    common.frame_number = chunk.frame_number;
    common.frame = chunk.frame;
    ack.count = 0;
    if (reader.next(chunk)) {
        if (chunk.kind != ChunkKind::ack || chunk.ack.count != 1) return false;
        ack = chunk.ack;
    }
    return !reader.next(chunk) && !reader.bad();
}

void expect_same_common(const Bytes& packet, int& found) {
    CommonPacket expected{};
    CommonPacket read{};
    Ack expected_ack;
    Ack ack;
    const bool common = is_common(packet, expected, expected_ack);
    ASSERT_EQ(read_common(packet, read, ack), common);
    if (!common) return;
    ++found;
    ASSERT_EQ(read.connection, expected.connection);
    ASSERT_EQ(read.number, expected.number);
    ASSERT_EQ(read.frame_number, expected.frame_number);
    ASSERT_EQ(read.frame.data(), expected.frame.data());
    ASSERT_EQ(read.frame.size(), expected.frame.size());
    ASSERT_EQ(ack.count, expected_ack.count);
    if (ack.count == 0) return;
    ASSERT_EQ(ack.largest, expected_ack.largest);
    ASSERT_EQ(ack.delay, expected_ack.delay);
    ASSERT_EQ(ack.ranges[0].there, expected_ack.ranges[0].there);
}

/// A sealed packet with one frame from inside a message.
Bytes inner_packet(std::uint64_t number, std::uint32_t frame, const Header& header,
                   std::size_t payload) {
    Bytes content(header_length(header.flags) + payload, std::byte{7});
    emit(header, content.data());
    Packet packet;
    packet.frame(true, frame, content);
    return packet.sealed(5, number);
}

TEST(Chunk, APacketFollowsAnotherOnlyIfItIsTheNextOfItsMessage) {
    for (const bool write : {false, true}) {
        Header header;
        header.kind = write ? FrameKind::rdma_write : FrameKind::send;
        header.flags = flag::extent;
        if (write) header.flags |= flag::remote;
        header.vi = 0x10002;
        header.message = 9;
        header.message_length = 5000;
        header.offset = 300;
        header.remote_address = 0x1234;
        constexpr std::uint32_t payload = 100;
        const Bytes first = inner_packet(17, ~0U, header, payload);
        header.offset += payload;
        const Bytes second = inner_packet(18, 0, header, payload);
        EXPECT_TRUE(follows(first, second)) << "frame numbers come round";
        EXPECT_FALSE(follows(second, first));
        EXPECT_FALSE(follows(first, first));
        // Every bit of packet, chunk and frame header counts; checksum and payload do not.
        const std::size_t headers = second.size() - payload;
        for (std::size_t at = 4; at < headers; ++at) {
            for (int bit = 0; bit < 8; ++bit) {
                Bytes other = second;
                other[at] ^= std::byte(1 << bit);
                EXPECT_FALSE(follows(first, other)) << at << " " << bit;
            }
        }
        Bytes other = second;
        other[0] ^= std::byte{1};
        other[headers] ^= std::byte{1};
        EXPECT_TRUE(follows(first, other));
        other = second;
        other.pop_back();
        EXPECT_FALSE(follows(first, other)) << "another length";
    }
}

TEST(Chunk, APacketWithAnAcknowledgementBehindItsFrameIsNotFollowed) {
    Header header;
    header.kind = FrameKind::send;
    header.flags = flag::extent;
    const auto packet = [&](std::uint64_t number, std::uint32_t frame) {
        Bytes content(header_length_extent + 100, std::byte{7});
        emit(header, content.data());
        Packet made;
        made.frame(true, frame, content);
        Ack ack;
        ack.largest = 3;
        ack.count = 1;
        ack.ranges[0] = {0, 1};
        made.ack(ack);
        return made.sealed(5, number);
    };
    const Bytes first = packet(1, 1);
    header.offset = 100 + ack_length_least;
    EXPECT_FALSE(follows(first, packet(2, 2)));
    header.offset = 100;
    EXPECT_FALSE(follows(first, packet(2, 2)));
}

TEST(Chunk, CommonPacketsAreReadAsAllAreReadAndNoOthersAre) {
    Random random(6);
    int found = 0;
    for (int n = 0; n < 20'000; ++n) {
        Packet packet;
        if (random.chance(20)) {
            packet = random_packet(random);
        } else {
            packet.frame(random.chance(90), 0, random_bytes(random, random.between(1, 60)));
            if (random.chance(50)) {
                Ack ack = random_ack(random);
                if (random.chance(80)) ack.count = 1;
                packet.ack(ack);
            }
        }
        Bytes bytes = packet.sealed(random.next(), random.next());
        expect_same_common(bytes, found);
        bytes.resize(random.between(packet_length_least, bytes.size()));
        expect_same_common(bytes, found);
        bytes[random.between(4, bytes.size() - 1)] ^= std::byte{1} << random.below(8);
        expect_same_common(bytes, found);
    }
    EXPECT_GT(found, 10'000);
}

TEST(Chunk, EveryChangedBitIsCaughtByTheChecksum) {
    Random random(5);
    const Bytes whole = Packet().frame(true, 9, random_bytes(random, 1400)).sealed(3, 4);
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        Bytes packet = whole;
        packet[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        PacketPrefix prefix;
        ASSERT_EQ(parse_prefix(packet, prefix), PacketError::checksum) << bit;
    }
}

std::string printed(const Bytes& packet) {
    char text[8192];
    const std::size_t length = print_packet(packet, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    return text;
}

TEST(ChunkPrinting, SaysWhatMatters) {
    Header header;
    header.kind = FrameKind::send;
    Bytes frame(header_length_base + 24);
    emit(header, frame.data());
    Ack ack;
    ack.largest = 9;
    ack.count = 3;
    ack.ranges[0] = {0, 1};
    ack.ranges[1] = {1, 3};
    ack.ranges[2] = {2, 3};
    EXPECT_EQ(printed(Packet().frame(true, 5, frame).ack(ack).sealed(1, 17)),
              "data #17 frame 5 send (40) ack 9,5-7,0-2");
    EXPECT_EQ(printed(Packet().frame(false, 0, frame).ping().padding(50).sealed(1, 0)),
              "data #0 frame send (40) ping padding");
    EXPECT_EQ(printed(Packet().frame(true, 5, Bytes(3)).sealed(1, 18)), "data #18 frame 5 ? (3)");
    ack.count = 1;
    ack.largest = ~std::uint64_t{0};
    EXPECT_EQ(printed(Packet().ack(ack).sealed(1, 1)), "data #1 ack 18446744073709551615");
    Packet cut;
    cut.ping().frame(true, 5, frame).bytes.pop_back();
    EXPECT_EQ(printed(cut.sealed(1, 6)),
              "data #6 ping ... packet of 75 bytes with impossible "
              "contents");
    Bytes shortest(packet_length_least);
    seal(shortest, {PacketKind::data, 1});
    EXPECT_EQ(printed(shortest), "data ... packet of 20 bytes with impossible contents");
}

TEST(ChunkPrinting, NeverWritesMoreThanItMay) {
    Random random(6);
    for (int n = 0; n < 30; ++n) {
        const Bytes packet = random_packet(random).sealed(random.next(), random.next());
        const std::string whole = printed(packet);
        for (std::size_t size = 0; size <= whole.size() + 2; ++size) {
            std::vector<char> text(size);  // exactly, so that the address sanitizer sees all
            const std::size_t length = print_packet(packet, text.data(), size);
            const std::size_t expected = size == 0 ? 0 : std::min(size - 1, whole.size());
            ASSERT_EQ(length, expected) << size;
            if (size != 0) {
                ASSERT_EQ(std::string(text.data()), whole.substr(0, expected)) << size;
            }
        }
    }
}

}  // namespace
}  // namespace via::wire::chunk_test
