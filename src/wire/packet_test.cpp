#include "wire/packet.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace via::wire {
namespace {

using Bytes = std::vector<std::byte>;

std::string printed(std::span<const std::byte> packet) {
    char text[512];
    const std::size_t length = print_packet(packet, text, sizeof text);
    EXPECT_EQ(length, std::strlen(text));
    return text;
}

TEST(Crc32c, HasTheValuesOfRfc3720) {
    const auto sum = [](const std::string& text) { return crc32c(std::as_bytes(std::span(text))); };
    EXPECT_EQ(sum(""), 0U);
    EXPECT_EQ(sum("123456789"), 0xE3069283U);
    EXPECT_EQ(sum(std::string(32, '\0')), 0x8A9136AAU);
    EXPECT_EQ(sum(std::string(32, '\xFF')), 0x62A8AB43U);
}

TEST(Packet, DataMakesTheRoundTrip) {
    Bytes packet(data_header_length + frame_chunk_overhead + 40);
    emit_frame_chunk(true, 5, 40, packet.data() + data_header_length);
    Ack ack;
    ack.largest = 9;
    ack.count = 2;
    ack.ranges[0] = {0, 3};
    ack.ranges[1] = {1, 4};
    packet.resize(packet.size() + ack_length(ack));
    emit_ack_chunk(ack, packet.data() + packet.size() - ack_length(ack));
    seal_data(packet, 77, 17);
    PacketPrefix prefix;
    ASSERT_EQ(parse_prefix(packet, prefix), PacketError::none);
    EXPECT_EQ(prefix.kind, PacketKind::data);
    EXPECT_EQ(prefix.connection, 77U);
    ChunkReader reader(packet);
    EXPECT_EQ(reader.packet_number(), 17U);
    Chunk chunk;
    ASSERT_TRUE(reader.next(chunk));
    EXPECT_EQ(chunk.kind, ChunkKind::frame);
    EXPECT_EQ(chunk.frame_number, 5U);
    EXPECT_EQ(chunk.frame.size(), 40U);
    ASSERT_TRUE(reader.next(chunk));
    EXPECT_EQ(chunk.kind, ChunkKind::ack);
    EXPECT_EQ(chunk.ack.largest, 9U);
    EXPECT_FALSE(reader.next(chunk));
    EXPECT_FALSE(reader.bad());
    EXPECT_EQ(printed(packet), "data #17 frame 5 (40) ack 7-9,2-5");
}

TEST(Packet, HelloMakesTheRoundTrip) {
    const Hello hello{1, 2, {3, 4}, {5, 60000, 1000, 1472, 9741}};
    std::array<std::byte, connecting_length_max> bytes;
    const std::span packet = std::span(bytes).first(emit_hello(99, hello, bytes));
    PacketPrefix prefix;
    ASSERT_EQ(parse_prefix(packet, prefix), PacketError::none);
    EXPECT_EQ(prefix.kind, PacketKind::hello);
    Hello read;
    ASSERT_EQ(parse_hello(packet, read), PacketError::none);
    EXPECT_EQ(read.offer.datagram_max, 1472U);
    EXPECT_EQ(printed(packet),
              "hello connection=0000000000000063 target=0000000000000001 attempt=2 "
              "cookie instance=0000000000000005 receive_room=60000 "
              "ack_delay_us=1000 datagram_max=1472 nic_port=9741");
}

}  // namespace
}  // namespace via::wire
