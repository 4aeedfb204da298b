// The socket that is connected to a busy peer: when there is one, and that nobody loses by it.
#include <functional>

#include "device/udp/test_support.hpp"

namespace via::device::udp::test::udp_connected_test {
namespace {

constexpr std::uint32_t enough = 8;

/// Counts what is sent by the connected socket and by the others; its clock is set by hand.
class Watched : public System {
public:
    ssize_t sendto(int fd, const void* bytes, std::size_t length, const sockaddr* address,
                   socklen_t address_length) override {
        ++(address == nullptr ? unnamed : named);
        return System::sendto(fd, bytes, length, address, address_length);
    }
    ssize_t recvfrom(int fd, void* buffer, std::size_t length, sockaddr* address,
                     socklen_t* address_length) override {
        ++(address == nullptr ? unasked : asked);
        return System::recvfrom(fd, buffer, length, address, address_length);
    }
    ssize_t recvmsg(int fd, msghdr* message, int flags) override {
        const bool asks = message->msg_name != nullptr;  // before the kernel writes to it
        const ssize_t length = System::recvmsg(fd, message, flags);
        if (length >= 0) ++(asks ? asked : unasked);
        return length;
    }
    int sendmmsg(int fd, mmsghdr* messages, unsigned count) override {
        ++(messages[0].msg_hdr.msg_name == nullptr ? unnamed : named);
        return System::sendmmsg(fd, messages, count);
    }
    int connect(int fd, const sockaddr* address, socklen_t length) override {
        if (before_connect) before_connect();
        if (refuses) {
            errno = ENETUNREACH;
            return -1;
        }
        const int result = System::connect(fd, address, length);
        if (after_connect) after_connect();
        return result;
    }
    int setsockopt(int fd, int level, int option, int value) override {
        if (option == SO_RCVBUF && level == SOL_SOCKET && buffer_max < value) value = buffer_max;
        return System::setsockopt(fd, level, option, value);
    }
    Time now() override { return present; }

    int named = 0, unnamed = 0;  ///< sent
    int asked = 0, unasked = 0;  ///< received: from whom?
    std::function<void()> before_connect, after_connect;
    bool refuses = false;
    int buffer_max = 1 << 30;
    Time present{1'000'000'000};
};

/// Two that talk, and somebody else.
class UdpConnected : public testing::Test {
protected:
    Directory here, there;
    Watched calls;
    Node a{here, test_address(), 1, calls, enough};
    Node b{there, test_address(1), 2};
    Node c{there, test_address(1), 3};

    void send_many(const Node& to, std::uint32_t count = enough) {
        for (std::uint32_t n = 0; n < count; ++n) send(a, to->data_address(), "x");
    }
    void connect() {
        send_many(b);
        a.take_all();
        calls.present = calls.present + milliseconds(1);
        a.take_all();  // the last look at the data socket first
        a.take_all();  // and looks everywhere once
        a.came.clear();
    }
    std::size_t look() {
        std::array<datagram::Incoming, 16> incoming;
        const std::size_t count = a->receive(incoming);
        a->release();
        return count;
    }
    std::vector<std::string> texts() const {
        std::vector<std::string> all;
        for (const auto& one : a.came) all.push_back(one.bytes);
        return all;
    }
    /// Of data, connected and host's, who hears something?
    std::vector<bool> ready() {
        std::array<WakeDescriptor, 3> wake{};
        std::vector<bool> all(a->wake_descriptors(wake));
        for (std::size_t n = 0; n < all.size(); ++n) {
            pollfd entry{wake[n].descriptor, POLLIN, 0};
            all[n] = ::poll(&entry, 1, 0) == 1;
        }
        return all;
    }
};

/// Datagrams count, not the calls that took them.
TEST_F(UdpConnected, ABurstCountsByItsDatagrams) {
    const std::string all(10 * 100, 'x');
    const auto burst = [&](std::initializer_list<const Node*> to) {
        std::vector<datagram::Outgoing> datagrams;
        for (const Node* node : to)
            datagrams.push_back(
                outgoing((*node)->data_address(), std::string_view(all).substr(0, 100)));
        EXPECT_EQ(a->send(datagrams), datagrams.size());
    };
    for (int n = 0; n < 10; ++n) burst({&b, &c, &b, &c});
    a.take_all();
    EXPECT_FALSE(a->is_connected()) << "half of all is not nearly all";
    std::vector<datagram::Outgoing> long_one;
    for (std::size_t n = 0; n < 10; ++n) {
        long_one.push_back(outgoing(b->data_address(), std::string_view(all).substr(n * 100, 100)));
        long_one.back().follows = n != 0;
    }
    for (int n = 0; n < 3; ++n) {
        EXPECT_EQ(a->send(long_one), 10U);
        burst({&c});
    }
    a.take_all();
    EXPECT_TRUE(a->is_connected()) << "three of thirty-three go elsewhere";
}

TEST_F(UdpConnected, APeerToWhomNearlyAllGoesHasASocketOfItsOwn) {
    send_many(b, enough - 1);
    a.take_all();
    EXPECT_FALSE(a->is_connected()) << "it is not busy yet";
    send_many(b, 1);
    a.take_all();
    ASSERT_TRUE(a->is_connected());
    calls.named = 0;
    EXPECT_EQ(send(a, b->data_address(), "there"), 1U);
    EXPECT_EQ(calls.unnamed, 1);
    EXPECT_EQ(calls.named, 0);
    ASSERT_TRUE(b.hear(enough + 1));
    EXPECT_EQ(b.came.back().bytes, "there");
    EXPECT_EQ(b.came.back().from, a->data_address()) << "the same port as ever";
    a.take_all();
    send(b, a->data_address(), "back");
    EXPECT_EQ(ready(), (std::vector{false, true, false}));
    EXPECT_EQ(look(), 1U) << "found by the first look";
}

TEST_F(UdpConnected, OfLoneOnesNobodyAsksFromWhom) {
    connect();
    std::array<datagram::Incoming, 16> incoming;
    for (int n = 0; n < 40; ++n) {
        calls.asked = calls.unasked = 0;
        send(b, a->data_address(), "x");
        ASSERT_EQ(a->receive(incoming), 1U) << n;
        EXPECT_EQ(incoming[0].from, b->data_address());
        a->release();
        ASSERT_EQ(look(), 0U) << n;
    }
    EXPECT_EQ(calls.unasked, 3) << "one that found it, and an empty poll";
    EXPECT_EQ(calls.asked, 0);
}

TEST_F(UdpConnected, BurstsGoAndComeJoined) {
    connect();
    std::vector<std::string> parts;
    for (std::size_t n = 0; n < 40; ++n) parts.push_back(text(n == 39 ? 100 : 1400, n));
    std::vector<datagram::Outgoing> burst;
    for (const std::string& one : parts) burst.push_back(outgoing(b->data_address(), one));
    calls.named = calls.unnamed = 0;
    EXPECT_EQ(a->send(burst), 40U);
    EXPECT_EQ(calls.unnamed, 1);
    EXPECT_EQ(calls.named, 0);
    EXPECT_TRUE(b.hear(enough + 40));
    for (auto& one : burst) one.to = a->data_address();
    EXPECT_EQ(b->send(burst), 40U);
    ASSERT_TRUE(a.hear(40));
    EXPECT_EQ(texts(), parts);
}

TEST_F(UdpConnected, OfBurstsNobodyAsksFromWhom) {
    connect();
    const std::vector<std::string> parts(40, text(1400, 1));
    std::vector<datagram::Outgoing> burst;
    for (const std::string& one : parts) burst.push_back(outgoing(a->data_address(), one));
    calls.asked = calls.unasked = 0;
    EXPECT_EQ(b->send(burst), 40U);
    ASSERT_TRUE(a.hear(40));
    EXPECT_EQ(texts(), parts);
    for (const auto& one : a.came) EXPECT_EQ(one.from, b->data_address());
    EXPECT_EQ(calls.asked, 0);
    EXPECT_GT(calls.unasked, 0);
}

TEST_F(UdpConnected, ABurstToSeveralIsSentByBothSockets) {
    connect();
    std::vector<datagram::Outgoing> burst;
    for (const Node* to : {&b, &b, &c, &b, &c, &c})
        burst.push_back(outgoing((*to)->data_address(), "part"));
    EXPECT_EQ(a->send(burst), 6U);
    EXPECT_TRUE(b.hear(enough + 3));
    EXPECT_TRUE(c.hear(3));
}

TEST_F(UdpConnected, OthersAreLookedForAfterTwoMicroseconds) {
    connect();
    send(c, a->data_address(), "other");
    EXPECT_EQ(look(), 0U);
    calls.present = calls.present + nanoseconds(1999);
    EXPECT_EQ(look(), 0U);
    calls.present = calls.present + nanoseconds(1);
    EXPECT_EQ(look(), 1U);
    send(c, a->data_address(), "another");
    EXPECT_EQ(look(), 1U) << "behind one, at once";
}

TEST_F(UdpConnected, WhoStreamsDoesNotKeepTheOthersFromBeingHeard) {
    connect();
    const auto stream = [&] {
        for (std::size_t n = 0; n < 120; ++n) send(b, a->data_address(), text(1000 + n, n));
    };
    stream();
    send(c, a->data_address(), "one");
    send(c, a->data_address(), "two");
    std::size_t looks = 0, found = 0;
    for (; found < 2 && looks < 30; ++looks) {
        std::array<datagram::Incoming, 16> incoming;
        const std::size_t count = a->receive(incoming);
        ASSERT_NE(count, 0U);
        for (std::size_t n = 0; n < count; ++n) found += incoming[n].from == c->data_address();
        a->release();
    }
    EXPECT_LE(looks, 11U);
}

TEST_F(UdpConnected, ItGoesWhenOthersAreSentToAndNothingIsLost) {
    connect();
    const std::size_t descriptors = count_descriptors();
    send(b, a->data_address(), "1");
    send_many(c, 3);
    send(b, a->data_address(), "2");
    EXPECT_EQ(ready(), (std::vector{false, true, false}));
    calls.named = 0;
    send_many(b, 1);
    EXPECT_EQ(calls.named, 1) << "it is not sent by any more";
    EXPECT_EQ(look() + look(), 2U);
    EXPECT_EQ(look(), 0U) << "found empty: nothing more comes there";
    EXPECT_TRUE(a->is_connected());
    send(b, a->data_address(), "3");
    EXPECT_EQ(ready(), (std::vector{true, false, false}));
    a.take_all();
    EXPECT_EQ(texts(), (std::vector<std::string>{"3"}));
    EXPECT_FALSE(a->is_connected());
    EXPECT_EQ(count_descriptors(), descriptors - 1);
    send_many(c);
    a.take_all();
    EXPECT_TRUE(a->is_connected()) << "now the other one is busy";
    send(b, a->data_address(), "4");
    send(c, a->data_address(), "5");
    EXPECT_EQ(ready(), (std::vector{true, true, false}));
}

TEST_F(UdpConnected, WhoGetsAQuarterOfAllChangesNothing) {
    connect();
    for (int n = 0; n < 100; ++n) {
        send_many(b, 3);
        send_many(c, 1);
        b.take_all();
        c.take_all();
        a.take_all();
        ASSERT_TRUE(a->is_connected()) << n;
    }
    for (int n = 0; n < 100; ++n) {
        send_many(b, 1);
        send_many(c, 1);
        a.take_all();
        ASSERT_TRUE(n < 3 || !a->is_connected()) << "of two alike none has it";
    }
}

/// What is read at once, and what still lies there when nothing can be on its way any more.
class UdpConnecting : public UdpConnected, public testing::WithParamInterface<Duration> {};

TEST_P(UdpConnecting, WhatOthersSendWhileItIsMadeIsTheirs) {
    System& system = System::real();
    std::vector<Descriptor> senders;
    std::vector<HostAddress> from;
    calls.before_connect = [&] {
        const SocketAddress to = to_socket(a->data_address(), 1);
        for (int n = 0; n < 64; ++n) {
            const SocketAddress at = to_socket(with_port(test_address(2), 0), 1);
            SocketAddress bound;
            bound.length = sizeof bound.ipv6;
            senders.emplace_back(system, system.socket(AF_INET));
            const int fd = senders.back().get();
            ASSERT_EQ(system.bind(fd, &at.any, at.length), 0);
            ASSERT_EQ(system.getsockname(fd, &bound.any, &bound.length), 0);
            from.push_back(from_socket(bound.any));
            ASSERT_EQ(system.sendto(fd, &n, sizeof n, &to.any, to.length), sizeof n);
        }
        calls.before_connect = {};
    };
    send_many(b);
    for (int looks = 0; looks < 8 && !a->is_connected(); ++looks) look();
    ASSERT_TRUE(a->is_connected());
    calls.present = calls.present + GetParam();
    ASSERT_TRUE(a.hear(64));
    EXPECT_TRUE(a->is_connected());
    ASSERT_EQ(a.came.size(), 64U);
    for (const auto& one : a.came) {
        int n = 0;
        ASSERT_EQ(one.bytes.size(), sizeof n);
        std::memcpy(&n, one.bytes.data(), sizeof n);
        EXPECT_EQ(one.from, from[static_cast<std::size_t>(n)]) << n;
    }
}

INSTANTIATE_TEST_SUITE_P(After, UdpConnecting, testing::Values(Duration{}, milliseconds(1)));

/// An unreliable VI takes what comes late for lost.
TEST_F(UdpConnected, WhatTheBusyPeerSendsWhileItIsMadeOrGoesComesInOrder) {
    std::vector<std::string> sent;
    const auto stream = [&] {
        for (int n = 0; n < 20; ++n) {
            sent.push_back(text(1, sent.size()));
            send(b, a->data_address(), sent.back());
        }
    };
    calls.before_connect = calls.after_connect = stream;
    send_many(b);
    ASSERT_TRUE(a.hear(40));
    EXPECT_TRUE(a->is_connected());
    EXPECT_EQ(texts(), sent);
    calls.present = calls.present + milliseconds(1);
    a.take_all();
    send_many(c, 3);
    a.take_all();
    calls.present = calls.present + microseconds(2);
    ASSERT_TRUE(a.hear(80));
    EXPECT_FALSE(a->is_connected());
    EXPECT_EQ(texts(), sent);
}

/// The other one's stands for what was on its way to the data socket when the busy peer got its
/// own.
TEST_F(UdpConnected, WhatIsStillOnItsWayToTheDataSocketComesBeforeWhatTheConnectedOneHas) {
    send_many(b);
    a.take_all();
    ASSERT_TRUE(a->is_connected());
    calls.present = calls.present + microseconds(999);
    EXPECT_EQ(look(), 0U);
    send(b, a->data_address(), "after");
    send(c, a->data_address(), "before");
    ASSERT_TRUE(a.hear(2));
    EXPECT_EQ(texts(), (std::vector<std::string>{"before", "after"}));
}

TEST_F(UdpConnected, WhoFloodsTheDataSocketKeepsTheBusyPeerWaitingForAsMuchAsItHoldsOnly) {
    calls.after_connect = [&] { send(b, a->data_address(), "busy"); };
    send_many(b);
    send(c, a->data_address(), "other");
    std::size_t others = 0;
    for (bool heard = false; !heard; ++others) {
        ASSERT_LT(others, 10'000U);
        std::array<datagram::Incoming, 1> incoming;
        if (a->receive(incoming) == 1) heard = incoming[0].from == b->data_address();
        a->release();
        if (a->is_connected()) send(c, a->data_address(), "other");
    }
}

TEST_F(UdpConnected, WhoFloodsTheDataSocketKeepsTheBusyPeerWaitingForAMoment) {
    calls.after_connect = [&] { send(b, a->data_address(), "busy"); };
    send_many(b);
    std::size_t others = 0;
    for (bool heard = false; !heard; ++others) {
        ASSERT_LT(others, 10U) << "a millisecond has passed";
        std::array<datagram::Incoming, 1> incoming;
        if (a->receive(incoming) == 1) heard = incoming[0].from == b->data_address();
        a->release();
        if (!a->is_connected()) continue;
        calls.present = calls.present + milliseconds(1);
        for (int n = 0; n < 2; ++n) send(c, a->data_address(), "other");
    }
}

TEST_F(UdpConnected, NobodyElseCanBindThePort) {
    connect();
    System& system = System::real();
    for (const int option : {SO_REUSEPORT, SO_REUSEADDR}) {
        const Descriptor other(system, system.socket(AF_INET));
        const SocketAddress at = to_socket(a->data_address(), 1);
        ASSERT_EQ(system.setsockopt(other.get(), SOL_SOCKET, option, 1), 0);
        EXPECT_EQ(system.bind(other.get(), &at.any, at.length), -1);
        EXPECT_EQ(errno, EADDRINUSE);
    }
}

TEST_F(UdpConnected, ThatItsPeerEndedIsToldAndOthersHearUs) {
    connect();
    const HostAddress gone = b->data_address();
    b.port.reset();
    for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(send(a, gone, "x"), 1U);
    send(a, c->data_address(), "hello");
    EXPECT_TRUE(c.hear(1));
    a.take_all();
    datagram::NetworkError error;
    ASSERT_TRUE(a->next_network_error(error));
    EXPECT_EQ(error.kind, datagram::NetworkErrorKind::port_unreachable);
    EXPECT_EQ(error.to, gone);
    while (a->next_network_error(error)) EXPECT_EQ(error.to, gone);
    send(c, a->data_address(), "hello");
    EXPECT_TRUE(a.hear(1));
}

/// The quick call takes the error that is pending; the general one after it meets none.
TEST_F(UdpConnected, WhatTheQuickCallMetIsHeardOf) {
    connect();
    const HostAddress gone = b->data_address();
    b.port.reset();
    send(a, gone, "nobody there");
    datagram::NetworkError error;
    ASSERT_FALSE(a->next_network_error(error)) << "it was not looked for yet";
    send(a, gone, "meets the answer");
    ASSERT_TRUE(a->next_network_error(error));
    EXPECT_EQ(error.kind, datagram::NetworkErrorKind::port_unreachable);
}

TEST_F(UdpConnected, ItWakesWhoSleeps) {
    connect();
    pollfd handle{a->wait_handle(), POLLIN, 0};
    a->arm(Sleep::on_handle);
    EXPECT_FALSE(a->has_work());
    send(b, a->data_address(), "x");
    EXPECT_EQ(::poll(&handle, 1, watchdog_ms), 1);
    EXPECT_TRUE(a->has_work());
    a->arm(Sleep::awake);
    EXPECT_EQ(::poll(&handle, 1, 0), 0);
    EXPECT_EQ(look(), 1U);
    a->arm(Sleep::on_words);
    send(b, a->data_address(), "x");
    EXPECT_EQ(ready(), (std::vector{false, true, false}));
}

TEST_F(UdpConnected, WhileSomebodySleepsOnThemTheSocketsStayTheSame) {
    for (const Sleep sleep : {Sleep::on_words, Sleep::on_handle}) {
        a->arm(sleep);
        send_many(b);
        a.take_all();
        EXPECT_FALSE(a->is_connected());
        a->arm(Sleep::awake);
        a.take_all();
        EXPECT_TRUE(a->is_connected());
        a->arm(sleep);
        send_many(c, 3);
        a.take_all();
        a.take_all();
        EXPECT_TRUE(a->is_connected());
        send(b, a->data_address(), "x");
        EXPECT_EQ(ready(), (std::vector{false, true, false}));
        a->arm(Sleep::awake);
        a.take_all();
        a->arm(Sleep::awake);
        a.take_all();
        EXPECT_FALSE(a->is_connected());
    }
}

TEST_F(UdpConnected, WithLessRoomThanPeersWereToldThereIsNone) {
    calls.buffer_max = 100'000;
    connect();
    EXPECT_FALSE(a->is_connected());
}

TEST_F(UdpConnected, WhereItCannotBeMadeAllGoesOnAndItIsTriedAgainLater) {
    const std::size_t descriptors = count_descriptors();
    calls.refuses = true;
    connect();
    EXPECT_FALSE(a->is_connected());
    EXPECT_EQ(count_descriptors(), descriptors);
    calls.refuses = false;
    send_many(b, enough - 1);
    a.take_all();
    EXPECT_FALSE(a->is_connected()) << "not at once";
    EXPECT_TRUE(b.hear(2 * enough - 1));
    send(b, a->data_address(), "x");
    EXPECT_TRUE(a.hear(1));
    send_many(b, 1);
    a.take_all();
    EXPECT_TRUE(a->is_connected());
}

TEST_F(UdpConnected, ToItself) {
    send_many(a, 4 * enough);
    EXPECT_TRUE(a.hear(4 * enough));
    EXPECT_TRUE(a->is_connected());
    send_many(a);
    EXPECT_TRUE(a.hear(5 * enough));
    send_many(b, 3 * enough);
    a.take_all();
    a->arm(Sleep::awake);
    a.take_all();
    send_many(a, 1);
    EXPECT_TRUE(a.hear(5 * enough + 1));
}

TEST(UdpConnectedIpv6, GoesAndComesAndGoes) {
    HostAddress loopback;
    loopback.length = 18;
    loopback.bytes[15] = 1;
    loopback = with_port(loopback, static_cast<std::uint16_t>(30'000 + ::getpid() % 10'000));
    const Directory here, there;
    std::unique_ptr<Node> a, b;
    try {
        a = std::make_unique<Node>(here, loopback, 1, System::real(), enough);
        b = std::make_unique<Node>(there, with_port(loopback, 29'999), 2);
    } catch (const std::runtime_error& error) {
        GTEST_SKIP() << "no IPv6 here: " << error.what();
    }
    for (std::size_t n = 0; n < enough; ++n) send(*a, (*b)->data_address(), "x");
    a->take_all();
    ASSERT_TRUE((*a)->is_connected());
    for (std::size_t n = 0; n < enough; ++n) {
        send(*a, (*b)->data_address(), "x");
        send(*b, (*a)->data_address(), "y");
    }
    EXPECT_TRUE(b->hear(2 * enough));
    EXPECT_TRUE(a->hear(enough));
    for (std::size_t n = 0; n < enough; ++n) send(*a, (*a)->data_address(), "x");
    for (int looks = 0; looks < 3; ++looks) a->take_all();
    send(*b, (*a)->data_address(), "y");
    EXPECT_TRUE(a->hear(2 * enough + 1));
}

}  // namespace
}  // namespace via::device::udp::test::udp_connected_test
