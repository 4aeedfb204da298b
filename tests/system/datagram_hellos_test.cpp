// What hellos of strangers cost a process that waits for others: a hundred thousand in a second
// take a fifth of a processor at most (docs/design/wire-security.md has figures). With a key, run
// by with_a_key.sh, those of version 2 are looked at, without one those of version 1.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "datagram_target.hpp"
#include "support/child.hpp"
#include "support/host.hpp"
#include "wire/bytes.hpp"
#include "wire/packet.hpp"
#include "wire/sealed.hpp"

namespace system_test::datagram_hellos_test {

namespace wire = via::wire;

namespace {

constexpr const char* door = "behind the hellos";
constexpr int host_port = 9741;
constexpr std::size_t burst = 50;
constexpr std::size_t hellos = sanitized ? 5'000 : 50'000;
constexpr std::int64_t burst_ns = 500'000;  ///< so a hundred thousand come in a second
/// A fifth of a processor is 2 us of each; the test's bound leaves room for a machine under load,
/// and none for a multiplication of X25519, which takes 40.
constexpr double bound_us = 20;
/// Of hellos without a good cookie so many are answered in a second, and so many more at once
/// (datagram/constants.hpp).
constexpr double answers_a_second = 10'000;
constexpr double answers_at_once = 2000;

/// Of the target, which the test's process starts.
std::string address_of(pid_t test) { return text_of_host(loopback_host(test, 0)); }

void be_target(Parent& parent) { take_checked(parent, "udp:" + address_of(getppid()), door); }
const Role target_role("target of hellos", be_target);

std::int64_t now_ns(clockid_t clock) {
    timespec time{};
    require_call(clock_gettime(clock, &time) == 0, "clock_gettime");
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
clockid_t clock_of(pid_t process) {
    clockid_t clock{};
    require_call(clock_getcpuclockid(process, &clock) == 0, "clock_getcpuclockid");
    return clock;
}

using Packet = std::vector<std::byte>;

Packet hello_of(std::uint64_t instance, std::uint64_t number, const wire::Cookie& cookie) {
    wire::Hello hello;
    hello.target = instance;
    hello.attempt = 1;
    hello.cookie = cookie;
    hello.offer = {number, 128 * 1024, 1000, 1472, host_port};
    Packet packet(wire::connecting_length_max);
    packet.resize(
        wire::emit_hello(number, hello, std::span(packet).first<wire::connecting_length_max>()));
    return packet;
}
void to_version_2(Packet& packet) {
    wire::put(packet.data() + 4, wire::sealed::version);
    wire::put(packet.data(), wire::crc32c(std::span<const std::byte>(packet).subspan(4)));
}

struct Kind {
    const char* name;
    std::function<Packet(std::uint64_t instance, std::uint64_t number)> make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kinds[] = {
    {"without_cookie", [](auto instance, auto number) { return hello_of(instance, number, {}); }},
    {"of_another_instance",
     [](auto instance, auto number) { return hello_of(instance ^ 1, number, {}); }},
    {"with_a_guessed_cookie",
     [](auto instance, auto number) { return hello_of(instance, number, {number, number}); }},
    {"of_version_2_without_cookie",
     [](auto instance, auto number) {
         Packet packet = hello_of(instance, number, {});
         to_version_2(packet);
         return packet;
     }},
    {"of_version_2_with_a_guessed_cookie",
     [](auto instance, auto number) {
         namespace sealed = wire::sealed;
         Packet packet(sealed::hello_length, std::byte{0x33});
         wire::put_packet_prefix(packet, {wire::PacketKind::hello, number});
         wire::put(packet.data() + sealed::hello_target, instance);
         wire::put(packet.data() + sealed::hello_cipher, std::uint64_t{0});
         to_version_2(packet);
         return packet;
     }},
};

class Stranger {
public:
    Stranger() : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        require_call(socket_ >= 0, "socket");
    }
    ~Stranger() { close(socket_); }
    Stranger(const Stranger&) = delete;

    void turn_to(int port) const {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(port));
        require(inet_pton(AF_INET, address_of(getpid()).c_str(), &to.sin_addr) == 1, "inet_pton");
        require_call(connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0, "connect");
    }
    void send(std::span<Packet> packets) const {
        std::array<iovec, burst> pieces;
        std::array<mmsghdr, burst> messages{};
        for (std::size_t n = 0; n < packets.size(); ++n) {
            pieces[n] = {packets[n].data(), packets[n].size()};
            messages[n].msg_hdr.msg_iov = &pieces[n];
            messages[n].msg_hdr.msg_iovlen = 1;
        }
        static_cast<void>(
            sendmmsg(socket_, messages.data(), static_cast<unsigned>(packets.size()), 0));
    }
    /// What has come, without waiting.
    std::size_t hear(std::span<std::byte> last = {}) const {
        std::array<std::byte, 2048> packet;
        std::size_t count = 0;
        for (;;) {
            const ssize_t got = recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
            if (got < 0) return count;
            ++count;
            if (!last.empty())
                std::memcpy(last.data(), packet.data(),
                            std::min(last.size(), static_cast<std::size_t>(got)));
        }
    }
    void wait_ms(int ms) const {
        pollfd entry{socket_, POLLIN, 0};
        static_cast<void>(poll(&entry, 1, ms));
    }

private:
    int socket_;
};

wire::Answer find(const Stranger& stranger) {
    stranger.turn_to(host_port);
    wire::Query query;
    query.discriminator.length = static_cast<std::uint16_t>(std::strlen(door));
    std::memcpy(query.discriminator.bytes.data(), door, std::strlen(door));
    Packet packet(wire::connecting_length_max);
    packet.resize(
        wire::emit_query(1, query, std::span(packet).first<wire::connecting_length_max>()));
    wire::Answer answer;
    until("the target answers", [&] {
        std::array<std::byte, 32> heard{};
        stranger.send({&packet, 1});
        stranger.wait_ms(100);
        return stranger.hear(heard) != 0 &&
               wire::parse_answer(heard, answer) == wire::PacketError::none &&
               answer.code == wire::AnswerCode::found;
    });
    return answer;
}

class HelloFlood : public testing::TestWithParam<Kind> {};

TEST_P(HelloFlood, CostsTheTargetLittle) {
    const Host host;
    Child child("target of hellos");
    child.expect("ready");
    const Stranger stranger;
    const wire::Answer target = find(stranger);
    stranger.turn_to(target.port);
    std::vector<Packet> packets;
    std::mt19937_64 random;
    for (std::size_t n = 0; n < hellos; ++n)
        packets.push_back(GetParam().make(target.instance, random() | 1));

    const clockid_t clock = clock_of(child.pid());
    const std::int64_t before = now_ns(clock);
    const std::int64_t begin = now_ns(CLOCK_MONOTONIC);
    std::size_t answers = 0;
    for (std::size_t n = 0; n < hellos; n += burst) {
        const std::int64_t due = begin + static_cast<std::int64_t>(n / burst) * burst_ns;
        do answers += stranger.hear();
        while (now_ns(CLOCK_MONOTONIC) < due);
        stranger.send(std::span(packets).subspan(n, burst));
    }
    const double seconds = static_cast<double>(now_ns(CLOCK_MONOTONIC) - begin) / 1e9;
    // What the last ones cost, too.
    stranger.wait_ms(20);
    answers += stranger.hear();
    const double us = static_cast<double>(now_ns(clock) - before) / 1e3;
    std::printf("%zu hellos in %.2f s, %zu answers: %.2f us of the target's processors for each\n",
                hellos, seconds, answers, us / hellos);
    // The last ones are heard after the end.
    EXPECT_LE(static_cast<double>(answers), answers_at_once + answers_a_second * (seconds + 1));
    if (!sanitized) {
        EXPECT_LT(us / hellos, bound_us);
    }
    child.kill();
}

INSTANTIATE_TEST_SUITE_P(Of, HelloFlood, testing::ValuesIn(kinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace

}  // namespace system_test::datagram_hellos_test
