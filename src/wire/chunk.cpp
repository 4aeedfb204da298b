// Chunks: what a data packet is made of.
#include <algorithm>
#include <cstring>

#include "wire/bytes.hpp"
#include "wire/frame.hpp"
#include "wire/packet.hpp"

namespace via::wire {

namespace {

/// Where an acknowledgement's ranges begin, and what precedes the frame in a frame's chunk.
constexpr std::uint32_t ack_fixed_length = 16;
constexpr std::uint32_t range_length = 8;

/// How a chunk begins, as one word: kind, flags or count, length.
constexpr std::uint32_t chunk_word(ChunkKind kind, std::uint8_t flags_or_count,
                                   std::size_t length) {
    return static_cast<std::uint32_t>(kind) | std::uint32_t{flags_or_count} << 8 |
           static_cast<std::uint32_t>(length - chunk_prefix_length) << 16;
}
void put_prefix(ChunkKind kind, std::uint8_t flags_or_count, std::uint32_t length, std::byte* to) {
    put(to, chunk_word(kind, flags_or_count, length));
}

bool read_frame(std::span<const std::byte> bytes, Chunk& chunk) {
    const auto flags = get<std::uint8_t>(bytes.data() + 1);
    if (bytes.size() <= frame_chunk_overhead || (flags & ~chunk_flag::reliable) != 0) return false;
    chunk.reliable = flags == chunk_flag::reliable;
    chunk.frame_number = get<std::uint32_t>(bytes.data() + 4);
    chunk.frame = bytes.subspan(frame_chunk_overhead);
    return chunk.reliable || chunk.frame_number == 0;
}

/// A frame has one division only.
bool read_part(std::span<const std::byte> bytes, Chunk& chunk) {
    if (bytes.size() <= part_chunk_overhead) return false;
    chunk.reliable = true;
    chunk.frame_number = get<std::uint32_t>(bytes.data() + 4);
    chunk.at = get<std::uint16_t>(bytes.data() + 8);
    chunk.whole = get<std::uint16_t>(bytes.data() + 10);
    chunk.frame = bytes.subspan(part_chunk_overhead);
    return chunk.whole > part_length && chunk.whole <= frame_length_max &&
           chunk.at % part_length == 0 && chunk.at < chunk.whole &&
           chunk.frame.size() == std::min(part_length, chunk.whole - chunk.at);
}

/// Ranges have one form only: none is empty, none touches the next, and none ends below 0.
bool read_ack(std::span<const std::byte> bytes, Ack& ack) {
    ack.count = get<std::uint8_t>(bytes.data() + 1);
    if (ack.count == 0 || ack.count > ack_ranges_max || bytes.size() != ack_length(ack))
        return false;
    ack.delay = get<std::uint32_t>(bytes.data() + 4);
    ack.largest = get<std::uint64_t>(bytes.data() + 8);
    std::uint64_t named = 0;  // packets from the largest down: at most 64 words' worth
    for (std::uint32_t n = 0; n < ack.count; ++n) {
        const std::byte* const from = bytes.data() + ack_fixed_length + n * range_length;
        const AckRange range{get<std::uint32_t>(from), get<std::uint32_t>(from + 4)};
        if (range.there == 0 || (range.missing == 0) != (n == 0)) return false;
        named += std::uint64_t{range.missing} + range.there;
        ack.ranges[n] = range;
    }
    return named - 1 <= ack.largest;
}

bool read_chunk(std::span<const std::byte> bytes, Chunk& chunk) {
    const auto kind = get<std::uint8_t>(bytes.data());
    const auto flags = get<std::uint8_t>(bytes.data() + 1);
    chunk.kind = static_cast<ChunkKind>(kind);
    switch (chunk.kind) {
        case ChunkKind::padding:
            return flags == 0;
        case ChunkKind::frame:
            return read_frame(bytes, chunk);
        case ChunkKind::ack:
            return read_ack(bytes, chunk.ack);
        case ChunkKind::ping:
            return flags == 0 && bytes.size() == chunk_prefix_length;
        case ChunkKind::part:
            return flags == 0 && read_part(bytes, chunk);
    }
    return false;
}

}  // namespace

ChunkReader::ChunkReader(std::span<const std::byte> packet) {
    if (packet.size() < data_header_length) {
        bad_ = true;
        return;
    }
    number_ = get<std::uint64_t>(packet.data() + packet_prefix_length);
    rest_ = packet.subspan(data_header_length);
}

bool ChunkReader::next(Chunk& chunk) {
    if (bad_ || rest_.empty()) return false;
    bad_ = true;
    if (rest_.size() < chunk_prefix_length) return false;
    const std::size_t length =
        chunk_prefix_length + std::size_t{get<std::uint16_t>(rest_.data() + 2)};
    if (length > rest_.size() || !read_chunk(rest_.first(length), chunk)) return false;
    rest_ = rest_.subspan(length);
    bad_ = false;
    return true;
}

bool read_common(std::span<const std::byte> packet, CommonPacket& common, Ack& ack) {
    constexpr std::size_t frame_at = data_header_length + frame_chunk_overhead;
    const std::byte* const bytes = packet.data();
    if (packet.size() <= frame_at || get<std::uint32_t>(bytes + 4) != packet_word(PacketKind::data))
        return false;
    const auto word = get<std::uint32_t>(bytes + data_header_length);
    const std::size_t length = chunk_prefix_length + (word >> 16);
    const std::size_t ack_at = data_header_length + length;
    if (word != chunk_word(ChunkKind::frame, chunk_flag::reliable, length) ||
        length <= frame_chunk_overhead)
        return false;
    common.connection = get<std::uint64_t>(bytes + 8);
    common.number = get<std::uint64_t>(bytes + packet_prefix_length);
    common.frame_number = get<std::uint32_t>(bytes + data_header_length + chunk_prefix_length);
    common.frame = {bytes + frame_at, length - frame_chunk_overhead};
    ack.count = 0;
    if (packet.size() == ack_at) return true;
    if (packet.size() != ack_at + ack_length_least ||
        get<std::uint32_t>(bytes + ack_at) != chunk_word(ChunkKind::ack, 1, ack_length_least))
        return false;
    return read_ack(packet.subspan(ack_at), ack);
}

bool has_checksum(std::span<const std::byte> packet) {
    return get<std::uint32_t>(packet.data()) == crc32c(packet.subspan(4));
}

bool follows(std::span<const std::byte> first, std::span<const std::byte> second) {
    constexpr std::size_t number_at = packet_prefix_length;
    constexpr std::size_t frame_number_at = data_header_length + chunk_prefix_length;
    constexpr std::size_t frame_at = data_header_length + frame_chunk_overhead;
    if (first.size() != second.size() || first.size() < frame_at + header_length_remote)
        return false;
    const std::byte* const a = first.data();
    const std::byte* const b = second.data();
    if (get<std::uint32_t>(a + data_header_length) !=
        chunk_word(ChunkKind::frame, chunk_flag::reliable, first.size() - data_header_length))
        return false;  // something stands behind the frame
    const auto payload_length = static_cast<std::uint32_t>(
        first.size() - frame_at - header_length(get<std::uint8_t>(a + frame_at + 1)));
    return get<std::uint32_t>(a + 4) == get<std::uint32_t>(b + 4) &&
           get<std::uint64_t>(a + 8) == get<std::uint64_t>(b + 8) &&
           get<std::uint64_t>(b + number_at) - get<std::uint64_t>(a + number_at) == 1 &&
           get<std::uint32_t>(a + data_header_length) ==
               get<std::uint32_t>(b + data_header_length) &&
           get<std::uint32_t>(b + frame_number_at) - get<std::uint32_t>(a + frame_number_at) == 1 &&
           continues(a + frame_at, b + frame_at, payload_length);
}

std::uint32_t emit_ack_chunk(const Ack& ack, std::byte* to) {
    put_prefix(ChunkKind::ack, ack.count, ack_length(ack), to);
    put(to + 4, ack.delay);
    put(to + 8, ack.largest);
    for (std::uint32_t n = 0; n < ack.count; ++n) {
        put(to + ack_fixed_length + n * range_length, ack.ranges[n].missing);
        put(to + ack_fixed_length + n * range_length + 4, ack.ranges[n].there);
    }
    return ack_length(ack);
}

std::uint32_t emit_ping_chunk(std::byte* to) {
    put_prefix(ChunkKind::ping, 0, chunk_prefix_length, to);
    return chunk_prefix_length;
}

std::uint32_t emit_padding_chunk(std::uint32_t length, std::byte* to) {
    put_prefix(ChunkKind::padding, 0, length, to);
    std::memset(to + chunk_prefix_length, 0, length - chunk_prefix_length);
    return length;
}

void emit_frame_chunk(bool reliable, std::uint32_t frame_number, std::uint32_t length,
                      std::byte* to) {
    put_prefix(ChunkKind::frame, reliable ? chunk_flag::reliable : 0, frame_chunk_overhead + length,
               to);
    put(to + 4, frame_number);
}

std::uint32_t emit_part_chunk(std::uint32_t frame_number, std::uint32_t n,
                              std::span<const std::byte> frame, std::byte* to) {
    const std::uint32_t at = n * part_length;
    const auto whole = static_cast<std::uint32_t>(frame.size());
    const std::uint32_t length = std::min(part_length, whole - at);
    put_prefix(ChunkKind::part, 0, part_chunk_overhead + length, to);
    put(to + 4, frame_number);
    put(to + 8, static_cast<std::uint16_t>(at));
    put(to + 10, static_cast<std::uint16_t>(whole));
    std::memcpy(to + part_chunk_overhead, frame.data() + at, length);
    return part_chunk_overhead + length;
}

void seal_data(std::span<std::byte> packet, std::uint64_t connection, std::uint64_t number,
               const Body& body) {
    put(packet.data() + packet_prefix_length, number);
    seal(packet, {PacketKind::data, connection}, body);
}

void put_data_header(std::span<std::byte> packet, std::uint64_t connection, std::uint64_t number) {
    put(packet.data() + packet_prefix_length, number);
    put_packet_prefix(packet, {PacketKind::data, connection});
}

}  // namespace via::wire
