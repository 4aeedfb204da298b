#include "bench/payload.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "bench/stream_copy.hpp"
#include "bench/types.hpp"

namespace via::bench::payload_test {
namespace {

constexpr std::uint32_t count = 2;

TEST(Payload, EveryMessageIsToldFromTheOneBeforeInItsBuffer) {
    for (const std::uint64_t size : {1u, 2u, 7u, 8u, 9u, 15u, 16u, 17u, 64u, 4096u}) {
        SCOPED_TRACE(size);
        std::vector<std::byte> buffer(size);
        for (std::uint64_t i = 0; i < 2000; i += count) {  // those that use this buffer
            EXPECT_FALSE(tail_arrived(buffer.data(), size, i, count));
            stamp(buffer.data(), size, i, count);
            EXPECT_TRUE(tail_arrived(buffer.data(), size, i, count));
            EXPECT_TRUE(read_and_check(buffer.data(), size, i, count));
            EXPECT_FALSE(read_and_check(buffer.data(), size, i + count, count));
        }
    }
}

TEST(Payload, AMessageWithoutItsHeadIsWrong) {
    std::vector<std::byte> buffer(64);
    stamp(buffer.data(), buffer.size(), 5, count);
    store_word(buffer.data(), 0);
    EXPECT_TRUE(tail_arrived(buffer.data(), buffer.size(), 5, count));
    EXPECT_FALSE(read_and_check(buffer.data(), buffer.size(), 5, count));
}

TEST(Payload, WipingRemovesOldProofs) {
    for (const std::uint64_t size : {1u, 8u, 100u}) {
        std::vector<std::byte> bytes(128 * count);
        const Pool pool{bytes.data(), 128, count};
        for (std::uint64_t i = 0; i < count; ++i) stamp(pool.at(i), size, i, count);
        wipe(pool, size);
        for (std::uint64_t i = 0; i < count; ++i) {
            EXPECT_FALSE(tail_arrived(pool.at(i), size, i, count));
        }
    }
}

TEST(Payload, AWrongByteAnywhereIsFoundAlsoBehindTheMessage) {
    constexpr std::uint64_t size = 300;
    constexpr std::uint64_t stride = 384;
    std::vector<std::byte> buffer(stride);
    for (std::uint64_t wrong = 0; wrong < stride; ++wrong) {
        std::fill(buffer.begin(), buffer.end(), untouched_byte);
        fill(buffer.data(), size, 3, 1);
        buffer[wrong] ^= std::byte{0x10};
        EXPECT_EQ(first_wrong_byte(buffer.data(), size, stride, 3, 1), wrong);
    }
    fill(buffer.data(), size, 3, 1);
    EXPECT_EQ(first_wrong_byte(buffer.data(), size, stride, 3, 1), stride);
    fill(buffer.data(), size, 3, 0);
    EXPECT_EQ(first_wrong_byte(buffer.data(), size, stride, 3, 1), 0u) << "another sender's";
}

TEST(StreamCopy, EveryKindCopiesAnyLengthAndAlignment) {
    constexpr std::size_t room = 1024;
    std::vector<std::byte> from(room);
    for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    for (const Copy copy : available_copies()) {
        SCOPED_TRACE(name_of(copy));
        for (std::size_t offset = 0; offset < 65; offset += 3) {
            for (std::size_t bytes = 0; bytes < 400; bytes += 13) {
                std::vector<std::byte> to(room, std::byte{0xee});
                function_of(copy)(to.data() + offset, from.data() + 5, bytes);
                for (std::size_t i = 0; i < room; ++i) {
                    const bool inside = i >= offset && i < offset + bytes;
                    ASSERT_EQ(to[i], inside ? from[i - offset + 5] : std::byte{0xee});
                }
            }
        }
    }
}

TEST(Sizes, AreReadAndWrittenWithUnits) {
    EXPECT_EQ(parse_size("0"), 0u);
    EXPECT_EQ(parse_size("64"), 64u);
    EXPECT_EQ(parse_size("4K"), 4096u);
    EXPECT_EQ(parse_size("1m"), 1u << 20);
    for (const char* bad :
         {"", "K", "4KB", "-1", "1.5K", "x", "99999999999999999999", "9999999999M"}) {
        EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
    }
    EXPECT_EQ(size_text(0), "0");
    EXPECT_EQ(size_text(1000), "1000");
    EXPECT_EQ(size_text(65536), "64K");
    EXPECT_EQ(size_text(1 << 20), "1M");
}

TEST(Sizes, StreamsRotateOverSixteenMegabytesAndAtLeastTheDepth) {
    Question question;
    question.size = 1 << 20;
    EXPECT_EQ(buffers_for(question), 2u);
    question.bench = Bench::bandwidth;
    question.depth = 4;
    EXPECT_EQ(buffers_for(question), 16u);
    question.depth = 64;
    EXPECT_EQ(buffers_for(question), 64u);
    question.size = 8;
    EXPECT_EQ(buffers_for(question), 256u);
    question.depth = 1024;
    EXPECT_EQ(buffers_for(question), 1024u);
    question.depth = 1000;
    EXPECT_EQ(buffers_for(question), 1024u) << "a power of two";
    question.size = 100'000;
    question.depth = 16;
    EXPECT_EQ(buffers_for(question), 128u);
    question.size = 64 << 20;
    question.depth = 3;
    EXPECT_EQ(buffers_for(question), 4u);
}

}  // namespace
}  // namespace via::bench::payload_test
