// Scenarios of carrying frames: acknowledgements, loss of every kind, order, bounds, lengths.
#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::carrying_test {
namespace {

TEST_F(Carrying, an_answer_carries_the_acknowledgement) {
    int left = 3;
    b.on_message = [&](const std::string&) { b.send("pong"); };
    a.on_message = [&](const std::string&) {
        if (--left != 0) a.send("ping");
    };
    a.send("ping");
    run(milliseconds(1));
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (20)
10 2>1 data #0 frame 0 send (20) ack 0
20 1>2 data #1 frame 1 send (20) ack 0
30 2>1 data #1 frame 1 send (20) ack 0-1
40 1>2 data #2 frame 2 send (20) ack 0-1
50 2>1 data #2 frame 2 send (20) ack 0-2
60 1>2 data #3 ack 0-2
)");
}

TEST_F(Carrying, a_lone_message_is_acknowledged_at_the_third_empty_poll) {
    a.send("lone");
    network.now = network.now + microseconds(10);
    EXPECT_EQ(b.turn(), 1U);
    for (int looks = 0; looks < 2; ++looks) {
        EXPECT_EQ(b.turn(), 0U);
        EXPECT_EQ(network.log.size(), 1U) << "an answer may come yet";
        EXPECT_TRUE(b.device->has_work()) << "nobody falls asleep on it";
    }
    EXPECT_EQ(b.turn(), 0U);
    EXPECT_FALSE(b.device->has_work());
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (20)
10 2>1 data #0 ack 0
)");
}

TEST_F(Carrying, what_comes_of_a_message_that_goes_on_is_acknowledged_some_looks_later) {
    ASSERT_EQ(a.send_run(std::string(2 * 600, 'm'), 600), 2U);
    a.device->transmit(a.path);
    a.device->notify();
    network.now = network.now + microseconds(10);
    EXPECT_EQ(b.turn(), 2U);
    for (std::uint64_t looks = 1; looks < looks_for_the_rest; ++looks) {
        EXPECT_EQ(b.turn(), 0U);
        EXPECT_EQ(network.log.size(), 2U) << "the rest is on its way";
        EXPECT_TRUE(b.device->has_work()) << "nobody falls asleep on it";
    }
    EXPECT_EQ(b.turn(), 0U);
    EXPECT_FALSE(b.device->has_work());
    EXPECT_EQ(network.log.size(), 3U) << "a sender may wait for room";
}

TEST_F(Carrying, a_rest_that_did_not_come_in_time_is_not_waited_for_the_next_time) {
    const auto send_some = [&] {
        ASSERT_EQ(a.send_run(std::string(2 * 600, 'm'), 600), 2U);
        a.device->transmit(a.path);
        a.device->notify();
        network.now = network.now + microseconds(10);
        EXPECT_EQ(b.turn(), 2U);
    };
    const auto looks_until_acknowledged = [&] {
        const std::size_t before = network.sent_by(2);
        std::uint64_t looks = 0;
        for (; looks < 100 && network.sent_by(2) == before; ++looks) b.turn();
        return looks;
    };
    const auto take = [&] {
        network.now = network.now + microseconds(10);
        a.turn();
    };
    send_some();
    EXPECT_EQ(looks_until_acknowledged(), looks_for_the_rest);
    take();
    send_some();
    EXPECT_EQ(looks_until_acknowledged(), looks_for_an_answer) << "its sender may have waited";
    take();
    send_some();
    EXPECT_EQ(looks_until_acknowledged(), looks_for_the_rest) << "but not this time";
}

TEST_F(Carrying, an_acknowledgement_that_was_alone_goes_with_what_is_sent_next) {
    network.weather = [&](const Datagram& datagram) {
        return datagram.print() == "data #0 ack 0" ? Fate{} : Fate{network.delay};
    };
    a.send("taken");
    run(microseconds(30));
    b.send("parting");
    run(microseconds(30));
    EXPECT_EQ(a.arrived.size(), 1U);
    b.send("again");
    run(microseconds(30));
    b.send("more");
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (21)
10 2>1 data #0 ack 0
30 2>1 data #1 frame 0 send (23) ack 0
40 1>2 data #1 ack 1
60 2>1 data #2 frame 1 send (21)
70 1>2 data #2 ack 1-2
90 2>1 data #3 frame 2 send (20)
)");
}

TEST_F(Carrying, who_leaves_says_what_arrived) {
    network.weather = [&](const Datagram& datagram) {
        return datagram.print() == "data #0 ack 0" ? Fate{} : Fate{network.delay};
    };
    a.send("taken");
    run(microseconds(30));
    EXPECT_EQ(a.arrived.size(), 0U);
    b.device.reset();
    run(microseconds(30));
    EXPECT_EQ(a.arrived.size(), 1U);
}

TEST_F(Carrying, who_leaves_says_so_more_than_once) {
    network.weather = [&](const Datagram& datagram) {
        const std::string text = datagram.print();
        const bool lost = text == "data #0 ack 0" || text == "data #1 ack 0";
        return lost ? Fate{} : Fate{network.delay};
    };
    a.send("taken");
    run(microseconds(30));
    b.device.reset();
    run(microseconds(30));
    EXPECT_EQ(a.arrived.size(), 1U) << "nobody is there to say it again";
}

TEST_F(Carrying, a_payload_is_sent_from_where_it_lies) {
    a.lends = true;
    const std::string payload(1000, 'x');
    a.on_message = [&](const std::string&) {
        a.send(payload);
        a.send("behind");
    };
    b.send("go");
    run(microseconds(50));
    EXPECT_EQ(a.lent.size(), 1U) << "the short one is copied";
    EXPECT_EQ(since().substr(0, 120), R"(
0 2>1 data #0 frame 0 send (18)
10 1>2 data #0 frame 0 send (1016) frame 1 send (22) ack 0
20 2>1 data #1 ack 0
)");
    EXPECT_EQ(b.received, (std::vector<std::string>{payload, "behind"}));
}

TEST_F(Carrying, what_the_port_does_not_take_is_not_needed_after_the_turn) {
    a.lends = true;
    a.port().send_max = 0;
    const std::string payload(1000, 'x');
    a.send(payload);
    ASSERT_EQ(a.lent.size(), 1U);
    a.lent.front().assign(1000, 'y');
    a.send(payload);
    EXPECT_EQ(a.lent.size(), 1U) << "the port is full: nothing more is lent";
    a.port().send_max = 100;
    run(microseconds(30));
    EXPECT_EQ(b.received, (std::vector<std::string>{payload, payload}));
}

TEST_F(Carrying, a_payload_that_need_not_arrive_is_copied) {
    a.lends = true;
    a.send(std::string(1000, 'x'), false);
    EXPECT_EQ(a.lent.size(), 0U) << "its descriptor is done before the turn ends";
}

TEST_F(Carrying, nothing_waits_for_a_look_of_who_sleeps) {
    for (std::size_t n = 0; n < 20; ++n) {
        a.send("message");
        EXPECT_EQ(network.log.size(), n + 1);
    }
}

TEST_F(Carrying, a_program_that_stands_still_answers_by_a_deadline) {
    a.send("lone");
    network.now = network.now + microseconds(10);
    b.turn();
    EXPECT_EQ(b.device->next_deadline(), network.now + milliseconds(1));
    network.now = network.now + milliseconds(1);
    b.device->service(network.now);
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (20)
1010 2>1 data #0 ack 0
)");
}

TEST_F(Carrying, an_eighth_of_the_room_is_acknowledged_at_once) {
    b.port().room = 8 * 4000;
    for (int n = 0; n < 4; ++n) a.send(std::string(1300, 'x'));
    network.now = network.now + microseconds(10);
    EXPECT_EQ(b.turn(), 4U);
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (1316)
0 1>2 data #1 frame 1 send (1316)
0 1>2 data #2 frame 2 send (1316)
0 1>2 data #3 frame 3 send (1316)
10 2>1 data #0 ack 0-3
)");
}

TEST_F(Carrying, a_missing_number_is_told_at_once) {
    lose({1});
    for (int n = 0; n < 3; ++n) a.send("number " + std::to_string(n));
    network.now = network.now + microseconds(10);
    EXPECT_EQ(b.turn(), 1U);
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (24)
0 1>2 data #1 frame 1 send (24)
0 1>2 data #2 frame 2 send (24)
10 2>1 data #0 ack 2,0
)");
    EXPECT_EQ(b.device->statistics(b.path).frames_held, 1U);
}

TEST_F(Carrying, loss_shown_by_later_packets) {
    lose({0});
    for (int n = 0; n < 5; ++n) a.send("number " + std::to_string(n));
    run(milliseconds(5));
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (24)
0 1>2 data #1 frame 1 send (24)
0 1>2 data #2 frame 2 send (24)
0 1>2 data #3 frame 3 send (24)
0 1>2 data #4 frame 4 send (24)
10 2>1 data #0 ack 1-4
20 1>2 data #5 frame 0 send (24)
30 2>1 data #1 ack 1-5
)");
    EXPECT_EQ(a.lost, std::vector<std::uint32_t>{0});
    EXPECT_EQ(a.arrived, (std::vector<std::uint32_t>{4, 3, 2, 1, 0}));
    ASSERT_EQ(b.received.size(), 5U);
    EXPECT_EQ(b.received[0], "number 0");
}

TEST_F(Carrying, loss_shown_by_time) {
    lose({0});
    a.send("number 0");
    a.send("number 1");
    run(milliseconds(5));
    // One packet behind is not enough; 9/8 of the round trip is, 50 us at least.
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (24)
0 1>2 data #1 frame 1 send (24)
10 2>1 data #0 ack 1
50 1>2 data #2 frame 0 send (24)
60 2>1 data #1 ack 1-2
)");
}

TEST_F(Carrying, a_lost_tail_is_probed_for) {
    lose({0});
    a.send("lone");
    run(milliseconds(20));
    // Round trip 20 us, 100 us, and the peer's millisecond. The frame is
    // on its way again before anybody knows that it was lost.
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (20)
1120 1>2 data #1 ping
1120 1>2 data #2 frame 0 send (20)
1130 2>1 data #0 ack 1-2
)");
    EXPECT_EQ(b.received.size(), 1U);
    EXPECT_EQ(a.device->statistics(a.path).probe_timeouts, 1U);
    // However few in a row they are: what answers a ping may come where nothing else does.
    ASSERT_EQ(a.port().doubts.size(), 1U);
    EXPECT_EQ(a.port().doubts[0].first, b.port().data_address());
}

TEST_F(Carrying, probe_timeouts_double) {
    network.weather = [](const Datagram&) { return Fate{}; };
    a.send("nobody hears");
    run(milliseconds(9));
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (28)
1120 1>2 data #1 ping
1120 1>2 data #2 frame 0 send (28)
3360 1>2 data #3 ping
3360 1>2 data #4 frame 0 send (28)
7840 1>2 data #5 ping
7840 1>2 data #6 frame 0 send (28)
)");
    EXPECT_EQ(a.device->statistics(a.path).window, 2U * 1472) << "three in a row";
    network.weather = nullptr;
    run(milliseconds(50));
    EXPECT_EQ(b.received.size(), 1U);
    EXPECT_EQ(a.under_way(), 0U);
}

TEST_F(Carrying, a_patience_of_5_s_outlasts_a_burst_of_losses_each_way) {
    int questions = 12;  // as many of a's packets are lost, and then as many answers
    int answers = 12;
    network.weather = [&](const Datagram& datagram) {
        int& left = datagram.from.bytes[3] == 1 ? questions : answers;
        return left == 0 ? Fate{network.delay} : (--left, Fate{});
    };
    a.send("at last");
    ASSERT_TRUE(run(seconds(5), [&] { return a.arrived.size() == 1; })) << since();
    EXPECT_EQ(b.received.size(), 1U);
    EXPECT_EQ(count(a, PathEventKind::down), 0U);
}

TEST_F(Carrying, an_acknowledgement_that_never_comes_is_asked_for_four_times_a_second) {
    network.weather = [](const Datagram&) { return Fate{}; };
    a.send("nobody hears");
    run(seconds(2));
    const std::uint64_t before = a.device->statistics(a.path).probe_timeouts;
    run(seconds(2));
    EXPECT_EQ(a.device->statistics(a.path).probe_timeouts, before + 8);
}

TEST_F(Carrying, a_lost_acknowledgement_costs_nothing_but_a_probe) {
    lose({1});
    a.send("lone");
    run(milliseconds(5));
    EXPECT_EQ(b.received.size(), 1U) << "once, though it came twice";
    EXPECT_EQ(b.device->totals().duplicate_frames, 1U);
    EXPECT_EQ(a.arrived.size(), 1U);
}

TEST_F(Carrying, duplicated_packets_end_at_the_receiver) {
    network.weather = [](const Datagram&) {
        return Fate{microseconds(10), microseconds(10), microseconds(12)};
    };
    for (int n = 0; n < 10; ++n) a.send("number " + std::to_string(n));
    run(milliseconds(5));
    EXPECT_EQ(b.received.size(), 10U);
    EXPECT_EQ(b.device->totals().duplicate_packets, 20U);
    EXPECT_EQ(b.device->totals().duplicate_frames, 0U);
}

TEST_F(Carrying, reordering_widens_the_bound) {
    // Of each burst of eight the first comes last: held for lost once.
    network.weather = [n = 0](const Datagram& datagram) mutable {
        if (datagram.from.bytes[3] == 2) return Fate{microseconds(10)};
        return Fate{n++ % 8 == 0 ? microseconds(15) : microseconds(10)};
    };
    for (int n = 0; n < 8; ++n) a.send("first " + std::to_string(n));
    run(milliseconds(2));
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 1U);
    EXPECT_EQ(a.device->statistics(a.path).packets_spurious, 1U);
    EXPECT_EQ(a.device->statistics(a.path).reordering, 8U);
    for (int n = 0; n < 8; ++n) a.send("second " + std::to_string(n));
    run(milliseconds(2));
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 1U) << "not again";
    ASSERT_EQ(b.received.size(), 16U);
    EXPECT_EQ(b.received[0], "first 0");
    EXPECT_EQ(b.received[15], "second 7");
    // It shrinks in quiet times.
    network.weather = nullptr;
    for (int n = 0; n < 30; ++n) {
        a.send("quiet");
        run(milliseconds(500));
    }
    EXPECT_EQ(a.device->statistics(a.path).reordering, 3U);
}

TEST_F(Carrying, frames_share_packets) {
    std::vector<FrameSlot> slots(20);
    for (FrameSlot& slot : slots) {
        ASSERT_TRUE(a.device->reserve(a.path, 16, 8, slot));
        wire::emit({.kind = wire::FrameKind::send}, slot.header);
        std::memset(slot.payload, 'x', 8);
    }
    EXPECT_TRUE(network.log.empty()) << "nothing before transmit()";
    a.device->notify();
    EXPECT_TRUE(network.log.empty()) << "nothing before transmit()";
    a.device->transmit(a.path);
    a.device->notify();
    EXPECT_EQ(network.log.size(), 1U);
    run(microseconds(10));
    EXPECT_EQ(b.received.size(), 20U);
}

TEST_F(Carrying, unreliable_frames_are_never_sent_again) {
    lose({0, 3});
    for (int n = 0; n < 6; ++n) a.send("maybe " + std::to_string(n), false);
    run(milliseconds(20));
    EXPECT_EQ(b.received, (std::vector<std::string>{"maybe 1", "maybe 2", "maybe 4", "maybe 5"}));
    EXPECT_TRUE(a.lost.empty());
    EXPECT_TRUE(a.arrived.empty());
    EXPECT_EQ(a.device->statistics(a.path).in_flight, 0U);
}

TEST_F(Carrying, unreliable_frames_do_not_wait_for_others) {
    lose({0});
    a.send("must arrive");
    a.send("maybe", false);
    network.now = network.now + microseconds(10);
    b.turn();
    EXPECT_EQ(b.received, std::vector<std::string>{"maybe"});
}

TEST_F(Carrying, frames_ahead_are_bounded) {
    // Nothing is acknowledged: not more than the receiver may have to keep.
    a.port().room = 1U << 20;
    network.weather = [](const Datagram&) { return Fate{}; };
    std::uint32_t taken = 0;
    FrameSlot slot;
    while (a.device->reserve(a.path, 16, 8, slot)) {
        ++taken;
        wire::emit({.kind = wire::FrameKind::send}, slot.header);
    }
    a.device->transmit(a.path);
    EXPECT_LE(taken, frames_ahead_max);
    EXPECT_GT(taken, 200U);
}

struct Kept : Carrying {
    void begin(std::size_t copies_max) {
        b.open(1002, 4096, copies_max);
        meet();
        b.port().keep_max = 4;
        lose({0});
        for (int n = 0; n < 8; ++n) {
            sent.push_back("number " + std::to_string(n));
            a.send(sent.back());
        }
        run(milliseconds(50));
        EXPECT_EQ(b.received, sent);
        EXPECT_EQ(b.port().kept, 0U);
    }
    std::vector<std::string> sent;
};

TEST_F(Kept, what_cannot_be_kept_is_dropped_whole_and_comes_again) {
    begin(0);
    EXPECT_GE(b.device->totals().no_room, 5U);
}

TEST_F(Kept, where_the_port_keeps_no_more_it_is_copied) {
    begin(1000);
    EXPECT_EQ(b.device->totals().no_room, 0U);
}

TEST_F(Carrying, more_frames_than_one_receive_takes) {
    // A packet of 20 frames, delivered 16 and 4; its buffer stays for both.
    for (int n = 0; n < 20; ++n) {
        FrameSlot slot;
        ASSERT_TRUE(a.device->reserve(a.path, 16, 40, slot));
        wire::emit({.kind = wire::FrameKind::send}, slot.header);
        std::memset(slot.payload, 'a' + n, 40);
    }
    a.device->transmit(a.path);
    a.device->notify();
    EXPECT_EQ(network.log.size(), 1U);
    run(microseconds(10));
    ASSERT_EQ(b.received.size(), 20U);
    EXPECT_EQ(b.received[19], std::string(40, 't'));
}

TEST_F(Carrying, who_only_receives_remembers_none_of_its_acknowledgements) {
    for (int n = 0; n < 1000; ++n) {
        a.send("one way");
        run(microseconds(50));
    }
    EXPECT_EQ(b.received.size(), 1000U);
    EXPECT_GT(b.device->statistics(b.path).acks_alone, 500U);
    EXPECT_EQ(b.device->statistics(b.path).packets_remembered, 0U);
    EXPECT_EQ(a.device->statistics(a.path).packets_remembered, 0U);
}

TEST_F(Carrying, a_port_that_takes_little) {
    a.port().send_max = 3;
    std::vector<std::string> sent;
    for (int n = 0; n < 100; ++n) {
        sent.push_back(std::to_string(n) + std::string(1000, 'x'));
        a.send(sent.back());
    }
    a.port().send_max = 0;
    run(milliseconds(1));
    a.port().send_max = 1;
    run(milliseconds(100));
    EXPECT_EQ(b.received, sent);
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U);
}

}  // namespace
}  // namespace via::device::datagram::test::carrying_test
