#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/loopback/loopback_device.hpp"
#include "tap/pressure.hpp"
#include "tap/trace_tap.hpp"
#include "wire/frame.hpp"

namespace via::tap::tap_test {
namespace {

using device::loopback::LoopbackDevice;

HostAddress host() {
    HostAddress address;
    address.length = 6;
    address.bytes = {127, 0, 0, 1, 0x26, 0x0D};
    return address;
}

std::unique_ptr<device::Device> loopback() { return std::make_unique<LoopbackDevice>(host()); }
std::unique_ptr<device::Device> roomy() {
    device::loopback::LoopbackOptions options;
    options.frames_max = 100;
    return std::make_unique<LoopbackDevice>(host(), options);
}

bool put(device::Device& device, std::uint32_t message, std::uint32_t payload_length) {
    device::FrameSlot slot;
    if (!device.reserve(0, wire::header_length_base, payload_length, slot)) return false;
    wire::Header header;
    header.kind = wire::FrameKind::send;
    header.flags = wire::flag::first | wire::flag::last;
    header.vi = 3;
    header.message = message;
    wire::emit(header, slot.header);
    if (payload_length != 0) std::memset(slot.payload, 1, payload_length);
    return true;
}

std::vector<std::uint32_t> messages_received(device::Device& device) {
    std::array<device::Frame, 16> frames;
    const std::size_t count = device.receive(frames);
    std::vector<std::uint32_t> messages;
    for (std::size_t n = 0; n < count; ++n) {
        wire::Header header;
        EXPECT_EQ(wire::parse(frames[n].bytes, frames[n].length, header), wire::ParseError::none);
        messages.push_back(header.message);
    }
    device.release();
    return messages;
}

TEST(Tap, passes_on_what_it_is_not_about) {
    Pressure tap(loopback(), {1, 0, 0});
    EXPECT_EQ(tap.address(), host());
    EXPECT_TRUE(tap.capabilities().lossless);
    EXPECT_EQ(tap.peer_address(0), host());
    Discriminator ear;
    ear.length = 1;
    ASSERT_EQ(tap.listen(ear), Status::success);
    tap.resolve({host(), ear}, 9);
    EXPECT_TRUE(tap.has_work());
    device::PathEvent event{};
    ASSERT_TRUE(tap.next_event(event));
    EXPECT_EQ(event.kind, device::PathEventKind::resolved);
    EXPECT_EQ(event.cookie, 9U);
    tap.unlisten(ear);
    tap.resolve({host(), ear}, 10);
    ASSERT_TRUE(tap.next_event(event));
    EXPECT_EQ(event.status, Status::no_match);
    ASSERT_TRUE(put(tap, 2, 10));
    tap.transmit(0);
    EXPECT_EQ(messages_received(tap), (std::vector<std::uint32_t>{2}));
    EXPECT_EQ(tap.sleeping(), nullptr);
    EXPECT_NE(tap.sharing(), nullptr);
    EXPECT_EQ(tap.small_sends(), &tap);
    EXPECT_TRUE(tap.next_deadline().is_never());
    EXPECT_EQ(tap.notify(), 0U);
}

TEST(Pressure, refuses_and_shortens_but_loses_nothing) {
    Pressure tap(loopback(), {42, 50, 50});
    std::vector<std::uint32_t> got;
    std::uint32_t next = 0;
    for (int round = 0; round < 400; ++round) {
        if (put(tap, next, 30)) {
            ++next;
            tap.transmit(0);
        } else {
            tap.set_waiting_for_room(0);
            EXPECT_TRUE(tap.has_work());  // or the NIC would never ask again
        }
        if (round % 5 != 4) continue;
        for (std::uint32_t message : messages_received(tap)) got.push_back(message);
    }
    while (tap.has_work()) {
        const auto rest = messages_received(tap);
        if (rest.empty()) break;
        got.insert(got.end(), rest.begin(), rest.end());
    }
    ASSERT_EQ(got.size(), next);
    for (std::uint32_t n = 0; n < next; ++n) EXPECT_EQ(got[n], n);
    EXPECT_GT(tap.refused(), 100U);
    EXPECT_LT(tap.refused(), 300U);
    EXPECT_GT(tap.shortened(), 10U);
}

/// Of 100, sent in one call each; what was refused is for the other way to send.
template <class Send>
void send_a_hundred(Pressure& tap, Send send) {
    std::vector<std::uint32_t> sent;
    for (std::uint32_t message = 0; message < 100; ++message)
        if (send(message)) sent.push_back(message);
    std::vector<std::uint32_t> got;
    while (tap.has_work())
        for (const std::uint32_t message : messages_received(tap)) got.push_back(message);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(tap.refused(), 100 - sent.size());
    EXPECT_GT(sent.size(), 20U);
    EXPECT_LT(sent.size(), 80U);
}

TEST(Pressure, refuses_what_is_sent_in_one_call) {
    constexpr std::byte payload[8]{};
    Pressure small(roomy(), {42, 50, 0});
    send_a_hundred(small, [&](std::uint32_t message) {
        return small.send_small(0, wire::whole_send_low(3), wire::whole_send_high(message), payload,
                                8, true) == 0;
    });
    Pressure pieces(roomy(), {43, 50, 0});
    send_a_hundred(pieces, [&](std::uint32_t message) {
        return pieces.send_pieces(0, wire::whole_send_low(3), wire::whole_send_high(message),
                                  {payload, 4, payload + 4, 4}) == 0;
    });
}

TEST(Pressure, the_seed_decides) {
    const auto refusals = [](std::uint64_t seed) {
        Pressure tap(loopback(), {seed, 50, 0});
        std::string pattern;
        for (std::uint32_t n = 0; n < 40; ++n) pattern += put(tap, n, 1) ? '+' : '-';
        return pattern;
    };
    EXPECT_EQ(refusals(1), refusals(1));
    EXPECT_NE(refusals(1), refusals(2));
}

TEST(TraceTap, prints_frames_when_they_are_sent_and_received) {
    std::vector<std::string> lines;
    TraceTap tap(loopback(), [&](std::string_view line) { lines.emplace_back(line); });
    ASSERT_TRUE(put(tap, 1, 8));
    ASSERT_TRUE(put(tap, 2, 100));
    EXPECT_TRUE(lines.empty());
    tap.transmit(0);
    EXPECT_EQ(lines,
              (std::vector<std::string>{"> path 0 send first last vi=3 message=1 length=8",
                                        "> path 0 send first last vi=3 message=2 length=100"}));
    lines.clear();
    messages_received(tap);
    EXPECT_EQ(lines,
              (std::vector<std::string>{"< path 0 send first last vi=3 message=1 length=8",
                                        "< path 0 send first last vi=3 message=2 length=100"}));
    lines.clear();
    tap.close_for_violation(0, "a test");
    device::PathEvent event{};
    ASSERT_TRUE(tap.next_event(event));
    EXPECT_EQ(lines, (std::vector<std::string>{"closed path 0: a test", "event path 0 down"}));
}

TEST(TraceTap, prints_what_is_sent_in_one_call) {
    std::vector<std::string> lines;
    device::loopback::LoopbackOptions options;
    options.frames_max = 2;
    TraceTap tap(std::make_unique<LoopbackDevice>(host(), options),
                 [&](std::string_view line) { lines.emplace_back(line); });
    constexpr std::byte payload[8]{};
    const auto low = wire::whole_send_low(3);
    EXPECT_EQ(tap.send_small(0, low, wire::whole_send_high(7), payload, 8, false), 0U);
    EXPECT_EQ(tap.send_pieces(0, low, wire::whole_send_high(8), {payload, 8, payload, 4}), 0U);
    EXPECT_EQ(tap.send_small(0, low, wire::whole_send_high(9), payload, 8, true),
              device::SmallSends::not_sent);
    EXPECT_EQ(lines,
              (std::vector<std::string>{"> path 0 send first last vi=3 message=7 length=8",
                                        "> path 0 send first last vi=3 message=8 length=12"}));
}

TEST(TraceTap, prints_what_is_no_frame) {
    std::vector<std::string> lines;
    TraceTap tap(loopback(), [&](std::string_view line) { lines.emplace_back(line); });
    device::FrameSlot slot;
    ASSERT_TRUE(tap.reserve(0, 7, 0, slot));
    std::memset(slot.header, 0xFF, 7);
    tap.transmit(0);
    EXPECT_EQ(lines,
              (std::vector<std::string>{"> path 0 a frame shorter than its header, 7 bytes"}));
}

}  // namespace
}  // namespace via::tap::tap_test
