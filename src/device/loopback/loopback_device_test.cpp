#include "device/loopback/loopback_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace via::device::loopback::loopback_device_test {
namespace {

HostAddress host(std::uint8_t last) {
    HostAddress address;
    address.length = 6;
    address.bytes = {127, 0, 0, last, 0x26, 0x0D};
    return address;
}

Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

/// Puts one frame onto the path; the header carries `number`, the payload repeats it.
bool put(LoopbackDevice& device, std::uint8_t number, std::uint32_t header_length,
         std::uint32_t payload_length) {
    FrameSlot slot;
    if (!device.reserve(own_path, header_length, payload_length, slot)) return false;
    std::memset(slot.header, number, header_length);
    std::memset(slot.payload, number, payload_length);
    return true;
}

std::vector<int> numbers_received(LoopbackDevice& device, std::size_t burst) {
    std::vector<Frame> frames(burst);
    const std::size_t count = device.receive(frames);
    std::vector<int> numbers;
    for (std::size_t n = 0; n < count; ++n) numbers.push_back(static_cast<int>(frames[n].bytes[0]));
    device.release();
    return numbers;
}

PathEvent event_of(LoopbackDevice& device) {
    PathEvent event{};
    EXPECT_TRUE(device.next_event(event));
    return event;
}

TEST(LoopbackDevice, resolve_answers_at_once_by_address_and_listener) {
    LoopbackDevice device(host(1));
    device.resolve({host(1), word("ear")}, 7);
    PathEvent event = event_of(device);
    EXPECT_EQ(event.kind, PathEventKind::unresolved);
    EXPECT_EQ(event.status, Status::no_match);
    EXPECT_EQ(event.cookie, 7U);

    ASSERT_EQ(device.listen(word("ear")), Status::success);
    device.resolve({host(1), word("ear")}, 8);
    event = event_of(device);
    EXPECT_EQ(event.kind, PathEventKind::resolved);
    EXPECT_EQ(event.path, own_path);
    EXPECT_EQ(event.cookie, 8U);

    device.resolve({host(2), word("ear")}, 9);
    event = event_of(device);
    EXPECT_EQ(event.kind, PathEventKind::unresolved);
    EXPECT_EQ(event.status, Status::not_reachable);
    EXPECT_FALSE(device.next_event(event));
}

TEST(LoopbackDevice, listening_is_counted) {
    LoopbackDevice device(host(1));
    device.listen(word("ear"));
    device.listen(word("ear"));
    device.unlisten(word("ear"));
    device.resolve({host(1), word("ear")}, 1);
    EXPECT_EQ(event_of(device).kind, PathEventKind::resolved);
    device.unlisten(word("ear"));
    device.resolve({host(1), word("ear")}, 2);
    EXPECT_EQ(event_of(device).status, Status::no_match);
}

TEST(LoopbackDevice, frames_come_back_in_order_once_transmitted) {
    LoopbackDevice device(host(1));
    for (std::uint8_t n = 1; n <= 5; ++n) ASSERT_TRUE(put(device, n, 16, n * 10U));
    EXPECT_TRUE(numbers_received(device, 8).empty());
    EXPECT_FALSE(device.has_work());
    device.transmit(own_path);
    EXPECT_TRUE(device.has_work());
    EXPECT_EQ(numbers_received(device, 2), (std::vector<int>{1, 2}));
    EXPECT_EQ(numbers_received(device, 8), (std::vector<int>{3, 4, 5}));
    EXPECT_FALSE(device.has_work());
}

TEST(LoopbackDevice, small_payloads_lie_behind_the_header_others_apart) {
    LoopbackDevice device(host(1));
    ASSERT_TRUE(put(device, 1, 16, 48));
    ASSERT_TRUE(put(device, 2, 16, 49));
    ASSERT_TRUE(put(device, 3, 40, 0));
    device.transmit(own_path);
    std::array<Frame, 3> frames;
    ASSERT_EQ(device.receive(frames), 3U);
    EXPECT_EQ(frames[0].payload, nullptr);
    EXPECT_EQ(frames[0].length, 64U);
    EXPECT_EQ(frames[0].bytes[63], std::byte{1});
    EXPECT_EQ(frames[1].length, 16U);
    ASSERT_NE(frames[1].payload, nullptr);
    EXPECT_EQ(frames[1].payload_length, 49U);
    EXPECT_EQ(frames[1].payload[48], std::byte{2});
    EXPECT_EQ(frames[2].payload, nullptr);
    EXPECT_EQ(frames[2].length, 40U);
    device.release();
}

TEST(LoopbackDevice, frames_sent_in_one_call_come_back_like_others) {
    LoopbackDevice device(host(1), {64, 3});
    std::array<std::byte, 20> bytes{};
    for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = static_cast<std::byte>(n);
    ASSERT_TRUE(put(device, 1, 16, 10));
    device.transmit(own_path);
    EXPECT_EQ(device.send_small(own_path, 2, 3, bytes.data(), 20, true), 0U);
    EXPECT_EQ(device.send_pieces(own_path, 4, 5, {bytes.data(), 8, bytes.data() + 8, 12}), 0U);
    EXPECT_EQ(device.send_small(own_path, 6, 7, bytes.data(), 20, true), SmallSends::not_sent);
    EXPECT_EQ(device.send_pieces(own_path, 6, 7, {bytes.data(), 8, bytes.data(), 8}),
              SmallSends::not_sent);
    std::array<Frame, 4> frames;
    ASSERT_EQ(device.receive(frames), 3U);
    for (std::uint64_t n = 1; n <= 2; ++n) {
        ASSERT_EQ(frames[n].length, 16 + bytes.size());
        const std::array<std::uint64_t, 2> header{n * 2, n * 2 + 1};
        EXPECT_EQ(std::memcmp(frames[n].bytes, header.data(), sizeof header), 0);
        EXPECT_EQ(std::memcmp(frames[n].bytes + 16, bytes.data(), bytes.size()), 0);
    }
    device.release();
}

TEST(LoopbackDevice, full_ring_presses_back_until_released) {
    LoopbackDevice device(host(1), {64, 4});
    for (std::uint8_t n = 1; n <= 4; ++n) ASSERT_TRUE(put(device, n, 16, 64));
    EXPECT_FALSE(put(device, 5, 16, 64));
    device.transmit(own_path);
    device.set_waiting_for_room(own_path);
    std::array<Frame, 2> frames;
    ASSERT_EQ(device.receive(frames), 2U);
    EXPECT_FALSE(put(device, 5, 16, 64));  // received, but the slots are still lent
    device.set_waiting_for_room(own_path);
    device.release();
    EXPECT_TRUE(device.has_work());
    EXPECT_TRUE(put(device, 5, 16, 64));
    EXPECT_TRUE(put(device, 6, 16, 64));
    EXPECT_FALSE(put(device, 7, 16, 64));
    device.transmit(own_path);
    EXPECT_EQ(numbers_received(device, 8), (std::vector<int>{3, 4, 5, 6}));
}

/// Or an agent would take turns for ever when whoever waited has nothing to send any more.
TEST(LoopbackDevice, room_that_came_is_told_until_the_next_turn) {
    LoopbackDevice device(host(1), {64, 1});
    ASSERT_TRUE(put(device, 1, 16, 64));
    device.transmit(own_path);
    device.set_waiting_for_room(own_path);
    PathEvent event{};
    EXPECT_FALSE(device.next_event(event));
    numbers_received(device, 1);
    EXPECT_TRUE(device.has_work());
    EXPECT_TRUE(device.has_work());
    EXPECT_FALSE(device.next_event(event));  // a turn begins
    EXPECT_FALSE(device.has_work());
}

TEST(LoopbackDevice, path_closed_for_a_violation_goes_down_and_may_be_had_again) {
    LoopbackDevice device(host(1), {64, 2});
    device.listen(word("ear"));
    ASSERT_TRUE(put(device, 1, 16, 1));
    ASSERT_TRUE(put(device, 2, 16, 1));
    device.transmit(own_path);
    std::array<Frame, 1> frames;
    ASSERT_EQ(device.receive(frames), 1U);
    device.close_for_violation(own_path, "test");
    device.release();
    EXPECT_TRUE(numbers_received(device, 8).empty());
    EXPECT_FALSE(put(device, 3, 16, 1));
    EXPECT_EQ(event_of(device).kind, PathEventKind::down);
    device.resolve({host(1), word("ear")}, 3);
    EXPECT_EQ(event_of(device).kind, PathEventKind::resolved);
    ASSERT_TRUE(put(device, 4, 16, 1));
    device.transmit(own_path);
    EXPECT_EQ(numbers_received(device, 8), (std::vector<int>{4}));
}

}  // namespace
}  // namespace via::device::loopback::loopback_device_test
