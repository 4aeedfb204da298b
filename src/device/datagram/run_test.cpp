// Runs: full packets of one message, made together.
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::run_test {
namespace {

struct Run : Carrying {
    static constexpr std::uint32_t each = 1300;

    static std::string bytes(std::uint32_t frames) {
        std::string all;
        for (std::uint32_t n = 0; n < frames; ++n)
            all += std::string(each, static_cast<char>('a' + n));
        return all;
    }
    static std::vector<std::string> pieces(std::uint32_t frames) {
        std::vector<std::string> all;
        for (std::uint32_t n = 0; n < frames; ++n)
            all.push_back(bytes(frames).substr(n * each, each));
        return all;
    }
    void grow_window(std::uint64_t to) {
        while (a.device->statistics(a.path).window < to) {
            for (int n = 0; n < 500; ++n) a.send(std::string(each, 'w'));
            run(milliseconds(5));
        }
        network.log.clear();
    }
    void publish() {
        a.device->transmit(a.path);
        a.device->notify();
    }
};

TEST_F(Run, is_packets_with_a_frame_each) {
    ASSERT_EQ(a.send_run(bytes(3), each), 3U);
    publish();
    EXPECT_EQ(since(), R"(
0 1>2 data #0 frame 0 send (1316)
0 1>2 data #1 frame 1 send (1316)
0 1>2 data #2 frame 2 send (1316)
)");
    run(milliseconds(1));
    EXPECT_EQ(b.received, pieces(3));
    EXPECT_EQ(a.arrived, (std::vector<std::uint32_t>{2, 1, 0})) << "as acknowledged";
    const PathStatistics after = a.device->statistics(a.path);
    EXPECT_EQ(after.frames_sent, 3U);
    EXPECT_EQ(after.packets_sent, 3U);
    EXPECT_EQ(after.in_flight, 0U);
}

TEST_F(Run, is_no_longer_than_the_window) {
    std::vector<std::string> expected;
    while (const std::uint32_t count = a.send_run(bytes(70), each)) {
        ASSERT_LT(count, 70U);
        const std::vector<std::string> some = pieces(count);
        expected.insert(expected.end(), some.begin(), some.end());
        publish();
        ASSERT_LE(a.device->statistics(a.path).in_flight, a.device->statistics(a.path).window);
    }
    EXPECT_GT(expected.size(), 2U);
    run(milliseconds(1));
    EXPECT_EQ(b.received, expected);
}

TEST_F(Run, is_two_thirds_where_a_long_message_begins_and_nothing_is_under_way) {
    grow_window(200 * each);
    constexpr std::uint32_t packet = each + 48;
    const std::string message(66 * each, 'm');
    const std::uint32_t first = a.send_run(message, each);
    EXPECT_EQ(first, 66 * packet / 3 * 2 / packet);
    a.device->transmit(a.path);
    EXPECT_EQ(a.device->statistics(a.path).in_flight, first * packet) << "at once";
    publish();
    run(milliseconds(1));
    ASSERT_EQ(a.device->statistics(a.path).in_flight, 0U);
    EXPECT_EQ(a.send_run(std::string(40 * each, 'm'), each), 40U) << "the same message goes on";
    publish();
    run(milliseconds(1));
    a.send("another");
    run(milliseconds(1));
    EXPECT_EQ(a.send_run(std::string(100 * each, 'm'), each), burst_bytes / packet)
        << "as much as a call takes";
    publish();
    run(milliseconds(1));
    a.send("another");
    run(milliseconds(1));
    constexpr std::uint32_t whole = 45;
    EXPECT_EQ(a.send_run(std::string(whole * each, 'm'), each), whole) << "one call takes it";
    publish();
    run(milliseconds(1));
}

TEST_F(Run, is_not_shorter_for_the_one_before_it_when_there_was_time_between) {
    network.delay = microseconds(100);
    grow_window(100 * each);
    run(milliseconds(5));
    const std::string message(40 * each, 'm');
    ASSERT_GT(a.send_run(message, each), 20U);
    publish();
    run(milliseconds(5));
    EXPECT_EQ(a.send_run(message, each), 40U);
    publish();
    run(milliseconds(5));
}

TEST_F(Run, the_end_of_its_message_does_not_wait) {
    a.device->arm(Sleep::awake);
    for (int n = 0; n < 4; ++n) {
        for (int small = 0; small < 3; ++small) {
            a.turn();  // a program that looks at the network before each of its messages
            a.send("a small one");
        }
        a.turn();
        const std::size_t before = network.sent_by(1);
        ASSERT_EQ(a.send_run(bytes(8), each), 8U);
        a.device->transmit(a.path);
        a.send("its end");
        ASSERT_EQ(network.sent_by(1), before + 9) << n;
        a.send("a small one behind it");
        ASSERT_EQ(network.sent_by(1), before + 10) << n;
        run(milliseconds(1));
    }
}

TEST_F(Run, what_of_it_the_port_does_not_take_is_not_needed_after_the_turn) {
    a.port().send_max = 2;
    ASSERT_EQ(a.send_run(bytes(5), each), 5U);
    publish();
    a.lent.front().assign(5 * each, '-');
    a.send("behind");
    a.port().send_max = 0;
    run(microseconds(30));
    EXPECT_EQ(b.received.size(), 2U);
    a.port().send_max = 100;
    run(milliseconds(1));
    std::vector<std::string> expected = pieces(5);
    expected.emplace_back("behind");
    EXPECT_EQ(b.received, expected);
    EXPECT_EQ(a.device->statistics(a.path).packets_lost, 0U);
}

TEST_F(Run, a_lost_one_of_it_is_sent_again) {
    lose({2});
    ASSERT_EQ(a.send_run(bytes(8), each), 8U);
    publish();
    run(milliseconds(1));
    EXPECT_EQ(a.lost, (std::vector<std::uint32_t>{2}));
    EXPECT_EQ(b.received, pieces(8));
}

TEST_F(Run, is_gone_with_its_path) {
    a.port().send_max = 1;
    ASSERT_EQ(a.send_run(bytes(4), each), 4U);
    publish();
    a.device->close_for_violation(a.path, "test");
    a.port().send_max = 100;
    run(milliseconds(1));
    EXPECT_EQ(b.received.size(), 1U);
}

/// Long messages one behind the other, of a program that looks at the network itself.
struct Stream : Run {
    static constexpr std::uint32_t each = 1400;  // packets are full
    static constexpr std::uint32_t packet = each + 48;
    static constexpr std::uint32_t frames = 50;
    static constexpr std::uint32_t rest = 700;
    static constexpr std::uint32_t whole = burst_bytes / packet;

    void SetUp() override {
        b.port().room = 16 << 20;
        Run::SetUp();
        a.device->arm(Sleep::awake);
        grow_window(700 * each);
        for (int n = 0; n < 12; ++n) {  // what it posted to that end is forgotten
            a.send("lone");
            run(milliseconds(1));
        }
        network.weather = [this](const Datagram& datagram) {
            if (datagram.from == a.port().data_address()) lengths.push_back(datagram.bytes.size());
            return lengths.size() == lost ? Fate{} : Fate{network.delay};
        };
        b.received.clear();
    }
    void post() {
        const std::string message(frames * each + rest, static_cast<char>('a' + posted % 26));
        for (std::uint32_t done = 0; done < frames;) {
            const std::uint32_t count =
                a.send_run(message.substr(done * each, (frames - done) * each), each);
            ASSERT_NE(count, 0U);
            done += count;
            a.device->transmit(a.path);
        }
        a.send_run(message.substr(frames * each), rest);
        publish();
        ++posted;
        network.now = network.now + microseconds(20);  // pace
    }
    /// Without a look between them. Forgets what was sent until then.
    void post_some() {
        for (int n = 0; n < 4; ++n) post();
        lengths.clear();
    }
    void expect_all(std::uint64_t lost_ones = 0) {
        run(milliseconds(1));
        std::string all, expected;
        for (const std::string& one : b.received) all += one;
        for (int n = 0; n < posted; ++n)
            expected += std::string(frames * each + rest, static_cast<char>('a' + n % 26));
        EXPECT_EQ(all.size(), expected.size());
        EXPECT_TRUE(all == expected);
        EXPECT_EQ(a.device->statistics(a.path).packets_lost, lost_ones);
    }

    std::vector<std::size_t> lengths;  ///< of what `a` sent
    std::size_t lost = 0;              ///< which of them is, counted from 1; 0: none
    int posted = 0;
};

TEST_F(Stream, the_rest_of_a_long_message_fills_the_burst_of_the_next) {
    post_some();
    a.lent.back().assign(rest, '-');  // the turn ended
    post();
    EXPECT_EQ(lengths, std::vector<std::size_t>(whole, packet))
        << "all alike, so one call takes them";
    lengths.clear();
    a.turn();
    EXPECT_EQ(lengths.back(), rest + 48) << "nothing is behind it";
    expect_all();
}

TEST_F(Stream, a_padded_packet_that_is_lost_is_sent_again) {
    post_some();
    lost = frames + 1 - whole;  // the last one that waited
    post();
    ASSERT_EQ(lengths.size(), whole);
    expect_all(1);
}

TEST_F(Stream, a_rest_waits_until_the_next_look) {
    post_some();
    EXPECT_TRUE(a.device->has_work()) << "nobody falls asleep on it";
    a.turn();
    EXPECT_EQ(lengths.size(), frames + 1 - whole);
    expect_all();
}

TEST_F(Stream, a_rest_waits_on_where_a_look_brings_acknowledgements) {
    for (int n = 0; n < 3; ++n) post();
    network.log.clear();
    while (network.sent_by(2) == 0) b.turn();
    post_some();
    const std::uint64_t before = a.device->statistics(a.path).in_flight;
    a.turn();
    ASSERT_LT(a.device->statistics(a.path).in_flight, before);
    EXPECT_EQ(lengths.size(), 0U) << "the next message is posted before the next look";
    a.turn();
    EXPECT_GT(lengths.size(), 0U) << "none was";
    expect_all();
}

TEST_F(Stream, a_rest_does_not_wait_where_each_message_is_looked_for) {
    for (int n = 0; n < 6; ++n) {
        a.turn();
        lengths.clear();
        post();
        EXPECT_EQ(lengths.size(), frames + 1);
    }
    expect_all();
}

TEST_F(Stream, a_rest_does_not_wait_where_nobody_looks) {
    a.device->arm(Sleep::on_handle);
    post_some();
    post();
    EXPECT_EQ(lengths.size(), frames + 1);
    expect_all();
}

/// The inside of a long message, as the peer's device hands it up.
struct Inner : Run {
    void SetUp() override {
        Run::SetUp();
        talk();
        run(milliseconds(5));
        b.several.clear();
        b.received.clear();
        a.arrived.clear();
    }
    /// Sends `frames` of it; `wrong` has another place in its message than it should.
    void send_inner(std::uint32_t frames, std::uint32_t wrong = ~0U) {
        FrameSlot slot;
        slot.wanted = frames;
        ASSERT_TRUE(a.device->reserve(a.path, wire::header_length_extent, each, slot));
        ASSERT_EQ(slot.count, frames);
        a.lent.push_back(bytes(frames));
        *slot.reference = reinterpret_cast<const std::byte*>(a.lent.back().data());
        for (std::uint32_t n = 0; n < frames; ++n)
            wire::emit({.kind = wire::FrameKind::send,
                        .flags = wire::flag::extent,
                        .message_length = 100 * each,
                        .offset = n == wrong ? 7 : (1 + n) * each},
                       slot.header + std::size_t{n} * slot.stride);
        a.note_run(slot.number, frames, each);
        publish();
    }
};

TEST_F(Inner, is_handed_up_at_once) {
    send_inner(6);
    run(milliseconds(1));
    EXPECT_EQ(b.several, (std::vector<std::uint32_t>{6}));
    EXPECT_EQ(b.received, pieces(6));
    EXPECT_EQ(a.arrived.size(), 6U);
    a.send("behind");
    run(milliseconds(1));
    EXPECT_EQ(b.received.back(), "behind");
}

TEST_F(Inner, is_handed_up_in_parts_where_so_many_are_not_wanted) {
    b.frames_wanted = 4;
    send_inner(9);
    run(milliseconds(1));
    EXPECT_EQ(b.several, (std::vector<std::uint32_t>{4, 4, 1}));
    EXPECT_EQ(b.received, pieces(9));
}

TEST_F(Inner, ends_before_one_that_is_missing) {
    lose({2});
    send_inner(6);
    run(microseconds(30));
    EXPECT_EQ(b.several.front(), 2U);
    run(milliseconds(10));
    EXPECT_EQ(b.received, pieces(6));
}

TEST_F(Inner, ends_before_one_that_is_corrupt) {
    int packet = 0;
    network.weather = [&](const Datagram& datagram) {
        if (datagram.bytes.size() < each || packet++ != 3) return Fate{network.delay};
        Datagram corrupt = datagram;
        corrupt.bytes[each / 2] ^= std::byte{1};
        network.deliver(network.now + network.delay, corrupt);
        return Fate{};
    };
    send_inner(6);
    run(microseconds(30));
    EXPECT_EQ(b.several.front(), 3U);
    EXPECT_EQ(b.device->totals().checksum, 1U);
    run(milliseconds(10));
    EXPECT_EQ(b.received, pieces(6));
}

TEST_F(Inner, of_a_liar_is_handed_up_one_by_one) {
    send_inner(6, 4);
    run(milliseconds(1));
    EXPECT_EQ(b.several, (std::vector<std::uint32_t>{4, 1, 1}));
    EXPECT_EQ(b.received, pieces(6)) << "what it means is for the engine";
}

TEST_F(Run, is_none_where_the_frame_shares_a_packet) {
    FrameSlot slot;
    ASSERT_TRUE(a.device->reserve(a.path, End::header_length, 8, slot));
    wire::emit({.kind = wire::FrameKind::send}, slot.header);
    slot = {};
    slot.wanted = 4;
    ASSERT_TRUE(a.device->reserve(a.path, End::header_length, 600, slot));
    EXPECT_EQ(slot.count, 1U);
}

}  // namespace
}  // namespace via::device::datagram::test::run_test
