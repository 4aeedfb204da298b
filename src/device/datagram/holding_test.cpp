// When small messages share a packet, and when they leave at once.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::holding_test {
namespace {

struct Holding : Carrying {
    Holding() { a.device->arm(Sleep::awake); }
    std::size_t packets() const { return network.sent_by(1); }
    /// A program that looks at the network before each of its messages.
    void send_and_look(int count) {
        for (int n = 0; n < count; ++n) {
            a.turn();
            a.send("message");
            network.now = network.now + microseconds(3);
        }
    }
};

TEST_F(Holding, a_lone_message_leaves_at_once) {
    for (int n = 0; n < 20; ++n) {
        const std::size_t before = packets();
        a.send("question");
        EXPECT_EQ(packets(), before + 1);
        network.now = network.next_arrival();
        b.turn();
        b.send("answer");
        network.now = network.next_arrival();
        a.turn();
    }
}

TEST_F(Holding, many_between_two_looks_share_packets) {
    const std::string message(100, 'x');
    const std::size_t before = packets();
    for (int n = 0; n < 6; ++n) a.send(message);
    EXPECT_EQ(packets(), before + 3) << "the first do not wait";
    EXPECT_TRUE(a.device->has_work()) << "nobody falls asleep on the others";
    a.turn();
    EXPECT_EQ(packets(), before + 4);
    for (int n = 0; n < 12; ++n) a.send(message);
    EXPECT_EQ(packets(), before + 5) << "enough for a packet of their own";
    a.turn();
    EXPECT_EQ(packets(), before + 6);
    run(milliseconds(1));
    EXPECT_EQ(b.received, std::vector<std::string>(18, message));
    EXPECT_EQ(a.arrived.size(), 18U);
}

TEST_F(Holding, in_quick_succession_without_an_answer_they_wait_for_the_next_look) {
    const std::size_t before = packets();
    send_and_look(3);
    EXPECT_EQ(packets(), before + 3);
    a.turn();
    a.send("held");
    a.send("held, too");
    EXPECT_EQ(packets(), before + 3);
    a.turn();
    EXPECT_EQ(packets(), before + 4);
    run(milliseconds(1));
    EXPECT_EQ(b.received.size(), 5U);
}

TEST_F(Holding, a_slow_sender_gains_nothing_by_waiting) {
    send_and_look(5);
    a.turn();
    network.now = network.now + quick_succession + microseconds(1);
    const std::size_t before = packets();
    a.send("message");
    EXPECT_EQ(packets(), before + 1);
}

TEST_F(Holding, an_answer_begins_anew) {
    send_and_look(3);
    run(microseconds(10));
    b.send("answer");
    run(microseconds(10));
    const std::size_t before = packets();
    a.send("message");
    EXPECT_EQ(packets(), before + 1);
}

TEST_F(Holding, who_posted_many_is_remembered_for_some_looks) {
    for (int n = 0; n < 16; ++n) a.send("message");
    a.turn();
    run(microseconds(10));
    b.send("answer");
    run(microseconds(10));
    std::vector<std::size_t> at_once;
    for (int n = 0; n < 4; ++n) {
        network.now = network.now + milliseconds(1);
        const std::size_t before = packets();
        a.send("message");
        at_once.push_back(packets() - before);
        a.turn();
    }
    EXPECT_EQ(at_once, (std::vector<std::size_t>{0, 0, 0, 1}));
}

TEST_F(Holding, nothing_waits_where_nobody_looks) {
    a.device->arm(Sleep::on_handle);
    const std::size_t before = packets();
    for (int n = 0; n < 8; ++n) a.send("message");
    EXPECT_EQ(packets(), before + 8);
}

}  // namespace
}  // namespace via::device::datagram::test::holding_test
