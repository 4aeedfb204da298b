#include "device/udp/ethernet_model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace via::device::udp::test::ethernet_model_test {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> all;
    for (const int value : values) all.push_back(static_cast<std::byte>(value));
    return all;
}

HostAddress address(std::initializer_list<int> values) {
    HostAddress result;
    for (const std::byte byte : bytes(values))
        result.bytes[result.length++] = std::to_integer<std::uint8_t>(byte);
    return result;
}

/// What Linux gave to an interface: 26 bytes to 10.97.60.2:4444, the checksum not finished.
const std::vector<std::byte> shown =
    bytes({0x16, 0xc0, 0x4f, 0x61, 0xbc, 0xeb, 0xaa, 0xc9, 0x5e, 0x2f, 0x31, 0x56, 0x08, 0x00,
           0x45, 0x00, 0x00, 0x36, 0x4d, 0xfd, 0x40, 0x00, 0x40, 0x11, 0x5f, 0xf5, 0x0a, 0x61,
           0x3c, 0x01, 0x0a, 0x61, 0x3c, 0x02, 0xe2, 0xaf, 0x11, 0x5c, 0x00, 0x22, 0x8c, 0xf8});
const HostAddress from = address({10, 97, 60, 1, 0xe2, 0xaf});
const HostAddress to = address({10, 97, 60, 2, 0x11, 0x5c});

std::vector<std::byte> head_of(const EthernetModel& model, std::uint32_t length,
                               std::uint32_t segment) {
    std::vector<std::byte> head(EthernetModel::head_max);
    head.resize(model.write(head.data(), length, segment));
    return head;
}

TEST(EthernetModel, OfTheSameLengthItIsTheSame) {
    EthernetModel model;
    ASSERT_TRUE(model.learn(shown, 26, from, to));
    auto expected = bytes({1, 0, 68, 0, 0, 0, 34, 0, 6, 0});  // all 42 + 26 bytes in one piece
    expected.insert(expected.end(), shown.begin(), shown.end());
    EXPECT_EQ(head_of(model, 26, 0), expected);
}

TEST(EthernetModel, LengthsAndSumsFollowTheMessage) {
    EthernetModel model;
    ASSERT_TRUE(model.learn(shown, 26, from, to));
    auto expected = bytes({1, 5, 0xca, 0x0f, 0xb8, 0x05, 34, 0, 6, 0});  // cut by 1464
    expected.insert(expected.end(), shown.begin(), shown.end());
    // 3974 bytes more than 26 are 0x0f86: IP's sum, which is inverted, is less by that, UDP's more.
    const auto put = [&](std::size_t at, int value) {
        expected[10 + at] = static_cast<std::byte>(value >> 8);
        expected[11 + at] = static_cast<std::byte>(value & 0xff);
    };
    put(16, 0x0036 + 0x0f86);
    put(24, 0x5ff5 - 0x0f86);
    put(38, 0x0022 + 0x0f86);
    put(40, 0x8cf8 + 0x0f86);
    EXPECT_EQ(head_of(model, 26 + 0x0f86, 1464), expected);
    EXPECT_EQ(head_of(model, 7458, 1464)[2], std::byte{7500 & 0xff});
    EXPECT_EQ(head_of(model, 7459, 1464)[2], std::byte{42}) << "the rest is in pages";
}

TEST(EthernetModel, OnlyAPlainOneFromHereToThereIsOne) {
    EthernetModel model;
    for (std::size_t length = 0; length < shown.size(); ++length)
        EXPECT_FALSE(model.learn(std::span(shown).first(length), 26, from, to)) << length;
    EXPECT_FALSE(model.learn(shown, 25, from, to)) << "another datagram";
    EXPECT_FALSE(model.learn(shown, 26, to, from));
    for (const std::size_t at : {12U, 13U, 14U, 16U, 17U, 20U, 21U, 23U, 26U, 29U, 30U, 33U, 34U,
                                 35U, 36U, 37U, 38U, 39U}) {
        auto other = shown;
        other[at] ^= std::byte{1};
        EXPECT_TRUE(model.learn(shown, 26, from, to));
        EXPECT_FALSE(model.learn(other, 26, from, to)) << at;
        EXPECT_FALSE(model.valid()) << "the last one holds";
    }
    auto loopback = shown;
    for (std::size_t at = 0; at < 6; ++at) loopback[at] = std::byte{0};
    EXPECT_FALSE(model.learn(loopback, 26, from, to)) << "which takes no frames of ours";
}

}  // namespace
}  // namespace via::device::udp::test::ethernet_model_test
