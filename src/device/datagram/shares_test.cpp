// One peer that takes all it can get leaves enough for others.
#include "device/datagram/shares.hpp"

#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
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

/// Host 3 has eight paths to b, and of what b says over each never gets the first frame, but
/// acknowledges all others.
struct Hoarder : ::testing::Test, Scene {
    static constexpr std::size_t tables = std::size_t{8} * frames_under_way_least * frame_cost;
    std::size_t copies_max = 16 << 20;
    std::deque<End> crowd;
    void SetUp() override {
        b.open(1002, 4096, copies_max, tables);
        meet();
        for (std::uint16_t process = 0; process < 8; ++process) come(process);
        network.weather = [this](const Datagram& datagram) {
            network.log.clear();
            return datagram.to.bytes[3] == 3 && Greedy::holds_first_frame(datagram)
                       ? Fate{}
                       : Fate{network.delay};
        };
    }
    void TearDown() override { ends.clear(); }
    void come(std::uint16_t process, std::uint64_t instance = 3000) {
        End& end = crowd.emplace_back(network, 3, instance + process,
                                      static_cast<std::uint16_t>(40000 + process));
        ends.push_back(&end);
        end.device->resolve({address(2, host_port), named("b")}, 9);
        ASSERT_TRUE(run(seconds(1), [&] { return end.is_up; }));
    }
    /// The turn of one who has small frames for everybody, without end, and sends what is lost no
    /// more.
    void say(const std::vector<PathId>& paths) {
        PathEvent event;
        while (b.device->next_event(event)) {
        }
        Reaped reaped[64];
        while (b.device->reap(reaped) != 0) {
        }
        Frame frames[16];
        while (b.device->receive(frames) != 0) b.device->release();
        for (const PathId path : paths) {
            FrameSlot slot;
            while (b.device->reserve(path, End::header_length, 8, slot)) {
                wire::emit_whole_send(0, 0, slot.header);
                std::memset(slot.payload, 0, 8);
                slot = {};
            }
            b.device->transmit(path);
        }
        b.device->notify();
    }
    std::vector<PathId> paths_to(std::uint8_t host) {
        std::vector<PathId> paths;
        for (const PathEvent& event : b.events)
            if (event.kind == PathEventKind::up &&
                b.device->peer_address(event.path).bytes[3] == host)
                paths.push_back(event.path);
        return paths;
    }
    std::uint32_t under_way(const std::vector<PathId>& paths) {
        std::uint32_t count = 0;
        for (const PathId path : paths) count += b.device->statistics(path).frames_under_way;
        return count;
    }
};

TEST_F(Hoarder, what_is_remembered_for_all_paths_of_an_address_is_bounded) {
    const std::vector<PathId> paths = paths_to(3);
    ASSERT_EQ(paths.size(), 8U);
    for (int turn = 0; turn < 2000; ++turn) {
        say(paths);
        for (End& end : crowd) end.turn();
        network.now = network.now + microseconds(20);
    }
    const std::uint32_t hoarded = under_way(paths);
    EXPECT_GE(hoarded, 8 * frames_under_way_least) << "each has so many in any case";
    EXPECT_LE(hoarded, 8 * frames_under_way_least + tables / frame_cost / 2) << "half of the rest";
    network.weather = [this](const Datagram& datagram) {
        network.log.clear();
        return datagram.to.bytes[3] == 1 && Greedy::holds_first_frame(datagram)
                   ? Fate{}
                   : Fate{network.delay};
    };
    const std::vector<PathId> honest = paths_to(1);
    for (int turn = 0; turn < 2000; ++turn) {
        say(honest);
        a.turn();
        network.now = network.now + microseconds(20);
    }
    EXPECT_GE(under_way(honest), 2 * frames_under_way_least) << "another address finds room";
}

/// One frame comes as far ahead as may be: its table is long.
TEST_F(Hoarder, a_long_table_for_one_early_frame_is_of_the_share) {
    const std::size_t cost = (frames_ahead_least - frames_held_least) * sizeof(FrameOrder::Held);
    std::vector<std::byte> packet(wire::data_header_length + wire::frame_chunk_overhead + 16);
    std::uint64_t connection = 0;
    for (int life = 0; life < 2; ++life) {
        network.weather = [&](const Datagram& datagram) {
            if (datagram.from.bytes[3] == 3) std::memcpy(&connection, datagram.bytes.data() + 8, 8);
            return datagram.from.bytes[3] == 3 ? Fate{} : Fate{network.delay};
        };
        const std::uint64_t no_room = b.device->totals().no_room;
        for (End& end : crowd) {
            end.send("to learn the identifier");
            wire::emit_frame_chunk(true, frames_ahead_least - 1, 16,
                                   packet.data() + wire::data_header_length);
            wire::seal_data(packet, connection, 1000);
            network.deliver(network.now, {end.port().data_address(), address(2, 40000), packet});
            b.turn();
        }
        EXPECT_EQ(b.device->totals().no_room - no_room, 8 - tables / 2 / cost - 1) << "never came";
        ends = {&a, &b};
        crowd.clear();
        network.weather = nullptr;
        ASSERT_TRUE(run(seconds(6), [&] {
            return count(b, PathEventKind::down) == 8 * static_cast<std::size_t>(life + 1);
        }));
        for (std::uint16_t process = 0; process < 8; ++process)
            come(process, 4000 + 1000 * static_cast<std::uint64_t>(life));
    }
}

/// Says frames of b's path in packets and in an order of its own.
struct Speaker : Carrying {
    std::uint64_t connection = 0;
    std::uint64_t number = 1000;
    void SetUp() override {
        Carrying::SetUp();
        network.weather = [this](const Datagram& datagram) {
            if (datagram.from.bytes[3] == 1) std::memcpy(&connection, datagram.bytes.data() + 8, 8);
            return Fate{};
        };
        a.send("to learn the identifier");
    }
    void say(const std::vector<std::uint32_t>& frames) {
        constexpr std::uint32_t length = wire::header_length_base;
        constexpr std::size_t room = wire::frame_chunk_overhead + length;
        std::vector<std::byte> packet(wire::data_header_length + frames.size() * room);
        std::byte* at = packet.data() + wire::data_header_length;
        for (const std::uint32_t frame : frames) {
            wire::emit_frame_chunk(true, frame, length, at);
            wire::emit_whole_send(0, 0, at + wire::frame_chunk_overhead);
            at += room;
        }
        wire::seal_data(packet, connection, number++);
        network.deliver(network.now, {a.port().data_address(), address(2, 40000), packet});
        b.turn();
    }
};

/// Those that were held go with frame 0, and their table with them; the frame behind needs another.
TEST_F(Speaker, an_early_frame_beside_the_one_that_all_waited_for_has_a_table_that_is_charged) {
    for (std::uint32_t frame = 1; frame <= 100; ++frame) say({frame});
    say({0, 200});
    EXPECT_EQ(b.received.size(), 101U);
    for (std::uint32_t frame = 101; frame < 200; ++frame) say({frame});
    EXPECT_EQ(b.received.size(), 201U);
}

TEST_F(Speaker, tables_of_early_frames_are_charged_in_whatever_order_they_come) {
    Random random(4);
    std::uint32_t next = 0;
    for (int turn = 0; turn < 5000; ++turn) {
        std::vector<std::uint32_t> frames;
        for (std::uint64_t n = random.below(4); n != 0; --n)
            frames.push_back(next + static_cast<std::uint32_t>(random.below(300)));
        if (random.below(8) == 0) frames.push_back(next);
        if (frames.empty()) continue;
        say(frames);
        next = static_cast<std::uint32_t>(b.received.size());
    }
    EXPECT_GT(next, 1000U);
}

/// The way to host 3 carried one long frame to each of its processes, and then no more; nor does it
/// acknowledge the parts.
struct NarrowedHoarder : Hoarder {
    static constexpr std::uint32_t payload = 1300;
    static constexpr std::size_t copies = 3;  ///< that half of what there is has room for
    NarrowedHoarder() { copies_max = 2 * copies * (payload + 150); }
    /// A turn of b's, who says again what was lost.
    void turn_of_b() {
        PathEvent event;
        while (b.device->next_event(event))
            if (event.kind == PathEventKind::down) ++over;
        Reaped reaped[64];
        while (const std::size_t count = b.device->reap(reaped))
            for (std::size_t n = 0; n < count; ++n)
                if (reaped[n].lost) lost.insert({reaped[n].path, reaped[n].number});
        Frame frames[16];
        while (b.device->receive(frames) != 0) b.device->release();
        std::erase_if(lost, [this](const auto& what) { return emit(what.first, what.second); });
        b.device->notify();
    }
    bool emit(PathId path, std::optional<std::uint32_t> again) {
        FrameSlot slot;
        slot.again = again.has_value();
        slot.number = again.value_or(0);
        if (!b.device->reserve(path, End::header_length, payload, slot)) {
            b.device->set_waiting_for_room(path);
            return false;
        }
        wire::emit_whole_send(0, 0, slot.header);
        std::memset(slot.payload, 'x', payload);
        b.device->transmit(path);
        return true;
    }
    std::size_t in_parts(const std::vector<PathId>& paths) {
        std::size_t count = 0;
        for (const PathId path : paths) count += b.device->statistics(path).frames_in_parts;
        return count;
    }
    std::set<std::pair<PathId, std::uint32_t>> lost;
    std::size_t over = 0;  ///< paths
};

TEST_F(NarrowedHoarder, copies_of_what_leaves_in_parts_are_of_the_share_and_given_back) {
    for (std::size_t life = 1; life <= 2; ++life) {
        const std::vector<PathId> paths = paths_to(3);
        ASSERT_EQ(paths.size(), 8U);
        network.weather = [this](const Datagram& datagram) {
            network.log.clear();
            return datagram.to.bytes[3] == 3 && datagram.bytes.size() > 100 ? Fate{}
                                                                            : Fate{network.delay};
        };
        for (const PathId path : paths) ASSERT_TRUE(emit(path, {}));
        b.device->notify();
        std::size_t most = 0;
        for (int turn = 0; turn < 20'000 && over != 8; ++turn) {
            turn_of_b();
            a.turn();
            for (End& end : crowd) end.turn();
            if (over == 0) most = in_parts(paths);
            network.now = network.now + milliseconds(1);
        }
        EXPECT_EQ(over, 8U) << "nothing of what they were told arrives";
        EXPECT_EQ(most, copies + 1) << "half of what there is, and one of any peer";
        ends = {&a, &b};
        crowd.clear();
        b.events.clear();
        over = 0;
        network.weather = nullptr;
        for (std::uint16_t process = 0; process < 8; ++process)
            come(process, 4000 + 1000 * static_cast<std::uint64_t>(life));
    }
}

TEST(Shares, a_copy_counts_with_what_it_costs) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    port.keep_max = 0;
    Shares shares(port, 8, 64 * 1024, 0);
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
    Shares shares(port, 8, 64 * 1024, 0);
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
    // One that leaves has a spare of its own, or two ends would wait for each other.
    FrameOrder::Held leaving;
    leaving.length = 10'000;
    EXPECT_TRUE(shares.has_room_for_parts_out(*share, leaving.length));
    EXPECT_NE(shares.make_room_for_parts_out(*share, leaving), nullptr);
    EXPECT_FALSE(shares.has_room_for_parts_out(*share, leaving.length));
    all.push_back(leaving);
    for (const FrameOrder::Held& frame : all) shares.let_go(frame);
    EXPECT_EQ(share->copied + other->copied, 0U);
    EXPECT_FALSE(share->spare_used_in || share->spare_used_out);
}

TEST(Shares, one_host_leaves_paths_for_others) {
    Network network;
    TestPort port(network, 1, 40000, 1);
    Shares shares(port, 8, 0, 0);
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
    Shares shares(port, 8, 0, 0);
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
