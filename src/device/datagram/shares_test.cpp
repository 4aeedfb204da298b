// One peer that takes all it can get leaves enough for others.
#include "device/datagram/shares.hpp"

#include "device/datagram/device_pair_test.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram::test::shares_test {
namespace {

/// Host 3 sends to b, too, and its first frame never arrives, so that all others come early.
struct Greedy : ::testing::Test, Scene {
    void begin(std::uint32_t keep_max, std::size_t copies_max) {
        b.open(1002, 4096, copies_max);
        b.port().keep_max = keep_max;
        ends.push_back(&greedy);
        meet();
        greedy.device->resolve({address(2, host_port), named("b")}, 7);
        ASSERT_TRUE(run(seconds(1), [&] { return greedy.is_up; }));
        network.weather = [this](const Datagram& datagram) {
            return datagram.from.bytes[3] == 3 && holds_first_frame(datagram) ? Fate{}
                                                                              : Fate{network.delay};
        };
        for (int n = 0; n < 1000; ++n) greedy.send("greedy " + std::string(1000, 'x'));
        run(milliseconds(20));
        ASSERT_GT(b.device->totals().no_room, 0U) << "it asks for more than there is";
    }
    static bool holds_first_frame(const Datagram& datagram) {
        if (datagram.kind() != wire::PacketKind::data) return false;
        wire::ChunkReader reader(datagram.bytes);
        wire::Chunk chunk;
        while (reader.next(chunk))
            if ((chunk.kind == wire::ChunkKind::frame || chunk.kind == wire::ChunkKind::part) &&
                chunk.frame_number == 0)
                return true;
        return false;
    }
    /// Of `count` messages of an honest peer the first is lost; how long until all are there?
    Duration honest(int count) {
        network.weather = [greedy_weather = network.weather,
                           lost = false](const Datagram& datagram) mutable {
            if (datagram.from.bytes[3] != 1 || lost) return greedy_weather(datagram);
            lost = true;
            return Fate{};
        };
        const Time begin = network.now;
        for (int n = 0; n < count; ++n) a.send("honest " + std::string(1000, 'x'));
        EXPECT_TRUE(
            run(seconds(5), [&] { return b.received.size() == static_cast<std::size_t>(count); }));
        return network.now - begin;
    }
    End greedy{network, 3, 1003};
};

TEST_F(Greedy, leaves_half_of_the_buffers) {
    begin(16, 0);
    EXPECT_EQ(b.port().kept, 8U);
    const std::uint64_t no_room = b.device->totals().no_room;
    EXPECT_LT(honest(5), milliseconds(1)) << "what came behind the lost one was kept";
    EXPECT_EQ(b.device->totals().no_room, no_room);
}

TEST_F(Greedy, leaves_half_of_the_copies) {
    begin(0, 16 * 1100);
    EXPECT_LT(honest(5), milliseconds(1));
}

TEST_F(Greedy, lets_go_of_all_when_its_path_ends) {
    begin(16, 16 * 1100);
    greedy.device.reset();
    ASSERT_TRUE(run(seconds(6), [&] { return count(b, PathEventKind::down) == 1; }));
    EXPECT_EQ(b.port().kept, 0U);
}

TEST(Shares, a_copy_counts_with_what_it_costs) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    port.keep_max = 0;
    Shares shares(port, 8, 64 * 1024);
    Share* const share = shares.add_path(address(3, 1), false);
    port.arrived.push_back({address(3, 1), address(1, 40000), std::vector<std::byte>(64)});
    Incoming in[1];
    ASSERT_EQ(port.receive(in), 1U);
    std::vector<FrameOrder::Held> all;
    for (;;) {
        FrameOrder::Held frame{in[0].bytes, 1, in[0].buffer};
        if (!shares.keep(*share, frame)) break;
        all.push_back(frame);
        ASSERT_LT(all.size(), 64U * 1024);
    }
    EXPECT_GT(all.size(), 100U);
    // 32 bytes are the least that an allocator gives, and each has a place in a table.
    EXPECT_LE(all.size() * (32 + sizeof(FrameOrder::Held)), 32 * 1024U) << "half of all";
    for (const FrameOrder::Held& frame : all) shares.let_go(frame);
    EXPECT_EQ(share->copied, 0U);
    port.release();
}

TEST(Shares, frames_in_parts_count_but_for_one_of_a_peer) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    Shares shares(port, 8, 64 * 1024);
    Share* const share = shares.add_path(address(3, 1), false);
    std::vector<FrameOrder::Held> all;
    const auto make = [&](Share& whose) {
        FrameOrder::Held frame;
        frame.length = 10'000;
        const bool made = shares.make_room_for_parts(whose, frame) != nullptr;
        if (made) all.push_back(frame);
        return made;
    };
    while (make(*share)) ASSERT_LT(all.size(), 100U);
    EXPECT_EQ(all.size(), 4U) << "half of 64 KB, and one that nobody is refused";
    Share* const other = shares.add_path(address(4, 1), false);
    EXPECT_TRUE(make(*other)) << "another peer finds room";
    const FrameOrder::Held spare = all[3];
    all.erase(all.begin() + 3);
    shares.let_go(spare);
    EXPECT_TRUE(make(*share)) << "the next one may have it";
    EXPECT_FALSE(make(*share));
    for (const FrameOrder::Held& frame : all) shares.let_go(frame);
    EXPECT_EQ(share->copied + other->copied, 0U);
    EXPECT_FALSE(share->spare_used);
}

TEST(Shares, one_host_leaves_paths_for_others) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    Shares shares(port, 8, 0);
    std::vector<Share*> all;
    for (std::uint16_t process = 1; process <= 8; ++process)
        if (Share* share = shares.add_path(address(3, process), false)) all.push_back(share);
    EXPECT_EQ(all.size(), 4U) << "whatever its port is";
    for (std::uint8_t host = 4; host <= 6; ++host) {
        all.push_back(shares.add_path(address(host, 1), false));
        EXPECT_NE(all.back(), nullptr) << int{host};
    }
    EXPECT_NE(shares.add_path(address(3, 1), true), nullptr) << "we want it ourselves";
    EXPECT_EQ(shares.add_path(address(9, 1), true), nullptr) << "there are no more";
    shares.remove_path(*all.back());
    EXPECT_NE(shares.add_path(address(9, 1), false), nullptr);
}

TEST(Shares, addresses_of_one_ipv6_network_are_one_peer) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    Shares shares(port, 8, 0);
    HostAddress address;
    address.length = 18;
    int paths = 0;
    for (std::uint8_t n = 0; n < 8; ++n) {
        address.bytes[15] = n;
        if (shares.add_path(address, false) != nullptr) ++paths;
    }
    EXPECT_EQ(paths, 4);
    address.bytes[7] = 1;
    EXPECT_NE(shares.add_path(address, false), nullptr) << "another network";
}

}  // namespace
}  // namespace via::device::datagram::test::shares_test
