// The common packet's short way puts accounts off. Nobody may miss them: not who waits for a frame
// to arrive, not who sleeps until a deadline.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test {
namespace {

struct Lone : Carrying {
    /// Lets what is on its way arrive at `end`, which looks once.
    void pass_to(End& end) {
        network.now = network.next_arrival();
        end.turn();
    }
};

TEST_F(Lone, a_frame_has_arrived_in_the_turn_that_brings_its_acknowledgement) {
    a.send("question");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    EXPECT_EQ(a.received, (std::vector<std::string>{"answer"}));
    a.turn();  // the test's end reaps before it receives
    EXPECT_EQ(a.arrived, (std::vector<std::uint32_t>{0}));
}

TEST_F(Lone, the_round_trip_is_that_of_the_packet_whenever_it_is_counted) {
    const Duration before = a.device->statistics(a.path).round_trip;
    network.delay = microseconds(700);
    a.send("question");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    network.now = network.now + milliseconds(50);  // the program does something else
    a.turn();
    const Duration sample = microseconds(1400);
    EXPECT_EQ(a.device->statistics(a.path).round_trip.ns, before.ns + (sample.ns - before.ns) / 8);
}

TEST_F(Lone, whoever_sleeps_knows_the_deadline_of_what_was_sent) {
    const Time idle = a.device->next_deadline();
    a.send("before the sleep");
    const Time due = a.device->next_deadline();
    EXPECT_LT(due, idle);
    EXPECT_FALSE(a.device->has_work());
    EXPECT_EQ(a.device->next_deadline(), due);
    a.device->arm(Sleep::on_handle);
    EXPECT_EQ(a.device->next_deadline(), due);
    run(seconds(1));
    const Time quiet = a.device->next_deadline();
    a.send("while somebody sleeps");
    EXPECT_LT(a.device->next_deadline(), quiet);
}

TEST_F(Lone, what_was_lost_is_found_by_who_sleeps_after_the_news) {
    a.send("first");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    lose({0});
    a.send("lost");
    a.send("second");
    a.send("third");
    a.send("fourth");
    pass_to(b);
    b.send("news");
    pass_to(a);
    a.device->arm(Sleep::on_handle);
    network.weather = nullptr;
    EXPECT_TRUE(run(milliseconds(50), [&] { return b.received.size() == 5; }));
    EXPECT_EQ(b.received[1], "lost");
}

TEST_F(Lone, a_path_that_ends_leaves_nothing_to_be_settled) {
    a.send("question");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    a.device->condemn(a.path, "for the test");
    EXPECT_TRUE(a.device->has_work());
    a.turn();
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_FALSE(a.device->has_work());
}

}  // namespace
}  // namespace via::device::datagram::test
