// Frames that were cut when packets were longer, on a way that carries them no more.
#include "device/datagram/parts.hpp"

#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::parts_test {
namespace {

constexpr std::uint32_t long_payload = 8928;
constexpr int parts_of_long = 18;

std::string letters(std::size_t length, int first) {
    std::string text(length, ' ');
    for (std::size_t n = 0; n < length; ++n)
        text[n] = static_cast<char>('a' + (n / 100 + static_cast<std::size_t>(first)) % 26);
    return text;
}

/// a sends to b, 9000 bytes go through; then 1000.
struct Narrower : ::testing::Test, Scene {
    std::uint32_t carried = 9000;
    /// Of what is not too long.
    std::function<Fate(const Datagram&)> others = [](const Datagram&) {
        return Fate{microseconds(10)};
    };
    void begin() {
        a.port().longest = b.port().longest = 9000;
        network.weather = [this](const Datagram& datagram) {
            return datagram.bytes.size() > carried ? Fate{} : others(datagram);
        };
        meet();
        for (int n = 0; n < 100; ++n) {
            a.send(std::string(a.payload_max[a.path], 'x'));
            run(microseconds(50));
        }
        ASSERT_TRUE(run(seconds(1), [&] { return a.under_way() == 0; }));
        ASSERT_EQ(a.payload_max[a.path], long_payload);
        b.received.clear();
        network.log.clear();
        carried = 1000;
    }
    /// Datagrams with such a word, since the beginning.
    int sent(const std::string& word) const {
        return static_cast<int>(std::count_if(
            network.log.begin(), network.log.end(),
            [&](const std::string& line) { return line.find(word) != std::string::npos; }));
    }
    static bool is_part(const Datagram& datagram) {
        return datagram.print().find(" part ") != std::string::npos;
    }
    std::uint64_t in_parts() { return a.device->statistics(a.path).frames_in_parts; }
    std::uint32_t held() { return b.device->statistics(b.path).frames_held; }
    bool is_empty() { return a.under_way() == 0 && a.waiting() == 0; }
};

TEST_F(Narrower, what_was_cut_longer_arrives_in_parts) {
    begin();
    a.send(letters(long_payload, 0));
    EXPECT_TRUE(run(seconds(1), [&] { return is_empty(); }));
    EXPECT_TRUE(b.received == std::vector{letters(long_payload, 0)});
    EXPECT_EQ(in_parts(), 1U);
    EXPECT_EQ(sent(" part "), parts_of_long);
    EXPECT_EQ(held(), 0U);
    EXPECT_EQ(count(a, PathEventKind::down), 0U);
}

TEST_F(Narrower, a_way_that_carries_no_part_ends_the_path_however_well_small_ones_go) {
    begin();
    carried = 500;
    a.send(letters(long_payload, 0));
    const Time begin = network.now;
    int small = 0;
    while (a.is_up && network.now - begin < seconds(30)) {
        b.send("small");
        ++small;
        run(milliseconds(100), [&] { return !a.is_up; });
    }
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_LT((network.now - begin).ns, seconds(8).ns);
    EXPECT_GE((network.now - begin).ns, seconds(5).ns);
    EXPECT_EQ(a.received, std::vector<std::string>(static_cast<std::size_t>(small), "small"));
    run(milliseconds(1));
    EXPECT_EQ(count(b, PathEventKind::down), 1U) << "it was told";
}

TEST_F(Narrower, all_that_was_under_way_arrives_in_order) {
    begin();
    std::vector<std::string> all;
    for (int n = 0; n < 20; ++n) {
        all.push_back(letters(n % 3 == 0 ? 10 : long_payload, n));
        a.send(all.back());
    }
    EXPECT_TRUE(run(seconds(2), [&] { return is_empty(); }));
    EXPECT_TRUE(b.received == all) << b.received.size();
    EXPECT_GE(in_parts(), 5U);
    EXPECT_EQ(held(), 0U);
}

TEST_F(Narrower, a_part_that_is_lost_is_sent_again_and_no_other) {
    others = [n = 0](const Datagram& datagram) mutable {
        const bool is_lost = is_part(datagram) && (n == 3 || n == 9 || n == 17);
        if (is_part(datagram)) ++n;
        return is_lost ? Fate{} : Fate{microseconds(10)};
    };
    begin();
    a.send(letters(long_payload, 0));
    EXPECT_TRUE(run(seconds(1), [&] { return is_empty(); }));
    EXPECT_TRUE(b.received == std::vector{letters(long_payload, 0)});
    EXPECT_EQ(sent(" part "), parts_of_long + 3);
}

TEST_F(Narrower, parts_arrive_in_any_order_and_twice) {
    others = [n = 0](const Datagram& datagram) mutable {
        if (!is_part(datagram)) return Fate{microseconds(10)};
        const Duration delay = microseconds(200 - 10 * (++n % 7));
        return n % 2 == 0 ? Fate{delay} : Fate{delay, microseconds(300)};
    };
    begin();
    for (int n = 0; n < 4; ++n) a.send(letters(long_payload, n));
    EXPECT_TRUE(run(seconds(1), [&] { return is_empty(); }));
    ASSERT_EQ(b.received.size(), 4U);
    for (int n = 0; n < 4; ++n)
        EXPECT_TRUE(b.received[static_cast<std::size_t>(n)] == letters(long_payload, n));
}

TEST_F(Narrower, where_half_of_all_is_lost_it_arrives_all_the_same) {
    begin();
    others = [random = Random(1)](const Datagram&) mutable {
        return random.chance(50) ? Fate{} : Fate{microseconds(10)};
    };
    for (int n = 0; n < 4; ++n) a.send(letters(long_payload, n));
    EXPECT_TRUE(run(seconds(60), [&] { return is_empty(); }));
    EXPECT_EQ(b.received.size(), 4U);
    EXPECT_EQ(count(a, PathEventKind::down), 0U);
}

/// The way was only late: the whole frame comes when parts of it are there.
TEST_F(Narrower, a_frame_that_comes_whole_after_all_counts_once) {
    bool parts_go_through = true;
    others = [&](const Datagram& datagram) {
        return is_part(datagram) && !parts_go_through ? Fate{} : Fate{microseconds(10)};
    };
    begin();
    Datagram late;
    network.weather = [&, before = network.weather](const Datagram& datagram) {
        if (late.bytes.empty() && datagram.bytes.size() > 8000) late = datagram;
        if (is_part(datagram) && sent(" part ") > 5) parts_go_through = false;
        return before(datagram);
    };
    a.send(letters(long_payload, 0));
    ASSERT_TRUE(run(seconds(1), [&] { return !parts_go_through; }));
    run(microseconds(100));
    EXPECT_EQ(held(), 1U) << "parts of it wait";
    network.deliver(network.now, late);
    EXPECT_TRUE(run(seconds(1), [&] { return is_empty(); }));
    EXPECT_TRUE(b.received == std::vector{letters(long_payload, 0)});
    EXPECT_EQ(held(), 0U) << "its parts are given up";
    parts_go_through = true;
    talk();
    EXPECT_EQ(b.received.size(), 2U);
}

TEST_F(Narrower, who_has_no_memory_left_for_what_comes_early_takes_parts_all_the_same) {
    b.open(1002, 4096, 0);
    b.port().keep_max = 0;
    begin();
    for (int n = 0; n < 4; ++n) a.send(letters(n == 0 ? long_payload : 100, n));
    EXPECT_TRUE(run(seconds(1), [&] { return is_empty(); }));
    EXPECT_EQ(b.received.size(), 4U);
    EXPECT_GT(b.device->totals().no_room, 0U);
}

TEST_F(Narrower, a_path_that_ends_lets_its_parts_go) {
    others = [this](const Datagram& datagram) {
        return is_part(datagram) && sent(" part ") > 9 ? Fate{} : Fate{microseconds(10)};
    };
    begin();
    a.send(letters(long_payload, 0));
    ASSERT_TRUE(run(seconds(1), [&] { return sent(" part ") > parts_of_long; }));
    EXPECT_EQ(held(), 1U);
    a.device->close_for_violation(a.path, "a test wants it so");
    run(milliseconds(1));
    EXPECT_EQ(count(a, PathEventKind::down), 1U);
    EXPECT_EQ(count(b, PathEventKind::down), 1U);
}

/// What a peer says who keeps to no rule but the packet's form.
struct Liar : ::testing::Test, Scene {
    std::uint64_t connection = 0;
    std::uint64_t number = 1;
    const std::vector<std::byte> frame = std::vector<std::byte>(1200, std::byte{7});
    void SetUp() override {
        network.weather = [this](const Datagram& datagram) {
            if (datagram.kind() == wire::PacketKind::data && datagram.from.bytes[3] == 1)
                std::memcpy(&connection, datagram.bytes.data() + 8, 8);
            return Fate{microseconds(10)};
        };
        meet();
        a.send("to learn the identifier");  // frame 0 in packet 0
        run(milliseconds(1));
    }
    struct Said {
        std::uint32_t number;
        std::uint32_t n;
        std::uint32_t length = 1200;
    };
    void say(const std::vector<Said>& parts) {
        std::vector<std::byte> packet(wire::data_header_length);
        for (const Said& part : parts) {
            std::byte chunk[wire::part_chunk_overhead + wire::part_length];
            const std::uint32_t length = wire::emit_part_chunk(
                part.number, part.n, std::span(frame).first(part.length), chunk);
            packet.insert(packet.end(), chunk, chunk + length);
        }
        wire::seal_data(packet, connection, number++);
        network.deliver(network.now, {address(1, 40000), address(2, 40000), packet});
        run(microseconds(1));
    }
    std::uint32_t held() { return b.device->statistics(b.path).frames_held; }
};

TEST_F(Liar, a_part_of_a_frame_whose_turn_it_is_not_is_kept_nowhere) {
    say({{2, 0}});
    say({{1000, 1}});
    say({{2000, 1}});
    EXPECT_EQ(b.device->totals().no_room, 3U);
    EXPECT_EQ(held(), 0U);
    say({{0, 0}});
    EXPECT_EQ(b.device->totals().duplicate_frames, 1U) << "that came long ago";
    EXPECT_EQ(held(), 0U);
}

TEST_F(Liar, two_parts_in_a_packet_are_none) {
    say({{1, 0}, {1, 1}});
    EXPECT_EQ(b.device->totals().contents, 1U);
    EXPECT_EQ(held(), 0U);
}

TEST_F(Liar, a_frame_of_another_length_begins_anew) {
    say({{1, 0, 1100}});
    say({{1, 1, 1100}});
    say({{1, 2}});  // of 1200
    EXPECT_EQ(held(), 1U);
    EXPECT_EQ(b.received.size(), 1U);
    say({{1, 0}});
    say({{1, 0}});
    EXPECT_EQ(b.device->totals().duplicate_frames, 1U);
    EXPECT_EQ(b.received.size(), 1U);
    say({{1, 1}});
    EXPECT_EQ(b.received.size(), 2U);
    EXPECT_EQ(held(), 0U);
}

}  // namespace
}  // namespace via::device::datagram::test::parts_test
