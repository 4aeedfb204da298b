// One host with as many paths to a process as it can have, each of which asks for what costs memory
// and acknowledges nothing: the process stays small, and a stream of another host's goes on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "datagram_target.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"
#include "wire/frame.hpp"
#include "wire/packet.hpp"

namespace system_test::datagram_swarm_test {

namespace wire = via::wire;

namespace {

constexpr const char* door = "behind the swarm";
constexpr int host_port = 9741;
/// Half of all paths; more than that of one address are refused.
constexpr std::size_t paths_max = 2048;
/// Of copies and tables, with what each path has in any case.
constexpr std::size_t rss_growth_max_kib = 160 * 1024;

void be_target(Parent& parent) {
    // However long it takes until all have come, the first ones are still there.
    take_checked(parent, "udp:" + text_of_host(loopback_host(getppid(), 1)) + ",silence=120000",
                 door);
}
const Role target_role("target of a swarm", be_target);

/// A socket of the swarm's host: another process, as the target sees it.
class Bee {
public:
    Bee() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        require_call(socket_ >= 0, "socket");
        const sockaddr_in from = address(loopback_host(getpid(), 2), 0);
        require_call(bind(socket_, generic(from), sizeof from) == 0, "bind");
    }
    ~Bee() { close(socket_); }
    Bee(const Bee&) = delete;

    void turn_to(int port) const {
        const sockaddr_in to = address(loopback_host(getpid(), 1), port);
        require_call(connect(socket_, generic(to), sizeof to) == 0, "connect");
    }
    void send(std::span<const std::byte> packet) const {
        static_cast<void>(::send(socket_, packet.data(), packet.size(), 0));
    }
    /// The next packet, of so many bytes; none: nothing came for a while.
    std::optional<std::vector<std::byte>> hear() const {
        pollfd entry{socket_, POLLIN, 0};
        if (poll(&entry, 1, 100) <= 0) return std::nullopt;
        std::vector<std::byte> packet(2048);
        const ssize_t got = recv(socket_, packet.data(), packet.size(), 0);
        if (got < 0) return std::nullopt;
        packet.resize(static_cast<std::size_t>(got));
        return packet;
    }
    /// Asks until it is answered by a packet that `read` takes.
    void ask(std::span<const std::byte> packet,
             const std::function<bool(std::span<const std::byte>)>& read) const {
        until("the target answers", [&] {
            send(packet);
            const auto answer = hear();
            return answer && read(*answer);
        });
    }
    std::uint64_t connection = 0;  ///< in packets to the target
    std::uint64_t packets = 0;

private:
    static sockaddr_in address(std::uint32_t host, int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(host);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        return address;
    }
    static const sockaddr* generic(const sockaddr_in& address) {
        return reinterpret_cast<const sockaddr*>(&address);
    }
    int socket_;
};

/// Where the target's data go, and its instance.
wire::Answer find(const Bee& bee) {
    bee.turn_to(host_port);
    wire::Query query;
    query.discriminator.length = static_cast<std::uint16_t>(std::strlen(door));
    std::memcpy(query.discriminator.bytes.data(), door, std::strlen(door));
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_query(1, query, wire::ConnectingBytes(packet));
    wire::Answer answer;
    bee.ask(std::span(packet, length), [&](std::span<const std::byte> bytes) {
        return wire::parse_answer(bytes, answer) == wire::PacketError::none &&
               answer.code == wire::AnswerCode::found;
    });
    return answer;
}

/// A path for it. False: it is refused.
bool come(Bee& bee, const wire::Answer& target, std::uint64_t number) {
    bee.turn_to(target.port);
    wire::Hello hello;
    hello.target = target.instance;
    hello.attempt = 1;
    hello.offer = {number, 128 * 1024, 1000, 1472, host_port};
    std::byte packet[wire::connecting_length_max];
    const wire::ConnectingBytes bytes(packet);
    std::uint32_t length = wire::emit_hello(number, hello, bytes);
    bee.ask(std::span(packet, length), [&](std::span<const std::byte> answer) {
        return wire::parse_retry(answer, hello.cookie) == wire::PacketError::none;
    });
    length = wire::emit_hello(number, hello, bytes);
    wire::Welcome welcome;
    bool refused = false;
    bee.ask(std::span(packet, length), [&](std::span<const std::byte> answer) {
        wire::PathRefusal why{};
        refused = wire::parse_refuse(answer, why) == wire::PacketError::none;
        return refused || wire::parse_welcome(answer, welcome) == wire::PacketError::none;
    });
    bee.connection = welcome.connection;
    return !refused;
}

using Emit = std::function<std::uint32_t(std::byte*)>;

void say(Bee& bee, const Emit& emit) {
    std::byte packet[1472];
    const std::uint32_t length = wire::data_header_length + emit(packet + wire::data_header_length);
    wire::seal_data(std::span(packet, length), bee.connection, bee.packets++);
    bee.send(std::span(packet, length));
}

/// As many frames of a byte as a packet holds, from that number on.
std::uint32_t emit_small_frames(std::uint32_t number, std::byte* to) {
    std::uint32_t length = 0;
    for (; length + wire::frame_chunk_overhead < 1400; ++number) {
        wire::emit_frame_chunk(true, number, 1, to + length);
        to[length + wire::frame_chunk_overhead] = std::byte{1};
        length += wire::frame_chunk_overhead + 1;
    }
    return length;
}

/// Requests for somebody who is not there, to be refused, from that frame on.
std::uint32_t emit_requests(std::uint32_t number, std::byte* to) {
    wire::ConnectMessage message{};
    message.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    wire::Header header;
    header.kind = wire::FrameKind::request;
    const std::uint32_t frame = wire::header_length_base + sizeof message;
    std::uint32_t length = 0;
    for (; length + wire::frame_chunk_overhead + frame <= 1400; ++number) {
        wire::emit_frame_chunk(true, number, frame, to + length);
        length += wire::frame_chunk_overhead;
        wire::emit(header, to + length);
        std::memcpy(to + length + wire::header_length_base, &message, sizeof message);
        length += frame;
    }
    return length;
}

/// Room for so many sockets. False: there is none.
bool make_room_for(std::size_t descriptors) {
    rlimit limit{};
    require_call(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, descriptors);
    limit.rlim_max = std::max(limit.rlim_max, limit.rlim_cur);
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(DatagramSwarm, OfAllPathsOfAnAddressLeavesAProcessSmallAndAStreamGoingOn) {
    if (!make_room_for(paths_max + 200)) GTEST_SKIP() << "no right to so many descriptors";
    const Host host;
    Child child("target of a swarm");
    child.expect("ready");
    auto& page = child.shared<TrafficPage>();
    const wire::Answer target = find(Bee());
    Nic nic(("udp:" + text_of_host(loopback_host(getpid(), 3))).c_str());
    nic.turn_to(text_of_host(loopback_host(getpid(), 1)));
    End end(nic, target_wants());
    end.connect(door);
    Initiator initiator(end, Operation::send, page);
    const std::size_t at_first_kib = Holdings::of(child.pid()).rss_kib;

    std::vector<std::unique_ptr<Bee>> swarm;
    for (std::uint64_t number = 1; number <= paths_max + 8; ++number) {
        auto bee = std::make_unique<Bee>();
        if (!come(*bee, target, number)) break;
        swarm.push_back(std::move(bee));
        initiator.step();
    }
    EXPECT_EQ(swarm.size(), paths_max) << "half of all there are";
    const std::size_t before_kib = Holdings::of(child.pid()).rss_kib;
    const std::vector<std::byte> long_frame(1400);
    std::size_t most_kib = before_kib;
    const std::uint64_t then = page.taken;
    for (std::uint32_t round = 0; round < 20; ++round) {
        for (const auto& bee : swarm) {
            say(*bee, [&](std::byte* to) { return emit_small_frames(200 + 90 * round, to); });
            say(*bee, [&](std::byte* to) { return emit_requests(7 * round, to); });
            say(*bee, [&](std::byte* to) {
                return wire::emit_part_chunk(7 * round + 7, 0, long_frame, to);
            });
            initiator.step();
        }
        most_kib = std::max(most_kib, Holdings::of(child.pid()).rss_kib);
    }
    const std::uint64_t now = page.taken;
    until("messages arrive after it", [&] {
        initiator.step();
        return page.taken > now + 1000;
    });
    EXPECT_FALSE(initiator.over());
    page.leave = 1;
    child.expect("intact");
    most_kib = std::max(most_kib, Holdings::of(child.pid()).rss_kib);
    std::printf(
        "%zu paths: the target grew by %zu KiB, and by %zu KiB more with what they said; "
        "%llu messages meanwhile\n",
        swarm.size(), before_kib - at_first_kib, most_kib - before_kib,
        static_cast<unsigned long long>(now - then));
    if (!sanitized) {
        EXPECT_LE(most_kib, at_first_kib + rss_growth_max_kib);
    }
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    child.say("end");
    child.join();
}

}  // namespace

}  // namespace system_test::datagram_swarm_test
