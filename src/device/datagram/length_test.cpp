// Scenarios of the length of packets.
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::length_test {
namespace {

struct Lengths : ::testing::Test, Scene {
    std::uint32_t carried = 9000;  ///< bytes in one piece
    void begin(std::uint32_t longest) {
        a.port().longest = b.port().longest = longest;
        network.weather = [this](const Datagram& datagram) {
            return datagram.bytes.size() > carried ? Fate{} : Fate{microseconds(10)};
        };
        meet();
    }
    /// As an engine would cut a message for the path.
    void stream(int messages) {
        const std::size_t had = b.received.size();
        for (int n = 0; n < messages; ++n) {
            a.send(std::string(a.payload_max[a.path], static_cast<char>('a' + n % 26)));
            run(microseconds(50));
        }
        ASSERT_TRUE(run(seconds(5), [&] {
            return b.received.size() == had + static_cast<std::size_t>(messages) &&
                   a.under_way() == 0;
        }));
    }
};

TEST_F(Lengths, longer_ones_are_found) {
    begin(9000);
    EXPECT_EQ(a.payload_max[a.path], 1400U) << "beyond the first host";
    stream(100);
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 9000U);
    EXPECT_EQ(a.payload_max[a.path], 8928U);
}

TEST_F(Lengths, as_long_as_the_way_carries) {
    carried = 5000;
    begin(9000);
    stream(300);
    EXPECT_LE(a.device->statistics(a.path).datagram_max, 5000U);
    EXPECT_GE(a.device->statistics(a.path).datagram_max, 4900U);
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U) << "probes do not count";
}

TEST_F(Lengths, are_not_looked_for_while_nothing_is_said) {
    carried = 5000;
    begin(9000);
    a.send(std::string(100, 'x'));
    run(seconds(5));
    // The message, one probe after the other until one is lost, a question; then signs of life.
    EXPECT_LE(a.device->statistics(a.path).packets_sent, 12U);
    stream(300);
    EXPECT_GE(a.device->statistics(a.path).datagram_max, 4900U);
}

TEST_F(Lengths, an_interface_that_carries_more_is_noticed) {
    begin(1472);
    stream(10);
    a.port().longest = b.port().longest = 9000;
    a.device->service(network.now);
    stream(200);
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 9000U);
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U);
}

TEST_F(Lengths, where_only_ours_carries_more_nothing_is_lost_by_it) {
    begin(1472);
    stream(10);
    a.port().longest = 9000;
    carried = 1472;
    a.device->service(network.now);
    stream(200);
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 1472U);
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U);
}

TEST_F(Lengths, a_way_that_carries_more_is_found_after_ten_minutes) {
    carried = 5000;
    begin(9000);
    stream(300);
    carried = 9000;
    stream(300);
    EXPECT_LE(a.device->statistics(a.path).datagram_max, 5000U);
    run(seconds(601));
    stream(300);
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 9000U);
}

TEST_F(Lengths, told_of_a_narrower_way) {
    begin(1472);
    stream(10);
    carried = 1000;
    a.port().hint(NetworkErrorKind::too_long, address(2, 40000), 1000);
    stream(200);
    EXPECT_LE(a.device->statistics(a.path).datagram_max, 1000U);
    EXPECT_GE(a.device->statistics(a.path).datagram_max, 900U);
}

/// By somebody who sees our packets, again and again.
TEST_F(Lengths, told_so_without_truth) {
    begin(1472);
    stream(10);
    for (int n = 0; n < 200; ++n) {
        a.port().hint(NetworkErrorKind::too_long, address(2, 40000), 600);
        stream(1);
        ASSERT_EQ(a.device->statistics(a.path).datagram_max, 1472U) << n << ": it was proven";
    }
}

TEST_F(Lengths, what_our_own_host_says_is_true) {
    begin(1472);
    a.port().network_errors.push_back(
        {NetworkErrorKind::too_long, address(2, 40000), 1000, 0, true});
    a.turn();
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 548U);
}

TEST_F(Lengths, a_black_hole_is_noticed) {
    begin(1472);
    stream(10);
    carried = 700;
    stream(200);
    EXPECT_LE(a.device->statistics(a.path).datagram_max, 700U);
    EXPECT_GE(a.device->statistics(a.path).datagram_max, 548U);
    EXPECT_EQ(a.payload_max[a.path], a.device->statistics(a.path).datagram_max - 72);
}

TEST_F(Lengths, a_short_message_in_a_long_packet_takes_the_acknowledgement_along) {
    carried = 65507;
    begin(65507);
    stream(300);
    ASSERT_EQ(a.device->statistics(a.path).datagram_max, 65507U);
    a.on_message = [&](const std::string&) { a.send("answer"); };
    const auto talk_across = [&] {
        for (int n = 0; n < 10; ++n) {
            b.send("question");
            run(microseconds(5));
            a.send("under way when that comes");
            run(microseconds(100));
        }
        return a.device->statistics(a.path).acks_alone;
    };
    const std::uint64_t before = talk_across();  // b finds its length
    EXPECT_EQ(talk_across(), before);
    a.on_message = nullptr;
}

/// A probe is due with the answer that tells that a message came. That is heard late: by who,
/// filling packets already, has to know how much room there is.
struct Probes : Lengths {
    static constexpr std::uint32_t each = 1400;  // packets are full
    static constexpr std::uint64_t packet = each + 48;

    void SetUp() override {
        b.port().room = 16 << 20;
        begin(9000);
        a.device->arm(Sleep::awake);
        network.weather = nullptr;
        b.send("first");  // those behind it take the fast path
        run(milliseconds(1));
    }
    void pass() { network.now = network.now + network.delay; }
    void publish() {
        a.device->transmit(a.path);
        a.device->notify();
    }
    /// What is under way is answered by a message, which a takes as a NIC does: what its
    /// acknowledgement tells is for the next turn.
    void take_answer() {
        b.on_message = [this, answers = 0](const std::string&) mutable {
            if (answers++ == 0) b.send("answer");
        };
        pass();
        b.turn();
        b.on_message = nullptr;
        pass();
        PathEvent event;
        while (a.device->next_event(event)) ADD_FAILURE() << "an event";
        Frame frames[16];
        ASSERT_EQ(a.device->receive(frames), 1U);
        a.device->release();
        network.log.clear();
    }
    /// One has left, behind so many packets of the message.
    void expect_behind(std::size_t packets) {
        const auto is_probe = [](const std::string& line) {
            return line.find(" 1>2 data ") != std::string::npos && line.ends_with(" ping padding");
        };
        const auto& log = network.log;
        const auto probe = std::find_if(log.begin(), log.end(), is_probe);
        ASSERT_NE(probe, log.end()) << transcript();
        ASSERT_EQ(std::count_if(log.begin(), probe,
                                [](const std::string& line) {
                                    return line.find(" frame ") != std::string::npos;
                                }),
                  packets)
            << transcript();
        ASSERT_EQ(std::count_if(probe, log.end(), is_probe), 1);
    }
    void expect_to_arrive(const std::string& all) {
        run(milliseconds(5));
        std::string came;
        for (const std::string& one : b.received) came += one;
        EXPECT_EQ(came.size(), all.size());
        EXPECT_TRUE(came == all);
        EXPECT_EQ(a.under_way(), 0U);
        EXPECT_EQ(a.device->statistics(a.path).probe_timeouts, 0U);
    }
};

TEST_F(Probes, do_not_come_into_a_run) {
    a.send("question");
    take_answer();
    std::string message;
    for (char n = 0; n < 30; ++n) message += std::string(each, static_cast<char>('a' + n));
    ASSERT_EQ(a.send_run(message, each), 30U);
    publish();
    ASSERT_NO_FATAL_FAILURE(expect_behind(30));
    expect_to_arrive("question" + message);
    EXPECT_GT(a.device->statistics(a.path).datagram_max, datagram_length_first);
}

TEST_F(Probes, do_not_come_between_frames_that_are_handed_over_together) {
    const auto room = [this] {
        const PathStatistics now = a.device->statistics(a.path);
        return (now.window - now.in_flight) / packet;
    };
    std::string all;
    for (; room() != 1; all += a.lent.back()) {
        ASSERT_EQ(a.send_run(std::string(each, 'x'), each), 1U);
        publish();
    }
    take_answer();
    ASSERT_EQ(room(), 1U) << "that they came was not heard yet";
    for (const char letter : {'y', 'z'}) {
        ASSERT_EQ(a.send_run(std::string(each, letter), each), 1U);
        all += a.lent.back();
    }
    publish();
    ASSERT_NO_FATAL_FAILURE(expect_behind(2));
    expect_to_arrive(all);
    EXPECT_GT(a.device->statistics(a.path).datagram_max, datagram_length_first);
}

TEST_F(Lengths, a_hint_about_others_changes_nothing) {
    begin(1472);
    a.port().hint(NetworkErrorKind::too_long, address(3, 40000), 600);
    a.turn();
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 1472U);
}

}  // namespace
}  // namespace via::device::datagram::test::length_test
