// Strangers on the network: floods of random, truncated, damaged, replayed and forged packets at
// full speed leave connections intact and memory flat (docs/design/protocol.md).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "datagram_target.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"
#include "wire/packet.hpp"

namespace system_test::datagram_flood_test {

namespace wire = via::wire;

namespace {

constexpr const char* door = "behind the flood";
/// What is heard there and forged concerns nobody else.
struct Hosts {
    std::uint32_t near;  ///< the other one is the next
    explicit Hosts(pid_t test) : near(loopback_host(test, 0)) {}
    std::string near_text() const { return text_of_host(near); }
    std::string far_text() const { return text_of_host(near + 1); }
};

constexpr std::size_t rss_growth_max_kib = 16 * 1024;
constexpr int flood_packets = sanitized ? 20'000 : 150'000;
constexpr std::size_t headers_bytes = 28;

/// An IPv4 datagram with UDP in it, as it stood on the wire.
using Captured = std::vector<std::byte>;

/// What both ends say to each other, as somebody sees it who shares the wire.
class Spy {
public:
    explicit Spy(const Hosts& hosts)
        : hosts_(hosts), socket_(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP))) {}
    ~Spy() { close(socket_); }
    bool allowed() const { return socket_ >= 0; }
    /// Takes packets until it has `count` between the two ends.
    std::vector<Captured> look(std::size_t count, const std::function<void()>& meanwhile) {
        std::vector<Captured> seen;
        while (seen.size() < count) {
            meanwhile();
            Captured packet(65536);
            const ssize_t got = recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
            if (got < static_cast<ssize_t>(headers_bytes + wire::packet_prefix_length)) continue;
            packet.resize(static_cast<std::size_t>(got));
            if (is_ours(packet)) seen.push_back(std::move(packet));
        }
        return seen;
    }

private:
    bool is_ours(const Captured& packet) const {
        iphdr header{};
        std::memcpy(&header, packet.data(), sizeof header);
        const std::uint32_t from = ntohl(header.saddr) - hosts_.near;
        const std::uint32_t to = ntohl(header.daddr) - hosts_.near;
        return header.protocol == IPPROTO_UDP && header.ihl == 5 && from + to == 1 && from <= 1;
    }
    Hosts hosts_;
    int socket_;
};

/// Sends datagrams that claim to come from where a captured one came.
class Forger {
public:
    explicit Forger(const std::vector<Captured>& seen)
        : seen_(seen), socket_(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {}
    ~Forger() { close(socket_); }

    const Captured& pick() { return seen_[random_() % seen_.size()]; }
    std::mt19937_64& random() { return random_; }
    static std::span<const std::byte> payload(const Captured& packet) {
        return std::span(packet).subspan(headers_bytes);
    }
    /// `bytes` on the way of `like`: same ends, same ports.
    void send(const Captured& like, std::span<const std::byte> bytes) {
        Captured packet(like.begin(), like.begin() + headers_bytes);
        packet.insert(packet.end(), bytes.begin(), bytes.end());
        iphdr ip{};
        udphdr udp{};
        std::memcpy(&ip, packet.data(), sizeof ip);
        std::memcpy(&udp, packet.data() + sizeof ip, sizeof udp);
        ip.tot_len = htons(static_cast<std::uint16_t>(packet.size()));
        ip.check = 0;  // the kernel's
        udp.len = htons(static_cast<std::uint16_t>(sizeof udp + bytes.size()));
        udp.check = 0;  // none
        std::memcpy(packet.data(), &ip, sizeof ip);
        std::memcpy(packet.data() + sizeof ip, &udp, sizeof udp);
        put(packet, ip.daddr);
    }
    /// The same to the port at which the host answers.
    void send_to_host_port(const Captured& like, std::span<const std::byte> bytes) {
        Captured other = like;
        udphdr udp{};
        std::memcpy(&udp, other.data() + sizeof(iphdr), sizeof udp);
        udp.dest = htons(9741);
        std::memcpy(other.data() + sizeof(iphdr), &udp, sizeof udp);
        send(other, bytes);
    }

    /// To the sender of `like`: that nobody is at the port, or that it was too long. It quotes a
    /// datagram with the right addresses and ports, and an identifier that is guessed.
    void send_icmp(const Captured& like) {
        Captured packet(sizeof(iphdr) + sizeof(icmphdr) + headers_bytes + 24);
        std::byte* const quoted = packet.data() + sizeof(iphdr) + sizeof(icmphdr);
        std::memcpy(quoted, like.data(), std::min(like.size(), headers_bytes + 24));
        const std::uint64_t guessed = random_();
        std::memcpy(quoted + headers_bytes + 8, &guessed, sizeof guessed);
        icmphdr icmp{};
        icmp.type = ICMP_DEST_UNREACH;
        icmp.code = random_() % 2 == 0 ? ICMP_PORT_UNREACH : ICMP_FRAG_NEEDED;
        if (icmp.code == ICMP_FRAG_NEEDED) icmp.un.frag.mtu = htons(576);
        std::memcpy(packet.data() + sizeof(iphdr), &icmp, sizeof icmp);
        icmp.checksum = internet_sum(std::span(packet).subspan(sizeof(iphdr)));
        std::memcpy(packet.data() + sizeof(iphdr), &icmp, sizeof icmp);
        iphdr ip{};
        std::memcpy(&ip, like.data(), sizeof ip);
        std::swap(ip.saddr, ip.daddr);
        ip.protocol = IPPROTO_ICMP;
        ip.tot_len = htons(static_cast<std::uint16_t>(packet.size()));
        ip.check = 0;  // the kernel's
        std::memcpy(packet.data(), &ip, sizeof ip);
        put(packet, ip.daddr);
    }

private:
    static std::uint16_t internet_sum(std::span<const std::byte> bytes) {
        std::uint32_t sum = 0;
        for (std::size_t n = 0; n + 1 < bytes.size(); n += 2) {
            std::uint16_t word = 0;
            std::memcpy(&word, bytes.data() + n, sizeof word);
            sum += word;
        }
        while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
        return static_cast<std::uint16_t>(~sum);
    }
    void put(const Captured& packet, in_addr_t to_address) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = to_address;
        const auto* generic = reinterpret_cast<const sockaddr*>(&to);
        while (sendto(socket_, packet.data(), packet.size(), 0, generic, sizeof to) < 0)
            require_call(errno == ENOBUFS || errno == EAGAIN, "sending a forged datagram");
    }
    const std::vector<Captured>& seen_;
    std::mt19937_64 random_{7};
    int socket_;
};

struct Flood {
    const char* name;
    std::function<void(Forger&)> send;  ///< one packet
};

void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

void send_connecting(Forger& forger, bool to_host,
                     const std::function<std::uint32_t(wire::ConnectingBytes)>& emit) {
    std::byte packet[wire::connecting_length_max];
    const std::span<const std::byte> bytes(packet, emit(wire::ConnectingBytes(packet)));
    if (to_host)
        forger.send_to_host_port(forger.pick(), bytes);
    else
        forger.send(forger.pick(), bytes);
}

const Flood floods[] = {
    {"random_bytes",
     [](Forger& forger) {
         std::vector<std::byte> bytes(forger.random()() % 1400);
         for (std::byte& at : bytes) at = static_cast<std::byte>(forger.random()());
         forger.send(forger.pick(), bytes);
     }},
    {"truncated_packets",
     [](Forger& forger) {
         const Captured& packet = forger.pick();
         const auto whole = Forger::payload(packet);
         forger.send(packet, whole.first(forger.random()() % whole.size()));
     }},
    {"damaged_packets",
     [](Forger& forger) {
         const Captured& packet = forger.pick();
         const auto whole = Forger::payload(packet);
         std::vector<std::byte> bytes(whole.begin(), whole.end());
         bytes[forger.random()() % bytes.size()] ^= std::byte{1};
         forger.send(packet, bytes);
     }},
    {"replayed_packets",
     [](Forger& forger) {
         const Captured& packet = forger.pick();
         forger.send(packet, Forger::payload(packet));
     }},
    {"guessed_connections",
     [](Forger& forger) {
         const Captured& packet = forger.pick();
         const auto whole = Forger::payload(packet);
         std::vector<std::byte> bytes(whole.begin(), whole.end());
         wire::seal_data(bytes, forger.random()(), forger.random()() % 1000);
         forger.send(packet, bytes);
     }},
    {"guessed_closings",
     [](Forger& forger) {
         send_connecting(forger, false, [&](wire::ConnectingBytes packet) {
             return wire::emit_close(forger.random()(), wire::CloseReason::unknown_path, packet);
         });
     }},
    {"queries",
     [](Forger& forger) {
         send_connecting(forger, true, [&](wire::ConnectingBytes packet) {
             wire::Query query;
             query.discriminator.length = 8;
             return wire::emit_query(forger.random()() | 1, query, packet);
         });
     }},
    {"hellos_without_cookie",
     [](Forger& forger) {
         send_connecting(forger, false, [&](wire::ConnectingBytes packet) {
             wire::Hello hello;
             hello.target = forger.random()() | 1;
             hello.attempt = forger.random()() | 1;
             hello.offer.instance = forger.random()() | 1;
             hello.offer.receive_room = 100'000;
             hello.offer.datagram_max = 1472;
             hello.offer.nic_port = 9741;
             return wire::emit_hello(forger.random()() | 1, hello, packet);
         });
     }},
    {"guessed_answers",
     [](Forger& forger) {
         send_connecting(forger, false, [&](wire::ConnectingBytes packet) {
             const wire::Answer answer{wire::AnswerCode::found, 9741, forger.random()() | 1};
             return wire::emit_answer(forger.random()() | 1, answer, packet);
         });
     }},
    {"guessed_welcomes_retries_and_refusals",
     [](Forger& forger) {
         send_connecting(forger, false, [&](wire::ConnectingBytes packet) {
             const std::uint64_t connection = forger.random()() | 1;
             switch (forger.random()() % 3) {
                 case 0: {
                     wire::Welcome welcome{forger.random()() | 1, 1, {}};
                     welcome.offer = {forger.random()() | 1, 100'000, 1000, 1472, 9741};
                     return wire::emit_welcome(connection, welcome, packet);
                 }
                 case 1:
                     return wire::emit_retry(connection, {forger.random()(), forger.random()()},
                                             packet);
                 default:
                     return wire::emit_refuse(connection, wire::PathRefusal::unknown_instance,
                                              packet);
             }
         });
     }},
    {"other_versions",
     [](Forger& forger) {
         const Captured& packet = forger.pick();
         const auto whole = Forger::payload(packet);
         std::vector<std::byte> bytes(whole.begin(), whole.end());
         bytes[4] = static_cast<std::byte>(2 + forger.random()() % 250);
         const std::uint32_t sum = wire::crc32c(std::span(bytes).subspan(4));
         std::memcpy(bytes.data(), &sum, sizeof sum);
         forger.send(packet, bytes);
     }},
    {"icmp_of_who_saw_no_packet", [](Forger& forger) { forger.send_icmp(forger.pick()); }},
};

void be_target(Parent& parent) { take_checked(parent, "udp:" + Hosts(getppid()).far_text(), door); }
const Role target_role("flooded target", be_target);

class DatagramFlood : public testing::TestWithParam<Flood> {};

TEST_P(DatagramFlood, LeavesConnectionsIntactAndMemoryFlat) {
    const Host host;
    const Hosts hosts(getpid());
    Spy spy(hosts);
    if (!spy.allowed()) GTEST_SKIP() << "no right to look at the wire";
    Child child("flooded target");
    child.expect("ready");
    auto& page = child.shared<TrafficPage>();
    Nic nic(("udp:" + hosts.near_text()).c_str());
    nic.turn_to(hosts.far_text());
    End end(nic, target_wants());
    end.connect(door);
    Initiator initiator(end, Operation::send, page);
    const std::vector<Captured> seen = spy.look(100, [&] { initiator.step(); });
    const std::size_t before_kib = Holdings::of(child.pid()).rss_kib;

    Forger forger(seen);
    std::size_t most_kib = before_kib;
    for (int number = 0; number < flood_packets; ++number) {
        GetParam().send(forger);
        initiator.step();
        if (number % 10'000 == 0) most_kib = std::max(most_kib, Holdings::of(child.pid()).rss_kib);
    }
    const std::uint64_t then = page.taken;
    until("messages arrive after the flood", [&] {
        initiator.step();
        return page.taken > then + 1000;
    });
    EXPECT_FALSE(initiator.over());
    page.leave = 1;
    child.expect("intact");
    most_kib = std::max(most_kib, Holdings::of(child.pid()).rss_kib);
    std::printf("%llu messages during the flood; the target grew by %zu KiB at most\n",
                static_cast<unsigned long long>(then), most_kib - before_kib);
    if (!sanitized) {
        EXPECT_LE(most_kib, before_kib + rss_growth_max_kib);
    }
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    child.say("end");
    child.join();
}

INSTANTIATE_TEST_SUITE_P(Of, DatagramFlood, testing::ValuesIn(floods),
                         [](const auto& flood) { return std::string(flood.param.name); });

}  // namespace

}  // namespace system_test::datagram_flood_test
