#include "device/sim/sim_device.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace via::device::sim::sim_device_test {
namespace {

HostAddress host(std::uint8_t last) {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, last, 0x26, 0x0D};
    return address;
}

Discriminator word(const char* text) {
    Discriminator discriminator;
    discriminator.length = static_cast<std::uint16_t>(std::strlen(text));
    std::memcpy(discriminator.bytes.data(), text, discriminator.length);
    return discriminator;
}

/// A clock, a network of fair weather and two devices on it.
struct Net {
    explicit Net(const FabricOptions& options = {}, std::uint64_t seed = 1)
        : weather(seed, {}), fabric(clock, weather, options) {
        a = std::make_unique<SimDevice>(fabric, host(1));
        b = std::make_unique<SimDevice>(fabric, host(2));
    }
    /// To the next arrival at the device; false if none is on its way.
    bool advance(const SimDevice& device) {
        const Time next = device.next_deadline();
        if (next.is_never()) return false;
        if (next > clock.now()) clock.advance_to(next);
        return true;
    }
    PathEvent event_of(SimDevice& device) {
        PathEvent event{};
        for (int tries = 0; tries < 100; ++tries) {
            if (device.next_event(event)) return event;
            if (!advance(device)) break;
        }
        ADD_FAILURE() << "no event came";
        return event;
    }
    /// Connects a to b; both paths are path 0.
    void connect() {
        ASSERT_EQ(b->listen(word("ear")), Status::success);
        a->resolve({host(2), word("ear")}, 5);
        ASSERT_EQ(event_of(*b).kind, PathEventKind::up);
        const PathEvent event = event_of(*a);
        ASSERT_EQ(event.kind, PathEventKind::resolved);
        ASSERT_EQ(event.cookie, 5U);
        ASSERT_EQ(event.path, 0U);
    }

    VirtualClock clock;
    FairWeather weather;
    Fabric fabric;
    std::unique_ptr<SimDevice> a;
    std::unique_ptr<SimDevice> b;
};

bool put(SimDevice& device, std::uint8_t number, std::uint32_t payload_length) {
    FrameSlot slot;
    if (!device.reserve(0, 16, payload_length, slot)) return false;
    std::memset(slot.header, number, 16);
    if (payload_length != 0) std::memset(slot.payload, number, payload_length);
    return true;
}

std::vector<int> numbers_received(SimDevice& device, std::size_t burst = 16) {
    std::vector<Frame> frames(burst);
    const std::size_t count = device.receive(frames);
    std::vector<int> numbers;
    for (std::size_t n = 0; n < count; ++n) {
        const Frame& frame = frames[n];
        const int number = static_cast<int>(frame.bytes[0]);
        EXPECT_EQ(frame.bytes[15], frame.bytes[0]);
        if (frame.payload != nullptr)
            EXPECT_EQ(frame.payload[frame.payload_length - 1], frame.bytes[0]);
        else
            EXPECT_EQ(frame.bytes[frame.length - 1], frame.bytes[0]);
        numbers.push_back(number);
    }
    device.release();
    return numbers;
}

TEST(SimDevice, resolve_is_answered_by_the_other_node_after_a_while) {
    Net net;
    net.a->resolve({host(2), word("ear")}, 1);
    PathEvent event{};
    EXPECT_FALSE(net.a->next_event(event));
    EXPECT_TRUE(net.a->next_deadline().is_never());  // the question is still on its way
    ASSERT_TRUE(net.advance(*net.b));
    EXPECT_FALSE(net.b->next_event(event));
    event = net.event_of(*net.a);
    EXPECT_EQ(event.kind, PathEventKind::unresolved);
    EXPECT_EQ(event.status, Status::no_match);
    EXPECT_GE(net.clock.now().ns, 1000);

    net.a->resolve({host(9), word("ear")}, 2);
    event = net.event_of(*net.a);
    EXPECT_EQ(event.status, Status::not_reachable);
    EXPECT_EQ(event.cookie, 2U);
    net.connect();
    EXPECT_EQ(net.a->peer_address(0), host(2));
    EXPECT_EQ(net.b->peer_address(0), host(1));
}

/// In one call.
std::uint32_t put_small(SimDevice& device, std::uint8_t number, std::uint32_t length, bool alone) {
    const std::uint64_t word = number * 0x0101'0101'0101'0101ULL;
    const std::vector<std::byte> payload(length, static_cast<std::byte>(number));
    return device.send_small(0, word, word, payload.data(), length, alone);
}

std::vector<int> all_received(Net& net, SimDevice& device) {
    std::vector<int> all;
    do {
        const std::vector<int> numbers = numbers_received(device);
        all.insert(all.end(), numbers.begin(), numbers.end());
    } while (net.advance(device));
    return all;
}

TEST(SimDevice, small_frames_are_published_by_the_next_transmit_or_by_notify_in_their_order) {
    Net net;
    net.connect();
    EXPECT_EQ(put_small(*net.a, 1, 8, false), 0U);
    EXPECT_EQ(put_small(*net.a, 2, 100, false), 0U);
    EXPECT_FALSE(net.advance(*net.b));  // nothing is on its way yet
    ASSERT_TRUE(put(*net.a, 3, 50));
    net.a->transmit(0);
    EXPECT_EQ(all_received(net, *net.b), (std::vector<int>{1, 2, 3}));

    EXPECT_EQ(put_small(*net.a, 4, 0, false), 0U);
    EXPECT_EQ(put_small(*net.a, 5, 8, false), 0U);
    EXPECT_FALSE(net.advance(*net.b));
    EXPECT_EQ(net.a->notify(), 0U);
    EXPECT_EQ(all_received(net, *net.b), (std::vector<int>{4, 5}));

    EXPECT_EQ(put_small(*net.a, 6, 8, false), 0U);
    EXPECT_EQ(put_small(*net.a, 7, 8, true), 0U);  // notify() is in it
    const std::vector<std::byte> eight(20, std::byte{8});
    EXPECT_EQ(net.a->send_pieces(0, 0x0808'0808'0808'0808, 0x0808'0808'0808'0808,
                                 {eight.data(), 7, eight.data() + 7, 13}),
              0U);
    EXPECT_EQ(all_received(net, *net.b), (std::vector<int>{6, 7, 8}));
}

TEST(SimDevice, small_frames_need_room) {
    Net net({600, 3, 100});
    net.connect();
    EXPECT_EQ(put_small(*net.a, 1, 101, true), SmallSends::not_sent);  // it is not small
    EXPECT_EQ(put_small(*net.a, 1, 100, false), 0U);
    EXPECT_EQ(put_small(*net.a, 3, 8, false), 0U);
    EXPECT_EQ(put_small(*net.a, 4, 8, false), 0U);
    EXPECT_EQ(put_small(*net.a, 5, 8, false), SmallSends::not_sent);
    EXPECT_EQ(net.a->send_pieces(0, 0, 0, {nullptr, 0, nullptr, 0}), SmallSends::not_sent);
    EXPECT_FALSE(put(*net.a, 5, 8));
    net.a->notify();
    EXPECT_EQ(all_received(net, *net.b), (std::vector<int>{1, 3, 4}));
    ASSERT_TRUE(net.advance(*net.a));
    EXPECT_FALSE(net.a->has_work());  // takes the room in
    EXPECT_EQ(put_small(*net.a, 5, 8, true), 0U);
}

TEST(SimDevice, frames_arrive_in_order_and_not_before_their_time) {
    Net net;
    net.connect();
    for (std::uint8_t n = 1; n <= 9; ++n) ASSERT_TRUE(put(*net.a, n, n == 5 ? 0 : n * 37U));
    EXPECT_TRUE(net.b->next_deadline().is_never());  // reserved only
    net.a->transmit(0);
    EXPECT_GT(net.b->next_deadline(), net.clock.now());
    EXPECT_FALSE(net.b->has_work());
    std::vector<int> all;
    Time before = net.clock.now();
    while (all.size() < 9) {
        ASSERT_TRUE(net.advance(*net.b));
        for (int number : numbers_received(*net.b, 2)) all.push_back(number);
        EXPECT_GE(net.clock.now(), before);
        before = net.clock.now();
    }
    EXPECT_EQ(all, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(SimDevice, full_link_presses_back_until_the_credit_came_home) {
    Net net({256, 3});
    net.connect();
    for (std::uint8_t n = 1; n <= 3; ++n) ASSERT_TRUE(put(*net.a, n, 100));
    EXPECT_FALSE(put(*net.a, 4, 100));
    net.a->set_waiting_for_room(0);
    net.a->transmit(0);
    std::vector<int> all;
    while (all.size() < 3) {
        ASSERT_TRUE(net.advance(*net.b));
        for (int number : numbers_received(*net.b)) all.push_back(number);
    }
    EXPECT_FALSE(net.a->has_work());  // given back there, not known here
    ASSERT_TRUE(net.advance(*net.a));
    EXPECT_TRUE(net.a->has_work());
    EXPECT_EQ(net.a->next_deadline(), net.clock.now());
    PathEvent event{};
    EXPECT_FALSE(net.a->next_event(event));  // a turn begins, and asks again if it must
    EXPECT_FALSE(net.a->has_work());
    while (net.advance(*net.a) && !net.a->next_deadline().is_never()) net.a->has_work();
    for (std::uint8_t n = 4; n <= 6; ++n) EXPECT_TRUE(put(*net.a, n, 100));
    EXPECT_FALSE(put(*net.a, 7, 100));
}

TEST(SimDevice, death_is_heard_after_what_was_sent_before) {
    Net net;
    net.connect();
    ASSERT_TRUE(put(*net.a, 1, 3000));
    net.a->transmit(0);
    net.a.reset();
    PathEvent event{};
    while (net.advance(*net.b) && net.b->next_deadline() == net.clock.now()) {
        if (!net.b->next_event(event)) break;
    }
    ASSERT_NE(event.kind, PathEventKind::down);
    EXPECT_EQ(numbers_received(*net.b), (std::vector<int>{1}));
    EXPECT_EQ(net.event_of(*net.b).kind, PathEventKind::down);

    net.b->resolve({host(1), word("ear")}, 3);
    EXPECT_EQ(net.event_of(*net.b).status, Status::not_reachable);
}

TEST(SimDevice, death_answers_a_question_on_its_way) {
    Net net;
    net.a->resolve({host(2), word("ear")}, 4);
    net.b.reset();
    const PathEvent event = net.event_of(*net.a);
    EXPECT_EQ(event.kind, PathEventKind::unresolved);
    EXPECT_EQ(event.status, Status::not_reachable);
}

/// Many NICs have one address under `via lab exec`: one that leaves is not all of them.
TEST(SimDevice, death_of_one_of_an_address_is_no_answer_for_the_others) {
    Net net;
    auto other = std::make_unique<SimDevice>(net.fabric, host(2));
    net.a->resolve({host(2), word("ear")}, 4);
    net.b.reset();
    PathEvent none{};
    while (net.advance(*other)) EXPECT_FALSE(other->next_event(none));  // it answers
    EXPECT_EQ(net.event_of(*net.a).status, Status::no_match);

    net.a->resolve({host(2), word("ear")}, 5);
    auto heir = std::make_unique<SimDevice>(net.fabric, host(2));
    ASSERT_EQ(heir->listen(word("ear")), Status::success);
    other.reset();
    ASSERT_EQ(net.event_of(*heir).kind, PathEventKind::up);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::resolved);
}

TEST(SimDevice, path_closed_for_a_violation_ends_on_both_sides_and_can_be_made_anew) {
    Net net({256, 2});
    net.connect();
    ASSERT_TRUE(put(*net.a, 1, 10));
    ASSERT_TRUE(put(*net.a, 2, 10));
    net.a->transmit(0);
    ASSERT_TRUE(net.advance(*net.b));
    std::array<Frame, 1> frames;
    ASSERT_EQ(net.b->receive(frames), 1U);
    net.b->close_for_violation(0, "test");
    net.b->release();
    EXPECT_EQ(net.event_of(*net.b).kind, PathEventKind::down);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::down);
    while (net.advance(*net.b)) EXPECT_TRUE(numbers_received(*net.b).empty());

    net.a->resolve({host(2), word("ear")}, 6);
    EXPECT_EQ(net.event_of(*net.b).kind, PathEventKind::up);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::resolved);
    // No frame of the former path still takes room away.
    EXPECT_TRUE(put(*net.a, 3, 10));
    EXPECT_TRUE(put(*net.a, 4, 10));
    net.a->transmit(0);
    std::vector<int> all;
    while (all.size() < 2 && net.advance(*net.b))
        for (int number : numbers_received(*net.b)) all.push_back(number);
    EXPECT_EQ(all, (std::vector<int>{3, 4}));
}

TEST(SimDevice, node_reaches_itself) {
    Net net;
    ASSERT_EQ(net.a->listen(word("self")), Status::success);
    net.a->resolve({host(1), word("self")}, 8);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::up);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::resolved);
    ASSERT_TRUE(put(*net.a, 7, 5));
    net.a->transmit(0);
    ASSERT_TRUE(net.advance(*net.a));
    EXPECT_EQ(numbers_received(*net.a), (std::vector<int>{7}));
}

TEST(SimDevice, nodes_of_one_address_share_its_discriminators) {
    Net net;
    SimDevice second(net.fabric, host(2));
    ASSERT_EQ(second.listen(word("ear")), Status::success);
    EXPECT_EQ(net.b->listen(word("ear")), Status::error_resource);
    net.a->resolve({host(2), word("ear")}, 1);
    EXPECT_EQ(net.event_of(second).kind, PathEventKind::up);
    EXPECT_EQ(net.event_of(*net.a).kind, PathEventKind::resolved);
    second.unlisten(word("ear"));
    EXPECT_EQ(net.b->listen(word("ear")), Status::success);
}

TEST(FairWeather, the_seed_alone_decides) {
    const auto delays = [](std::uint64_t seed) {
        FairWeather weather(seed, {});
        std::vector<std::int64_t> result;
        for (NodeId to = 1; to < 4; ++to)
            for (std::int64_t n = 0; n < 5; ++n)
                result.push_back(weather.fate({0, to, Time{n * 100}, 1000}).delay.ns);
        return result;
    };
    EXPECT_EQ(delays(3), delays(3));
    EXPECT_NE(delays(3), delays(4));
}

TEST(FairWeather, long_parcels_hold_the_wire) {
    FairWeather weather(1, {nanoseconds(100), nanoseconds(100), Duration{}, 1024});
    EXPECT_EQ(weather.fate({0, 1, Time{0}, 1000}).delay, nanoseconds(1100));
    EXPECT_EQ(weather.fate({0, 1, Time{0}, 1000}).delay, nanoseconds(2100));
    EXPECT_EQ(weather.fate({0, 1, Time{1500}, 10}).delay, nanoseconds(610));
    EXPECT_EQ(weather.fate({0, 2, Time{0}, 10}).delay, nanoseconds(110));
}

}  // namespace
}  // namespace via::device::sim::sim_device_test
