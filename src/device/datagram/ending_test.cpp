// Scenarios of silence, parting and peers that lie.
#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::ending_test {
namespace {

TEST_F(Carrying, silence_ends_a_path) {
    network.weather = [](const Datagram&) { return Fate{}; };
    const Time begin = network.now;
    ASSERT_TRUE(run(seconds(6), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_NEAR(double((network.now - begin).ns), 5e9, 2e6);
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
}

TEST_F(Carrying, who_is_given_up_hears_of_it_if_he_can) {
    network.weather = [](const Datagram& datagram) {
        return datagram.from.bytes[3] == 2 ? Fate{} : Fate{microseconds(10)};
    };
    ASSERT_TRUE(run(seconds(6), [&] { return count(a, PathEventKind::down) == 1; }));
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::down), 1U) << "without patience of its own";
}

TEST_F(Carrying, who_talks_and_takes_nothing_is_given_up) {
    std::uint64_t connection = 0;
    network.weather = [&](const Datagram& sent) {
        if (sent.from.bytes[3] == 1) std::memcpy(&connection, sent.bytes.data() + 8, 8);
        return sent.from.bytes[3] == 1 ? Fate{microseconds(10)} : Fate{};  // b's never arrive
    };
    a.send("to learn the identifier");
    run(microseconds(50));
    ends = {&b};
    b.send("not acknowledged");
    Datagram ping{address(1, 40000), address(2, 40000),
                  std::vector<std::byte>(wire::data_header_length + wire::chunk_prefix_length)};
    wire::emit_ping_chunk(ping.bytes.data() + wire::data_header_length);
    const Time begin = network.now;
    for (std::uint64_t number = 100; number < 200; ++number) {
        wire::seal_data(ping.bytes, connection, number);
        network.deliver(network.now, ping);
        if (run(milliseconds(100), [&] { return count(b, PathEventKind::down) == 1; })) break;
    }
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
    EXPECT_NEAR(double((network.now - begin).ns), 5e9, 0.5e9);
}

/// Nobody runs a, nor does anything arrive there; b, too, has said nothing.
void stand_still(Scene& scene, Duration span) { scene.network.now = scene.network.now + span; }

TEST_F(Carrying, who_stood_still_asks_before_giving_up) {
    for (const std::int64_t span : {2, 5, 20}) {
        stand_still(*this, seconds(span));
        run(seconds(10));
        EXPECT_TRUE(a.is_up && b.is_up) << span;
    }
}

TEST_F(Carrying, who_stood_still_gives_the_rest_of_its_patience) {
    network.weather = [](const Datagram&) { return Fate{}; };
    run(milliseconds(2500));
    network.log.clear();
    stand_still(*this, seconds(60));
    const Time begin = network.now;
    ASSERT_TRUE(run(seconds(6), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_GE((network.now - begin).ns, seconds(2).ns);
    EXPECT_LE((network.now - begin).ns, seconds(4).ns);
    EXPECT_GE(network.sent_by(1), 3U) << "asked, not once";
}

TEST_F(Carrying, a_hint_before_standing_still_ends_nothing) {
    lose({0});
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    a.turn();
    stand_still(*this, seconds(1));
    run(seconds(1));
    EXPECT_TRUE(a.is_up && b.is_up);
}

TEST_F(Carrying, a_true_hint_after_long_silence_ends_it_soon) {
    network.weather = [](const Datagram&) { return Fate{}; };
    a.send("lost");
    run(seconds(2));
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    const Time begin = network.now;
    a.turn();
    ASSERT_TRUE(run(seconds(1), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_LT((network.now - begin).ns, milliseconds(5).ns);
}

TEST_F(Carrying, a_true_hint_while_standing_still_ends_it_soon) {
    network.weather = [](const Datagram&) { return Fate{}; };
    stand_still(*this, seconds(20));
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    const Time begin = network.now;
    ASSERT_TRUE(run(seconds(1), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_LT((network.now - begin).ns, milliseconds(5).ns);
}

TEST_F(Carrying, who_answers_late_is_asked_more_than_once_before_it_is_given_up) {
    network.weather = [](const Datagram&) { return Fate{milliseconds(1400)}; };
    a.send("late");
    ASSERT_TRUE(run(seconds(4), [&] { return a.arrived.size() == 1; }));
    network.weather = [](const Datagram&) { return Fate{}; };
    a.send("lost");  // the probe timeout is of some seconds now
    network.log.clear();
    ASSERT_TRUE(run(seconds(10), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_GE(network.sent_by(1), 2U) << since();
}

TEST_F(Carrying, an_idle_path_says_little) {
    run(seconds(60));
    EXPECT_TRUE(a.is_up && b.is_up);
    // A ping and its answer every third of the patience, from either.
    EXPECT_LE(network.log.size(), 2U * 3 * 36);
    EXPECT_GE(network.log.size(), 2U * 36);
}

TEST_F(Carrying, a_hint_that_quotes_nothing_of_ours_is_none) {
    const std::uint32_t longest = a.device->statistics(a.path).datagram_max;
    network.weather = [](const Datagram&) { return Fate{}; };  // the peer stands still
    for (int n = 0; n < 100; ++n)
        for (const NetworkErrorKind kind :
             {NetworkErrorKind::port_unreachable, NetworkErrorKind::too_long})
            for (const std::uint64_t guess : {0ULL, 4711ULL})
                a.port().network_errors.push_back({kind, address(2, 40000), 600, guess});
    a.turn();
    EXPECT_EQ(since(), "\n") << "it asks for no sign of life";
    run(milliseconds(100));
    EXPECT_TRUE(a.is_up);
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, longest);
}

TEST_F(Carrying, a_forged_hint_ends_nothing) {
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    a.turn();
    EXPECT_EQ(network.log.size(), 1U) << "a ping";
    run(seconds(1));
    EXPECT_TRUE(a.is_up);
}

TEST_F(Carrying, a_forged_hint_ends_nothing_while_the_port_takes_no_question) {
    a.port().send_max = 0;
    a.send("waits");
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    a.turn();
    run(seconds(1));
    EXPECT_TRUE(a.is_up);
    a.port().send_max = ~std::size_t{0};
    run(seconds(1));
    EXPECT_TRUE(a.is_up && b.is_up);
    EXPECT_EQ(b.received.size(), 1U);
}

TEST_F(Carrying, a_true_hint_ends_it_soon) {
    network.weather = [](const Datagram&) { return Fate{}; };
    a.port().hint(NetworkErrorKind::port_unreachable, address(2, 40000), 0);
    const Time begin = network.now;
    a.turn();
    ASSERT_TRUE(run(seconds(1), [&] { return count(a, PathEventKind::down) == 1; }));
    EXPECT_LT((network.now - begin).ns, milliseconds(5).ns);
}

TEST_F(Carrying, parting) {
    a.send("last words");
    a.device.reset();
    run(milliseconds(1));
    EXPECT_EQ(b.received, std::vector<std::string>{"last words"}) << "before the end is told";
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (26)
0 1>2 close
)") << "the acknowledgement has nowhere to go";
}

TEST_F(Carrying, closed_for_a_protocol_violation) {
    a.send("harmless");
    a.send("evil");
    a.send("more");
    network.now = network.now + microseconds(10);
    b.on_message = [&](const std::string& message) {
        if (message == "evil") b.device->close_for_violation(b.path, "a test");
    };
    b.turn();
    EXPECT_EQ(count(b, PathEventKind::down), 0U);
    b.turn();
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
    run(milliseconds(1));
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
}

TEST_F(Carrying, an_acknowledgement_of_what_was_not_sent_closes_the_path) {
    Datagram datagram;
    network.weather = [&](const Datagram& sent) {
        if (sent.from.bytes[3] == 2) datagram = sent;
        return Fate{microseconds(10)};
    };
    a.send("hello");
    run(milliseconds(1));
    // The acknowledgement again, with a number of its own and another largest.
    wire::Ack ack;
    ack.largest = 100;
    ack.count = 1;
    ack.ranges[0] = {0, 1};
    std::uint64_t connection;
    std::memcpy(&connection, datagram.bytes.data() + 8, 8);
    datagram.bytes.resize(wire::data_header_length + wire::ack_length(ack));
    wire::emit_ack_chunk(ack, datagram.bytes.data() + wire::data_header_length);
    wire::seal_data(datagram.bytes, connection, 50);
    network.deliver(network.now, datagram);
    run(milliseconds(1));
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
}

/// `of_a_connection`: or we only refused one.
struct Remembering : Carrying, testing::WithParamInterface<bool> {
    void say_what_is_never_acknowledged() {
        if (GetParam()) return b.send("not acknowledged");
        FrameSlot slot;
        ASSERT_TRUE(b.device->reserve(b.path, End::header_length, 8, slot));
        wire::emit({.kind = wire::FrameKind::refuse}, slot.header);
        std::memset(slot.payload, 0, 8);
        b.device->transmit(b.path);
        b.device->notify();
    }
};
INSTANTIATE_TEST_SUITE_P(OfAConnection, Remembering, testing::Bool());

TEST_P(Remembering, who_acknowledges_nothing_makes_us_remember_no_more_than_some) {
    const std::uint32_t most = GetParam() ? packets_remembered_max : packets_remembered_least;
    std::uint64_t connection = 0;
    network.weather = [&](const Datagram& sent) {
        network.log.clear();
        if (sent.from.bytes[3] == 1) std::memcpy(&connection, sent.bytes.data() + 8, 8);
        return sent.from.bytes[3] == 1 ? Fate{microseconds(10)} : Fate{};  // b's never arrive
    };
    a.send("to learn the identifier");
    run(microseconds(50));
    say_what_is_never_acknowledged();
    // Each shows a gap, and so is acknowledged at once.
    Datagram ping{address(1, 40000), address(2, 40000),
                  std::vector<std::byte>(wire::data_header_length + wire::chunk_prefix_length)};
    wire::emit_ping_chunk(ping.bytes.data() + wire::data_header_length);
    for (std::uint32_t n = 1; n <= 3 * most; ++n) {
        wire::seal_data(ping.bytes, connection, std::uint64_t{10} + 2 * n);
        network.deliver(network.now, ping);
        b.turn();
        network.now = network.now + microseconds(1);
    }
    const PathStatistics known = b.device->statistics(b.path);
    EXPECT_TRUE(b.is_up);
    EXPECT_GT(known.acks_alone, 2 * most);
    EXPECT_LE(known.packets_remembered, most + 16);
    EXPECT_FALSE(b.lost.empty()) << "it is sent again, as what is lost";
}

TEST_F(Carrying, spoofed_packets_are_dropped) {
    Datagram datagram;
    network.weather = [&](const Datagram& sent) {
        if (sent.from.bytes[3] == 1) datagram = sent;
        return sent.from.bytes[3] == 1 ? Fate{} : Fate{microseconds(10)};
    };
    a.send("mine");
    Datagram spoofed = datagram;
    spoofed.from = address(9, 40000);
    network.deliver(network.now, spoofed);
    run(microseconds(100));
    EXPECT_TRUE(b.received.empty());
    EXPECT_EQ(b.device->totals().wrong_address, 1U);
    Datagram guessed = datagram;
    wire::seal_data(guessed.bytes, 12345, 0);
    network.deliver(network.now, guessed);
    run(microseconds(100));
    EXPECT_TRUE(b.received.empty());
    EXPECT_EQ(b.device->totals().unknown_connection, 1U);
    Datagram corrupt = datagram;
    corrupt.bytes[30] ^= std::byte{1};
    network.deliver(network.now, corrupt);
    run(microseconds(100));
    EXPECT_EQ(b.device->totals().checksum, 1U);
    EXPECT_TRUE(b.received.empty());
}

TEST_F(Carrying, a_peer_that_lost_the_path_gets_a_new_one) {
    // We close it for a protocol violation, and the word of that is lost.
    network.weather = [](const Datagram& datagram) {
        return datagram.kind() == wire::PacketKind::close ? Fate{} : Fate{microseconds(10)};
    };
    a.device->close_for_violation(a.path, "a test");
    run(microseconds(100));
    EXPECT_TRUE(b.is_up);
    network.weather = nullptr;
    network.log.clear();
    zero = network.now;
    ask_b();
    run(milliseconds(100));
    EXPECT_EQ(since(), R"(
0 1>2 query
10 2>1 answer
20 1>2 hello
30 2>1 retry
40 1>2 hello with a cookie
50 2>1 data #0 ping
60 1>2 close
20040 1>2 hello with a cookie
20050 2>1 welcome
)");
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
    EXPECT_EQ(count(b, PathEventKind::up), 2U);
    talk();
}

/// Well-formed packets of a peer that keeps no rule: it can end its own path, and nothing else.
TEST(Hostile, packets_at_random) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        Scene scene;
        std::uint64_t connection = 0;
        scene.network.weather = [&](const Datagram& datagram) {
            if (datagram.kind() == wire::PacketKind::data && datagram.from.bytes[3] == 1)
                std::memcpy(&connection, datagram.bytes.data() + 8, 8);
            return Fate{microseconds(10)};
        };
        scene.b.port().keep_max = 64;
        scene.meet();
        scene.a.send("to learn the identifier");
        for (int n = 0; n < 20; ++n) scene.b.send("something to acknowledge");
        scene.run(microseconds(50));
        std::uint64_t number = 1;
        for (int packets = 0; packets < 2000; ++packets) {
            std::vector<std::byte> bytes(2000);
            std::uint32_t length = wire::data_header_length;
            for (std::uint64_t chunks = random.below(12); chunks != 0; --chunks) {
                std::byte* const at = bytes.data() + length;
                switch (random.below(8)) {
                    case 0:
                        length += wire::emit_ping_chunk(at);
                        break;
                    case 1:
                        length += wire::emit_padding_chunk(
                            4 + static_cast<std::uint32_t>(random.below(20)), at);
                        break;
                    case 2: {
                        wire::Ack ack;
                        ack.largest = random.chance(98) ? random.below(20) : random.next();
                        ack.delay = static_cast<std::uint32_t>(random.next());
                        ack.count = 1;
                        ack.ranges[0] = {
                            0, static_cast<std::uint32_t>(
                                   1 + random.below(std::min<std::uint64_t>(ack.largest + 1, 5)))};
                        length += wire::emit_ack_chunk(ack, at);
                        break;
                    }
                    default: {
                        const auto size = static_cast<std::uint32_t>(1 + random.below(90));
                        const bool reliable = random.chance(80);
                        const auto frame = static_cast<std::uint32_t>(
                            random.chance(95) ? random.below(1100) : random.next());
                        wire::emit_frame_chunk(reliable, reliable ? frame : 0, size, at);
                        length += wire::frame_chunk_overhead + size;
                    }
                }
            }
            bytes.resize(length);
            if (random.chance(5)) bytes[random.below(length)] ^= std::byte{1};
            number += random.below(3);
            wire::seal_data(bytes, connection, random.chance(99) ? number : random.next());
            if (random.chance(2)) bytes[random.below(length)] ^= std::byte{1};
            scene.network.deliver(scene.network.now, {address(1, 40000), address(2, 40000), bytes});
            while (scene.b.device->has_work()) scene.b.turn();
            ASSERT_LE(scene.b.port().kept, 64U);
            scene.network.now = scene.network.now + microseconds(1);
        }
        EXPECT_LE(count(scene.b, PathEventKind::down), 1U);
    }
}

}  // namespace
}  // namespace via::device::datagram::test::ending_test
