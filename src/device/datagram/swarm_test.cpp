// As many paths as one address can have, each of which does what costs us memory. What all of them
// have stays within the address's share, and a stream of somebody else's goes on.
#include <malloc.h>

#include <vector>

#include "device/datagram/device_pair_test.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram::test::swarm_test {
namespace {

/// Bytes that the allocator has given out.
std::size_t allocated() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/// Processes of host 3, without a device of their own: what they say is made by hand.
struct Swarm : ::testing::Test, Scene {
    static constexpr std::size_t copies_max = 4 << 20;
    static constexpr std::size_t tables_max = 4 << 20;
    static constexpr std::uint32_t paths_max = 4096;
    struct Process {
        wire::Cookie cookie;
        std::uint64_t connection = 0;  ///< in packets to b; 0: there is no path
        std::uint64_t packets = 0;
    };
    std::vector<Process> processes = std::vector<Process>(paths_max);

    void SetUp() override {
        b.open(1002, paths_max, copies_max, tables_max);
        b.port().keep_max = 0;  // all is copied
        meet();
        network.weather = [this](const Datagram& datagram) {
            network.log.clear();
            if (datagram.to.bytes[3] != 3) return Fate{network.delay};
            hear(processes[port_of(datagram.to) - port_first], datagram);
            return Fate{};
        };
    }
    static constexpr std::uint32_t port_first = 20'000;
    static HostAddress address_of(std::size_t process) {
        return address(3, static_cast<std::uint16_t>(port_first + process));
    }
    static void hear(Process& process, const Datagram& datagram) {
        wire::Welcome welcome;
        if (datagram.kind() == wire::PacketKind::retry)
            wire::parse_retry(datagram.bytes, process.cookie);
        else if (wire::parse_welcome(datagram.bytes, welcome) == wire::PacketError::none)
            process.connection = welcome.connection;
    }
    void tell(std::size_t process, std::vector<std::byte> packet) {
        network.deliver(network.now, {address_of(process), address(2, 40000), std::move(packet)});
        b.turn();
        network.now = network.now + microseconds(5);
    }
    void say_hello(std::size_t process) {
        wire::Hello hello;
        hello.target = 1002;
        hello.attempt = 1;
        hello.cookie = processes[process].cookie;
        hello.offer = {5000 + process, 128 * 1024, 1000, 1472, host_port};
        std::vector<std::byte> packet(wire::connecting_length_max);
        packet.resize(wire::emit_hello(7000 + process, hello,
                                       wire::ConnectingBytes(packet.data(), packet.size())));
        tell(process, std::move(packet));
    }
    /// Chunks in a data packet. It wants an acknowledgement, and takes none.
    void say(std::size_t process, const std::function<std::uint32_t(std::byte*)>& emit) {
        std::vector<std::byte> packet(1472);
        packet.resize(wire::data_header_length + emit(packet.data() + wire::data_header_length));
        wire::seal_data(packet, processes[process].connection, processes[process].packets++);
        tell(process, std::move(packet));
    }
    /// As many frames as a packet has room for, from that number on, of a byte each.
    static std::uint32_t emit_small_frames(std::uint32_t number, std::byte* to) {
        std::uint32_t length = 0;
        for (; length + wire::frame_chunk_overhead + 1 <= 1400; ++number) {
            wire::emit_frame_chunk(true, number, 1, to + length);
            to[length + wire::frame_chunk_overhead] = std::byte{1};
            length += wire::frame_chunk_overhead + 1;
        }
        return length;
    }
    /// A stream between others, a message each time.
    void somebody_elses_stream_goes_on() {
        a.send("message " + std::to_string(sent++));
        ASSERT_TRUE(run(seconds(1), [&] { return b.received.size() == sent; }))
            << b.received.size() << " of " << sent;
        ASSERT_EQ(b.received.back(), "message " + std::to_string(sent - 1));
    }
    std::size_t sent = 0;
};

TEST_F(Swarm, of_all_paths_that_an_address_can_have_takes_its_share_and_stops_nobody) {
    somebody_elses_stream_goes_on();
    const std::size_t at_first = allocated();
    std::vector<std::size_t> up;
    for (std::size_t process = 0; process < paths_max; ++process) {
        // No faster than all are answered.
        network.now = network.now + Duration{2 * seconds(1).ns / strangers_hellos};
        say_hello(process);
        say_hello(process);
        if (processes[process].connection != 0) up.push_back(process);
        if (process % 256 == 0) somebody_elses_stream_goes_on();
    }
    EXPECT_GE(up.size(), 2047U);
    EXPECT_LE(up.size(), 2048U) << "half of all";
    const std::size_t before = allocated();
    const std::vector<std::byte> frame(1400);
    for (const std::size_t process : up) {
        if (process % 64 == 0) somebody_elses_stream_goes_on();
        // As far ahead as may be, and as many as there is room for; what all wait for, in part.
        say(process, [](std::byte* to) { return emit_small_frames(900, to); });
        say(process, [](std::byte* to) { return emit_small_frames(300, to); });
        say(process, [&](std::byte* to) { return wire::emit_part_chunk(0, 1, frame, to); });
    }
    somebody_elses_stream_goes_on();
    EXPECT_GT(b.device->totals().no_room, 0U);
    const std::size_t after = allocated();
    std::printf("%zu paths: %zu KiB, and %zu KiB with what they said\n", up.size(),
                (before - at_first) / 1024, (after - before) / 1024);
    const std::size_t share = copies_max / 2 + tables_max / 2;
    const std::size_t each = frames_held_least * sizeof(FrameOrder::Held) + 1024;
    EXPECT_LE(after, before + share + up.size() * each);
    ASSERT_TRUE(run(seconds(10), [&] { return count(b, PathEventKind::down) == up.size(); }))
        << "none of them says anything any more";
    somebody_elses_stream_goes_on();
    std::vector<PathEvent>().swap(b.events);  // the test's own notes
    b.port().doubts = {};
    b.port().doubts.shrink_to_fit();
    EXPECT_LE(allocated(), at_first + (1 << 20)) << "all was given back";
}

}  // namespace
}  // namespace via::device::datagram::test::swarm_test
