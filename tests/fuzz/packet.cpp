// Packets of strangers: whatever is accepted is what emit makes, and printing keeps to its room.
// The first byte of the input says whether the checksum is made right, and how long the line is.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "input.hpp"
#include "wire/packet.hpp"

using namespace via::wire;

namespace {

using Bytes = std::vector<std::byte>;

template <class Contents, class Parse, class Emit>
void check(const PacketPrefix& prefix, std::span<const std::byte> packet, Parse parse, Emit emit) {
    Contents contents{};
    if (parse(packet, contents) != PacketError::none) return;
    std::array<std::byte, connecting_length_max> again;
    const std::uint32_t length = emit(prefix.connection, contents, again);
    fuzz::require(length == packet.size() && std::memcmp(again.data(), packet.data(), length) == 0,
                  "what is accepted is what emit makes");
}

/// Written again, a data packet is the same, but for what stands in padding.
void check_data(const PacketPrefix& prefix, std::span<const std::byte> packet) {
    ChunkReader reader(packet);
    Bytes again(data_header_length);
    std::size_t ranges = 0;
    for (Chunk chunk; reader.next(chunk);) {
        const std::byte* const original = packet.data() + again.size();
        std::uint16_t behind = 0;
        std::memcpy(&behind, original + 2, sizeof behind);
        const std::uint32_t length = chunk_prefix_length + behind;
        again.resize(again.size() + length);
        std::byte* const to = again.data() + again.size() - length;
        if (chunk.kind == ChunkKind::frame) {
            fuzz::require(
                chunk.frame.data() >= packet.data() &&
                    chunk.frame.data() + chunk.frame.size() <= packet.data() + packet.size(),
                "frames lie within their packet");
            emit_frame_chunk(chunk.reliable, chunk.frame_number,
                             static_cast<std::uint32_t>(chunk.frame.size()), to);
            std::memcpy(to + frame_chunk_overhead, chunk.frame.data(), chunk.frame.size());
        } else if (chunk.kind == ChunkKind::ack) {
            fuzz::require(emit_ack_chunk(chunk.ack, to) == length, "ranges fill their chunk");
            ranges += chunk.ack.count;
        } else if (chunk.kind == ChunkKind::part) {
            fuzz::require(chunk.at + chunk.frame.size() <= chunk.whole, "a part is of its frame");
            Bytes whole(chunk.whole);
            std::memcpy(whole.data() + chunk.at, chunk.frame.data(), chunk.frame.size());
            fuzz::require(
                emit_part_chunk(chunk.frame_number, chunk.at / part_length, whole, to) == length,
                "a part fills its chunk");
        } else if (chunk.kind == ChunkKind::ping) {
            fuzz::require(emit_ping_chunk(to) == length, "a ping is a prefix");
        } else {
            std::memcpy(to, original, length);
        }
        fuzz::require(std::memcmp(to, original, length) == 0, "what is read is what emit makes");
    }
    fuzz::require(ranges <= packet.size() / 8, "no range comes from nowhere");
    if (reader.bad()) return;
    seal_data(again, prefix.connection, reader.packet_number());
    fuzz::require(again.size() == packet.size(), "nothing is left");
}

void check_contents(const PacketPrefix& prefix, std::span<const std::byte> packet) {
    switch (prefix.kind) {
        case PacketKind::query:
            return check<Query>(prefix, packet, parse_query, emit_query);
        case PacketKind::answer:
            return check<Answer>(prefix, packet, parse_answer, emit_answer);
        case PacketKind::hello:
            return check<Hello>(prefix, packet, parse_hello, emit_hello);
        case PacketKind::retry:
            return check<Cookie>(prefix, packet, parse_retry, emit_retry);
        case PacketKind::welcome:
            return check<Welcome>(prefix, packet, parse_welcome, emit_welcome);
        case PacketKind::refuse:
            return check<PathRefusal>(prefix, packet, parse_refuse, emit_refuse);
        case PacketKind::close:
            return check<CloseReason>(prefix, packet, parse_close, emit_close);
        case PacketKind::rails:
            return check<Rails>(prefix, packet, parse_rails, emit_rails);
        case PacketKind::data:
            return check_data(prefix, packet);
        case PacketKind::unsupported:
            break;
    }
    Versions versions;
    if (parse_unsupported(packet, versions) == PacketError::none)
        fuzz::require(versions.least <= versions.greatest, "versions have an order");
}

void check_print(std::span<const std::byte> packet, std::size_t size) {
    const std::unique_ptr<char[]> line(new char[size]);  // exactly, for the sanitizer
    const std::size_t length = print_packet(packet, line.get(), size);
    fuzz::require(size == 0 ? length == 0 : length < size && line[length] == '\0',
                  "the line ends in its room");
    for (std::size_t n = 0; n < length; ++n)
        fuzz::require(line[n] >= ' ' && line[n] <= '~', "the line can be printed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t how = input.byte();
    const auto given = std::as_bytes(input.bytes(size));
    Bytes packet(given.begin(), given.end());
    if (how % 2 == 1 && packet.size() >= sizeof(std::uint32_t)) {
        const std::uint32_t checksum = crc32c(std::span(packet).subspan(sizeof checksum));
        std::memcpy(packet.data(), &checksum, sizeof checksum);
    }
    packet.shrink_to_fit();
    check_print(packet, std::size_t{how} * 4);
    PacketPrefix prefix;
    if (parse_prefix(packet, prefix) == PacketError::none) check_contents(prefix, packet);
    return 0;
}
