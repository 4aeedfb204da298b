// Datagrams between ports on loopback addresses: bursts, joined and split; errors; room; sleeping.
#include "device/udp/udp_port.hpp"

#include <netinet/udp.h>
#include <sys/wait.h>
#include <functional>

#include "device/udp/test_support.hpp"

namespace via::device::udp::test::udp_port_test {
namespace {

/// Counts calls; refuses to cut messages, or has no room, when told to.
class Watched : public System {
public:
    ssize_t sendto(int fd, const void* bytes, std::size_t length, const sockaddr* address,
                   socklen_t address_length) override {
        ++single;
        if (refuse_room()) return -1;
        return System::sendto(fd, bytes, length, address, address_length);
    }
    int sendmmsg(int fd, mmsghdr* messages, unsigned count) override {
        ++bursts;
        if (refuse_room()) return -1;
        if (refusal == 0 || messages[0].msg_hdr.msg_control == nullptr)
            return System::sendmmsg(fd, messages, count);
        errno = refusal;
        return -1;
    }
    ssize_t recvfrom(int fd, void* buffer, std::size_t length, sockaddr* address,
                     socklen_t* address_length) override {
        ++plain_receives;
        return System::recvfrom(fd, buffer, length, address, address_length);
    }
    ssize_t recvmsg(int fd, msghdr* message, int flags) override {
        ++(flags == 0 ? receives : error_reads);
        return System::recvmsg(fd, message, flags);
    }
    int recvmmsg(int fd, mmsghdr* messages, unsigned count) override {
        ++burst_receives;
        return System::recvmmsg(fd, messages, count);
    }
    int setsockopt(int fd, int level, int option, int value) override {
        if (option == SO_RCVBUF && level == SOL_SOCKET && buffer_max < value) value = buffer_max;
        return System::setsockopt(fd, level, option, value);
    }

    int single = 0, bursts = 0, receives = 0, error_reads = 0, burst_receives = 0;
    int plain_receives = 0;
    int refusal = 0;
    bool no_room = false;
    int buffer_max = 1 << 30;

private:
    bool refuse_room() {
        if (no_room) errno = EAGAIN;
        return no_room;
    }
};

TEST(UdpPort, TellsWhatItIs) {
    Directory directory;
    Node node(directory);
    EXPECT_EQ(node->nic_address(), test_address());
    EXPECT_TRUE(same_host(node->data_address(), test_address()));
    EXPECT_NE(port_of(node->data_address()), port_of(test_address()));
    EXPECT_EQ(node->datagram_max(), 65507U) << "the loopback carries 65536";
    EXPECT_GT(node->receive_room(), 60'000U);
    EXPECT_TRUE(node->has_host_port());
    EXPECT_GE(node->next_deadline(), node->now() + seconds(1)) << "for nothing but its own names";
}

TEST(UdpPort, ALoneDatagramCostsACallOnEachSide) {
    Directory directory, other;
    Watched calls;
    Node a(directory, test_address(), 1, calls), b(other, test_address(1), 2, calls);
    calls = {};
    EXPECT_EQ(send(a, b->data_address(), "12345678"), 1U);
    EXPECT_EQ(calls.single + calls.bursts, 1);
    std::array<datagram::Incoming, 16> incoming;
    ASSERT_EQ(b->receive(incoming), 1U);
    EXPECT_EQ(calls.receives + calls.burst_receives, 1);
    EXPECT_EQ(std::memcmp(incoming[0].bytes, "12345678", 8), 0);
    EXPECT_EQ(incoming[0].length, 8U);
    EXPECT_EQ(incoming[0].from, a->data_address());
    EXPECT_FALSE(incoming[0].to_host_port);
    b->release();
    EXPECT_EQ(b->receive(incoming), 0U);
}

TEST(UdpPort, ABurstIsOneMessageAndComesSplit) {
    Directory directory, other;
    Watched calls;
    Node a(directory, test_address(), 1, calls), b(other, test_address(1), 2);
    std::vector<std::string> texts;
    for (std::size_t n = 0; n < 40; ++n) texts.push_back(text(n == 39 ? 100 : 1400, n));
    std::vector<datagram::Outgoing> burst;
    for (const std::string& one : texts) burst.push_back(outgoing(b->data_address(), one));
    EXPECT_EQ(a->send(burst), 40U);
    EXPECT_EQ(calls.bursts, 1);
    EXPECT_EQ(calls.single, 0);
    ASSERT_TRUE(b.hear(40));
    for (std::size_t n = 0; n < 40; ++n) EXPECT_EQ(b.came[n].bytes, texts[n]) << n;
}

TEST(UdpPort, RunsThatLieTogetherGoWhereTheyShould) {
    Directory directory, other;
    Watched calls;
    Node a(directory, test_address(), 1, calls), b(other, test_address(1), 2),
        c(other, test_address(1), 3);
    constexpr std::uint32_t each = 1400, count = 60;  // more than one message takes
    const std::string first = text(each * count, 1), second = text(each * 3, 2);
    std::vector<datagram::Outgoing> burst;
    const auto add_run = [&](const Node& to, const std::string& all) {
        for (std::size_t at = 0; at < all.size(); at += each) {
            burst.push_back(outgoing(to->data_address(), std::string_view(all).substr(at, each)));
            burst.back().follows = at != 0;
        }
    };
    add_run(b, first);
    add_run(c, second);
    EXPECT_EQ(a->send(burst), burst.size());
    EXPECT_EQ(calls.bursts, 1);
    EXPECT_EQ(calls.single, 0);
    ASSERT_TRUE(b.hear(count));
    ASSERT_TRUE(c.hear(3));
    for (std::size_t n = 0; n < count; ++n)
        EXPECT_EQ(b.came[n].bytes, first.substr(n * each, each)) << n;
    for (std::size_t n = 0; n < 3; ++n)
        EXPECT_EQ(c.came[n].bytes, second.substr(n * each, each)) << n;
}

TEST(UdpPort, WhereSmallOnesComeAloneTheyTakeTheShortestWayUntilABurstComes) {
    Directory directory, other;
    Watched calls;
    Node a(directory, test_address(), 1), b(other, test_address(1), 2, calls);
    std::array<datagram::Incoming, 16> incoming;
    const auto look = [&] {
        const std::size_t count = b->receive(incoming);
        b->release();
        return count;
    };
    for (int n = 0; n < 40; ++n) {
        calls = {};
        send(a, b->data_address(), text(50, static_cast<std::size_t>(n)));
        ASSERT_EQ(look(), 1U) << n;
        ASSERT_EQ(std::string(reinterpret_cast<const char*>(incoming[0].bytes), incoming[0].length),
                  text(50, static_cast<std::size_t>(n)));
        EXPECT_EQ(incoming[0].from, a->data_address());
        ASSERT_EQ(look(), 0U) << n;
    }
    EXPECT_EQ(calls.plain_receives, 2) << "each look is a recvfrom";
    EXPECT_EQ(calls.receives + calls.burst_receives, 0);
    calls = {};
    for (int n = 0; n < 10; ++n) {
        for (int two = 0; two < 2; ++two) send(a, b->data_address(), text(50, 7));
        for (const std::size_t found : {1U, 1U, 0U}) ASSERT_EQ(look(), found) << n;
    }
    EXPECT_EQ(calls.receives + calls.burst_receives, 0) << "two at once are no burst";
    std::vector<std::string> texts;
    for (std::size_t n = 0; n < 20; ++n) texts.push_back(text(1400, n));
    std::vector<datagram::Outgoing> burst;
    for (const std::string& one : texts) burst.push_back(outgoing(b->data_address(), one));
    for (int twice = 0; twice < 2; ++twice) {
        calls = {};
        b.came.clear();
        EXPECT_EQ(a->send(burst), burst.size());
        ASSERT_TRUE(b.hear(20));
        for (std::size_t n = 0; n < 20; ++n) EXPECT_EQ(b.came[n].bytes, texts[n]) << n;
    }
    EXPECT_EQ(calls.plain_receives, 0) << "the second burst comes joined";
}

/// Each time before the kernel is told not to join any more, something is sent.
class Hurried : public System {
public:
    int setsockopt(int fd, int level, int option, int value) override {
        if (level == SOL_UDP && option == UDP_GRO && value == 0 && send_more) {
            ++ends;
            send_more();
        }
        return System::setsockopt(fd, level, option, value);
    }
    std::function<void()> send_more;
    int ends = 0;
};

TEST(UdpPort, WhatWasJoinedBeforeThatEndedComesSplitAllTheSame) {
    Directory directory, other;
    Hurried calls;
    Node a(directory, test_address(), 1), b(other, test_address(1), 2, calls);
    std::vector<std::string> sent;
    const std::string first = text(700, 1), second = text(700, 2);
    calls.send_more = [&] {
        const std::vector<datagram::Outgoing> two{outgoing(b->data_address(), first),
                                                  outgoing(b->data_address(), second)};
        EXPECT_EQ(a->send(two), 2U);
        sent.insert(sent.end(), {first, second});
    };
    for (std::size_t n = 0; n < 60; ++n) {
        sent.push_back(text(50, n));
        EXPECT_EQ(send(a, b->data_address(), sent.back()), 1U);
        ASSERT_TRUE(b.hear(sent.size())) << n;
    }
    EXPECT_GE(calls.ends, 2);
    ASSERT_EQ(b.came.size(), sent.size());
    for (std::size_t n = 0; n < sent.size(); ++n) EXPECT_EQ(b.came[n].bytes, sent[n]) << n;
}

TEST(UdpPort, DatagramsOfAllLengthsAndAddressesKeepTheirOrder) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2), c(other, test_address(1), 3);
    std::vector<std::string> texts;
    for (std::size_t n = 0; n < 200; ++n) texts.push_back(text((n * 37) % 5 * 300 + n % 2, n));
    std::vector<datagram::Outgoing> burst;
    for (std::size_t n = 0; n < texts.size(); ++n)
        burst.push_back(outgoing(n % 7 < 5 ? b->data_address() : c->data_address(), texts[n]));
    EXPECT_EQ(a->send(burst), texts.size());
    ASSERT_TRUE(b.hear(144));
    ASSERT_TRUE(c.hear(56));
    std::size_t at_b = 0, at_c = 0;
    for (std::size_t n = 0; n < texts.size(); ++n)
        EXPECT_EQ(n % 7 < 5 ? b.came[at_b++].bytes : c.came[at_c++].bytes, texts[n]) << n;
}

TEST(UdpPort, AKernelThatDoesNotCutMessagesGetsThemOneByOne) {
    for (const int error : {EIO, EINVAL, EMSGSIZE, EOPNOTSUPP}) {
        Directory directory, other;
        Watched calls;
        calls.refusal = error;
        Node a(directory, test_address(), 1, calls), b(other, test_address(1), 2);
        const std::string one = text(500, 1);
        const std::vector<datagram::Outgoing> burst(10, outgoing(b->data_address(), one));
        EXPECT_EQ(a->send(burst), 10U);
        EXPECT_EQ(calls.single, 10);
        EXPECT_TRUE(b.hear(10));
        a->send(burst);
        EXPECT_TRUE(b.hear(20));
        const bool for_good = error == EIO || error == EOPNOTSUPP;
        EXPECT_EQ(calls.single, for_good ? 10 : 20) << "refused for good, it is not asked again";
    }
}

TEST(UdpPort, TheLongestDatagram) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    const std::string longest = text(65507, 3);
    EXPECT_EQ(send(a, b->data_address(), longest), 1U);
    ASSERT_TRUE(b.hear(1));
    EXPECT_EQ(b.came[0].bytes, longest);
    EXPECT_EQ(send(a, b->data_address(), text(65508, 3)), 1U) << "taken, and lost";
}

TEST(UdpPort, TheHostsPortHearsAndAnswers) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    send(a, test_address(1), "question");
    ASSERT_TRUE(b.hear(1));
    EXPECT_TRUE(b.came[0].to_host_port);
    datagram::Outgoing answer = outgoing(b.came[0].from, "answer");
    answer.from_host_port = true;
    EXPECT_EQ(b->send({&answer, 1}), 1U);
    ASSERT_TRUE(a.hear(1));
    EXPECT_EQ(a.came[0].from, test_address(1));
    EXPECT_FALSE(a.came[0].to_host_port);
}

TEST(UdpPort, WhoIsBusyHearsAtTheHostsPortAllTheSame) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    send(a, test_address(1), "question");
    std::array<datagram::Incoming, 16> incoming;
    bool heard = false;
    for (int n = 0; n < 200 && !heard; ++n) {
        send(a, b->data_address(), "data");
        const std::size_t count = b->receive(incoming);
        ASSERT_EQ(count, 1U);
        heard = incoming[0].to_host_port;
        b->release();
    }
    EXPECT_TRUE(heard);
}

TEST(UdpPort, WithoutRoomTheRestIsSentLater) {
    Directory directory, other;
    Watched calls;
    Node a(directory, test_address(), 1, calls), b(other, test_address(1), 2);
    const std::vector<datagram::Outgoing> burst(3, outgoing(b->data_address(), "x"));
    calls.no_room = true;
    EXPECT_EQ(a->send(burst), 0U);
    EXPECT_EQ(a->send(std::span(burst).first(1)), 0U);
    std::array<WakeDescriptor, 2> wake{};
    ASSERT_EQ(a->wake_descriptors(wake), 2U);
    EXPECT_TRUE(wake[0].for_room);
    EXPECT_FALSE(wake[1].for_room) << "that one was not full: it would wake us for nothing";
    a->arm(Sleep::on_handle);
    pollfd handle{a->wait_handle(), POLLIN, 0};
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1) << "asleep it hears that there is room";
    a->arm(Sleep::awake);
    calls.no_room = false;
    EXPECT_TRUE(a->has_room());
    EXPECT_EQ(a->send(burst), 3U);
    EXPECT_TRUE(b.hear(3));
}

TEST(UdpPort, AsleepTheHandleTellsAwakeItDoesNot) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    pollfd handle{b->wait_handle(), POLLIN, 0};
    EXPECT_FALSE(b->has_work());
    send(a, b->data_address(), "x");
    EXPECT_TRUE(b->has_work());
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    b->arm(Sleep::on_handle);
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1);
    b->arm(Sleep::on_words);
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    std::array<WakeDescriptor, 1> few;
    EXPECT_EQ(b->wake_descriptors(few), 2U) << "data and host";
    std::array<WakeDescriptor, 2> wake;
    ASSERT_EQ(b->wake_descriptors(wake), 2U);
    pollfd data{wake[0].descriptor, POLLIN, 0};
    EXPECT_EQ(::poll(&data, 1, watchdog_ms), 1);
    b.take_all();
    EXPECT_FALSE(b->has_work());
    b->arm(Sleep::on_handle);
    send(a, test_address(1), "question");
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1) << "the host's port wakes as well";
}

TEST(UdpPort, KeptBuffersStayAndAreBounded) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    std::vector<std::pair<std::uint32_t, const std::byte*>> kept;
    std::size_t refused = 0;
    for (std::size_t n = 0; n < Buffers::count + 10; ++n) {
        send(a, b->data_address(), text(64, n));
        std::array<datagram::Incoming, 1> incoming;
        ASSERT_EQ(b->receive(incoming), 1U) << n;
        if (b->keep(incoming[0].buffer))
            kept.emplace_back(incoming[0].buffer, incoming[0].bytes);
        else
            ++refused;
        b->release();
    }
    EXPECT_EQ(kept.size(), Buffers::count - Buffers::spare);
    EXPECT_EQ(refused, Buffers::spare + 10);
    for (std::size_t n = 0; n < kept.size(); ++n)
        EXPECT_EQ(std::memcmp(kept[n].second, text(64, n).data(), 64), 0) << n;
    EXPECT_TRUE(b->keep(kept[0].first)) << "twice is as much as once";
    b->let_go(kept[0].first);
    for (const auto& [buffer, bytes] : kept) b->let_go(buffer);
    send(a, b->data_address(), "x");
    std::array<datagram::Incoming, 1> incoming;
    ASSERT_EQ(b->receive(incoming), 1U);
    EXPECT_TRUE(b->keep(incoming[0].buffer));
    b->release();
    b->let_go(incoming[0].buffer);
}

TEST(UdpPort, PartsOfAMessageStayUntilTheyAreTakenAndReleased) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    const std::string one = text(1000, 1), two = text(1000, 2), three = text(10, 3);
    const std::vector<datagram::Outgoing> burst{outgoing(b->data_address(), one),
                                                outgoing(b->data_address(), two),
                                                outgoing(b->data_address(), three)};
    a->send(burst);
    std::array<datagram::Incoming, 1> first, second;
    ASSERT_EQ(b->receive(first), 1U);
    EXPECT_EQ(std::memcmp(first[0].bytes, one.data(), one.size()), 0);
    b->release();
    EXPECT_TRUE(b->has_work());
    ASSERT_EQ(b->receive(first), 1U);
    ASSERT_EQ(b->receive(second), 1U);
    EXPECT_EQ(std::memcmp(first[0].bytes, two.data(), two.size()), 0);
    EXPECT_EQ(second[0].length, 10U);
    b->release();
    EXPECT_EQ(b->receive(first), 0U);
}

TEST(UdpPort, NobodyAtAPortIsToldOnce) {
    Directory directory;
    Node node(directory);
    const HostAddress nobody = with_port(test_address(), 1);
    send(node, nobody, "x");
    node.take_all();
    datagram::NetworkError error;
    ASSERT_TRUE(node->next_network_error(error));
    EXPECT_EQ(error.kind, datagram::NetworkErrorKind::port_unreachable);
    EXPECT_EQ(error.to, nobody);
    EXPECT_FALSE(node->next_network_error(error));
    EXPECT_FALSE(node->has_work());
}

TEST(UdpPort, WhatTheNetworkSaysQuotesTheDatagram) {
    Directory directory;
    Node node(directory);
    send(node, with_port(test_address(), 1), "01234567identity and more");
    node.take_all();
    datagram::NetworkError error;
    ASSERT_TRUE(node->next_network_error(error));
    std::uint64_t identity = 0;
    std::memcpy(&identity, "identity", sizeof identity);
    EXPECT_EQ(error.connection, identity);
    EXPECT_FALSE(error.is_ours);
}

TEST(UdpPort, WhatIsSentBehindAnErrorArrives) {
    Directory directory, other;
    Node a(directory), b(other, test_address(1), 2);
    const HostAddress nobody = with_port(test_address(), 1);
    send(a, nobody, "x");
    EXPECT_EQ(send(a, b->data_address(), "lone"), 1U);
    send(a, nobody, "x");
    const std::vector<datagram::Outgoing> burst(5, outgoing(b->data_address(), "joined"));
    EXPECT_EQ(a->send(burst), 5U);
    EXPECT_TRUE(b.hear(6));
    datagram::NetworkError error;
    EXPECT_TRUE(a->next_network_error(error));
    EXPECT_TRUE(a->next_network_error(error));
}

TEST(UdpPort, WhereNoWayLeadsThatIsTold) {
    Directory directory;
    Node node(directory);
    const HostAddress elsewhere = {{203, 0, 113, 1, 1, 1}, 6};
    EXPECT_EQ(send(node, elsewhere, "x"), 1U) << "from a loopback address";
    datagram::NetworkError error;
    ASSERT_TRUE(node->next_network_error(error));
    EXPECT_EQ(error.kind, datagram::NetworkErrorKind::no_way);
    EXPECT_EQ(error.to, elsewhere);
}

TEST(UdpPort, SmallSocketBuffersMeanLittleRoomWhichHolds) {
    Directory directory, other;
    Watched stock;
    stock.buffer_max = 212'992 / 2;
    Node a(directory), b(other, test_address(1), 2, stock);
    EXPECT_EQ(b->receive_room(), 212'992U / 3);
    const std::string packet = text(1472, 1);
    const std::size_t count = b->receive_room() / packet.size();
    for (std::size_t n = 0; n < count; ++n) send(a, b->data_address(), packet);
    EXPECT_TRUE(b.hear(count)) << "nothing was lost while it did not look";
}

TEST(UdpPort, OverIpv6) {
    HostAddress loopback;
    loopback.length = 18;
    loopback.bytes[15] = 1;
    loopback = with_port(loopback, static_cast<std::uint16_t>(20'000 + ::getpid() % 10'000));
    Directory directory;
    std::unique_ptr<Node> node;
    try {
        node = std::make_unique<Node>(directory, loopback);
    } catch (const std::runtime_error& error) {
        GTEST_SKIP() << "no IPv6 here: " << error.what();
    }
    EXPECT_EQ((*node)->datagram_max(), 65488U);
    const std::string packet = text(1000, 1);
    const std::vector<datagram::Outgoing> burst(5, outgoing((*node)->data_address(), packet));
    EXPECT_EQ((*node)->send(burst), 5U);
    send(*node, loopback, "question");
    ASSERT_TRUE(node->hear(6));
    EXPECT_EQ(node->came[0].from, (*node)->data_address());
    EXPECT_TRUE(node->came[5].to_host_port);
    send(*node, with_port(loopback, 1), "x");
    node->take_all();
    datagram::NetworkError error;
    ASSERT_TRUE((*node)->next_network_error(error));
    EXPECT_EQ(error.to, with_port(loopback, 1));
}

/// As of the 129th NIC of a user.
class NoInotify : public System {
public:
    int inotify_init() override {
        errno = EMFILE;
        return -1;
    }
};

/// A host whose interfaces are all gone for a while.
class Moved : public System {
public:
    bool moved = false;
    int getifaddrs(ifaddrs** list) override {
        const int result = System::getifaddrs(list);
        for (ifaddrs* one = result == 0 && moved ? *list : nullptr; one != nullptr;
             one = one->ifa_next)
            one->ifa_flags &= ~static_cast<unsigned>(IFF_UP);
        return result;
    }
};

TEST(UdpPort, ThatItsAddressIsGoneIsToldOnce) {
    const Directory directory;
    Moved system;
    std::vector<std::string> reports;
    auto opened =
        UdpPort::open({.place = {"lo", 1, test_address()},
                       .directory = directory.path,
                       .instance = 7,
                       .system = &system,
                       .report = [&](const std::string& text) { reports.push_back(text); }});
    ASSERT_TRUE(opened) << opened.error();
    Time now = system.now();
    const auto later = [&] { (*opened)->service(now = now + seconds(10)); };
    later();
    EXPECT_TRUE(reports.empty());
    system.moved = true;
    later();
    later();
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_NE(reports[0].find("is on no interface any more"), std::string::npos) << reports[0];
    system.moved = false;
    later();
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_NE(reports[1].find("is there again"), std::string::npos) << reports[1];
}

TEST(UdpPort, WhoCannotWatchTheHostsPortTriesForItNowAndThenAndDoesNotSpin) {
    const Directory directory;
    auto first = std::make_unique<Node>(directory);
    NoInotify system;
    Node second(directory, test_address(), 2, system);
    Time now{};
    for (int tries = 0; tries < 12; ++tries) {
        const Time next = second->next_deadline();
        ASSERT_GT(next.ns, now.ns) << "try " << tries;
        now = next;
        second->service(now);
    }
    EXPECT_GE(second->next_deadline().ns, now.ns + milliseconds(50).ns);
    first.reset();
    for (int tries = 0; tries < 8 && !second->has_host_port(); ++tries)
        second->service(second->next_deadline());
    EXPECT_GE(second->next_deadline(), now + seconds(1)) << "it has the port";
}

TEST(UdpPort, AForkedChildHoldsNothing) {
    Directory directory;
    auto node = std::make_unique<Node>(directory);
    int ready[2], end[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(end), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte = 0;
        ::close(end[1]);
        const bool told = ::write(ready[1], "r", 1) == 1 && ::read(end[0], &byte, 1) == 0;
        ::_exit(told ? 0 : 1);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    node.reset();
    Node next(directory, test_address(), 2);
    EXPECT_TRUE(next->has_host_port());
    EXPECT_EQ(directory.names().size(), 2U) << "itself, and who answers";
    for (const int fd : {ready[0], ready[1], end[0], end[1]}) ::close(fd);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace via::device::udp::test::udp_port_test
