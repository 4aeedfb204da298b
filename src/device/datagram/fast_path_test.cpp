// The common packet's fast path puts accounts off. Nobody may miss them: not who waits for a frame
// to arrive, not who sleeps until a deadline.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::fast_path_test {
namespace {

/// As a NIC takes a lone message: it reaps the next time.
bool take_lone(End& end) {
    PathEvent event;
    EXPECT_FALSE(end.device->next_event(event));
    Frame frames[2];
    const std::size_t count = end.device->receive(frames);
    end.device->release();
    return count == 1;
}

struct FastPath : Carrying {
    /// Lets what is on its way arrive at `end`, which looks once.
    void pass_to(End& end) {
        network.now = network.next_arrival();
        end.turn();
    }
};

TEST_F(FastPath, a_frame_has_arrived_in_the_turn_that_brings_its_acknowledgement) {
    a.send("question");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    EXPECT_EQ(a.received, (std::vector<std::string>{"answer"}));
    a.turn();  // the test's end reaps before it receives
    EXPECT_EQ(a.arrived, (std::vector<std::uint32_t>{0}));
}

TEST_F(FastPath, an_acknowledgement_that_came_with_an_answer_is_heard_without_a_further_look) {
    a.device->arm(Sleep::awake);
    a.send("question");
    pass_to(b);
    b.send("answer");
    network.now = network.next_arrival();
    ASSERT_TRUE(take_lone(a));
    const std::size_t looks = a.port().looks;
    ASSERT_TRUE(a.device->may_have_reaped());
    Reaped reaped[2];
    ASSERT_EQ(a.device->reap(reaped), 1U);
    EXPECT_EQ(reaped[0].number, 0U);
    EXPECT_FALSE(reaped[0].lost);
    EXPECT_EQ(a.port().looks, looks);
}

TEST_F(FastPath, an_answer_has_the_room_that_its_question_brought) {
    network.weather = [](const Datagram&) { return Fate{}; };
    a.send("nobody hears");
    run(milliseconds(9));  // the window has collapsed
    network.weather = nullptr;
    ASSERT_TRUE(run(seconds(1), [&] { return a.under_way() == 0; }));
    run(milliseconds(5));
    a.device->arm(Sleep::awake);
    while (a.waiting() == 0) a.send(std::string(1400, 'x'));
    bool answered = false;
    b.on_message = [&](const std::string&) {
        if (!std::exchange(answered, true)) b.send("question");
    };
    pass_to(b);
    network.now = network.next_arrival();
    ASSERT_TRUE(take_lone(a));
    a.push();
    EXPECT_EQ(a.waiting(), 0U);
}

/// Its first packet had room before.
TEST_F(FastPath, a_burst_that_answers_has_the_room_that_its_question_brought) {
    constexpr std::uint32_t each = 1300;
    b.port().room = 1 << 20;  // it need not acknowledge a part of it at once
    b.send("the first");
    run(milliseconds(1));
    ASSERT_EQ(a.send_run(std::string(40 * each, 'x'), each), 40U);
    a.device->transmit(a.path);
    a.device->notify();
    pass_to(b);
    b.send("question");
    network.now = network.next_arrival();
    ASSERT_LT(a.device->statistics(a.path).window, (40 + 20) * each);
    a.device->arm(Sleep::awake);
    ASSERT_TRUE(take_lone(a));
    EXPECT_GT(a.device->statistics(a.path).in_flight, 0U) << "nothing was heard yet";
    EXPECT_EQ(a.send_run(std::string(20 * each, 'y'), each), 20U);
    a.device->transmit(a.path);
    a.device->notify();
    run(milliseconds(1));
}

TEST_F(FastPath, the_round_trip_is_that_of_the_packet_whenever_it_is_counted) {
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

TEST_F(FastPath, a_sleeper_knows_the_deadline_of_what_was_sent) {
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

TEST_F(FastPath, what_was_lost_is_found_by_who_sleeps_after_the_news) {
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

TEST_F(FastPath, a_path_that_ends_leaves_nothing_to_be_settled) {
    a.send("question");
    pass_to(b);
    b.send("answer");
    pass_to(a);
    a.device->close_for_violation(a.path, "for the test");
    EXPECT_TRUE(a.device->has_work());
    a.turn();
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_FALSE(a.device->has_work());
}

}  // namespace
}  // namespace via::device::datagram::test::fast_path_test
