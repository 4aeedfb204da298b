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
    a.port().troubles.push_back({TroubleKind::too_long, address(2, 40000), 1000});
    stream(200);
    EXPECT_LE(a.device->statistics(a.path).datagram_max, 1000U);
    EXPECT_GE(a.device->statistics(a.path).datagram_max, 900U);
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

TEST_F(Lengths, a_hint_about_others_changes_nothing) {
    begin(1472);
    a.port().troubles.push_back({TroubleKind::too_long, address(3, 40000), 600});
    a.turn();
    EXPECT_EQ(a.device->statistics(a.path).datagram_max, 1472U);
}

}  // namespace
}  // namespace via::device::datagram::test::length_test
