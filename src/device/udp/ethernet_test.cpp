// What leaves past UDP and IP: that it comes as ever, and that the kernel's way takes over where
// the other one is none.
#include <linux/if_packet.h>

#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "device/udp/test_support.hpp"

namespace via::device::udp::test::ethernet_test {
namespace {

constexpr std::uint32_t enough = 8;

/// Knows the packet socket, and lets it or what the kernel shows fail.
class Watched : public System {
public:
    int socket(int family) override {
        if (family == AF_PACKET && refuses) {
            errno = EPERM;
            return -1;
        }
        const int fd = System::socket(family);
        if (family == AF_PACKET) packets = fd;
        return fd;
    }
    ssize_t sendto(int fd, const void* bytes, std::size_t length, const sockaddr* address,
                   socklen_t address_length) override {
        if (fd != packets) return System::sendto(fd, bytes, length, address, address_length);
        return fails() ? -1 : sent(System::sendto(fd, bytes, length, address, address_length), 1);
    }
    int sendmmsg(int fd, mmsghdr* messages, unsigned count) override {
        if (fd != packets) return System::sendmmsg(fd, messages, count);
        return fails() ? -1 : static_cast<int>(sent(System::sendmmsg(fd, messages, count), count));
    }
    ssize_t recvmsg(int fd, msghdr* message, int flags) override {
        const bool asked = (flags & MSG_ERRQUEUE) != 0 &&
                           message->msg_iov->iov_len > datagram::quoted_length_least;
        auto* const bytes = static_cast<std::byte*>(message->msg_iov->iov_base);
        auto* const control = static_cast<std::byte*>(message->msg_control);
        if (asked && shows_again && !above.empty()) {
            std::memcpy(bytes, above.data(), above.size());
            std::memcpy(control, above_control.data(), above_control.size());
            message->msg_controllen = above_control.size();
            shows_again(bytes);
            return static_cast<ssize_t>(std::exchange(above, {}).size());
        }
        if (late && (flags & MSG_ERRQUEUE) != 0) {
            errno = EAGAIN;
            return -1;
        }
        const ssize_t length = System::recvmsg(fd, message, flags);
        if (asked && length > 0) {
            ++shown;
            if (changes) changes(bytes);
            above.assign(bytes, bytes + length);
            above_control.assign(control, control + message->msg_controllen);
        }
        return length;
    }
    int interface_mtu(int fd, ifreq* request) override {
        const int result = System::interface_mtu(fd, request);
        if (mtu != 0) request->ifr_mtu = mtu;
        return result;
    }
    Time now() override { return present; }
    Time recently() override { return present; }

    int mtu = 0;  ///< 0: what the interface has
    int packets = -2;
    int frames = 0;  ///< that were sent, each cut or not
    int shown = 0;   ///< by the kernel
    int kernels_error = 0;
    int error = 0;  ///< of all that is sent by the packet socket
    bool refuses = false;
    bool late = false;                        ///< what the kernel shows is not there yet
    std::function<void(std::byte*)> changes;  ///< what the kernel shows
    /// The kernel shows each once more, so changed, as it does for an interface below the first.
    std::function<void(std::byte*)> shows_again;
    Time present{1'000'000'000};

private:
    std::vector<std::byte> above, above_control;
    bool fails() const {
        errno = error;
        return error != 0;
    }
    ssize_t sent(ssize_t result, unsigned count) {
        if (result > 0) frames += static_cast<int>(count);
        if (result < 0) kernels_error = errno;
        return result;
    }
};

/// Two that talk over the loopback, where raw Ethernet frames pass with IPv6 only.
class Ethernet : public testing::Test {
protected:
    void SetUp() override {
        if (!may_send_frames()) GTEST_SKIP() << "packet sockets need CAP_NET_RAW, and a ::1";
    }
    void connect() {
        for (std::uint32_t n = 0; n < enough; ++n) send(a, b->data_address(), "x");
        a.take_all();
        ASSERT_TRUE(a->is_connected());
        ASSERT_TRUE(b.hear(enough));
        EXPECT_FALSE(a->makes_frames()) << "the kernel has not shown one yet";
    }
    void expect_comes(const std::string& bytes) {
        b.came.clear();
        EXPECT_EQ(send(a, b->data_address(), bytes), 1U);
        ASSERT_TRUE(b.hear(1)) << bytes.size();
        ASSERT_EQ(b.came.size(), 1U);
        EXPECT_EQ(b.came[0].bytes, bytes);
        EXPECT_EQ(b.came[0].from, a->data_address());
    }
    /// Datagrams of 1400 bytes, the last one shorter.
    void expect_burst_comes(std::size_t count) {
        b.came.clear();
        std::vector<std::string> parts;
        for (std::size_t n = 0; n < count; ++n) parts.push_back(text(n + 1 < count ? 1400 : 7, n));
        std::vector<datagram::Outgoing> burst;
        for (const std::string& part : parts) burst.push_back(outgoing(b->data_address(), part));
        ASSERT_EQ(a->send(burst), count);
        ASSERT_TRUE(b.hear(count));
        for (std::size_t n = 0; n < count; ++n) EXPECT_EQ(b.came[n].bytes, parts[n]) << n;
    }
    /// In which nothing of the program runs, nor of the NIC's.
    void pass(Duration time) { calls.present = calls.present + time; }
    /// The kernel is asked again.
    void renew() {
        pass(milliseconds(100));
        expect_comes("the kernel's");
    }
    /// Frames that a datagram takes.
    int frames_of(const std::string& bytes) {
        const int before = calls.frames;
        expect_comes(bytes);
        return calls.frames - before;
    }

    Directory here, there;
    Watched calls;
    Counters counters{};
    Node a{here, ipv6_address(), 1, calls, enough, true, &counters};
    Node b{there, ipv6_address(1), 2};
};

TEST_F(Ethernet, FramesOfOurOwnComeLikeTheKernels) {
    connect();
    EXPECT_EQ(frames_of("the kernel's"), 0);
    ASSERT_TRUE(a->makes_frames());
    for (const std::size_t length : {1U, 2U, 333U, 1472U, 2048U, 2049U, 9000U, 60000U})
        EXPECT_EQ(frames_of(text(length, length)), 1);
    EXPECT_EQ(counters.get(Counter::own_frames), 8U);
}

TEST_F(Ethernet, BurstsAreCutBelowUs) {
    connect();
    expect_burst_comes(40);
    if (calls.kernels_error == EINVAL) GTEST_SKIP() << "Linux before 6.2 cuts no frames";
    EXPECT_EQ(calls.frames, 1) << "behind the one that the kernel showed";
    expect_burst_comes(64);
    EXPECT_EQ(calls.frames, 3) << "of 65000 bytes at most";
}

TEST_F(Ethernet, TheKernelIsAskedAgainAndAgain) {
    connect();
    expect_comes("the kernel's");
    EXPECT_EQ(frames_of("ours"), 1);
    pass(milliseconds(99));
    EXPECT_EQ(frames_of("ours"), 1);
    pass(milliseconds(1));
    EXPECT_EQ(frames_of("the kernel's"), 0);
    EXPECT_EQ(frames_of("ours"), 1);
}

TEST_F(Ethernet, WhoIsShownNoPlainFrameMakesNone) {
    connect();
    const std::size_t ip = 14, udp = ip + 40;
    const std::vector<std::pair<std::size_t, const char*>> wrong{
        {12, "no IPv6"},           {ip, "its version"},
        {ip + 4, "its length"},    {ip + 6, "encrypted"},
        {ip + 23, "our address"},  {ip + 39, "the peer's"},
        {udp, "our port"},         {udp + 2, "the peer's port"},
        {udp + 4, "UDP's length"}, {udp + 8, "of another datagram"}};
    for (const auto& [at, what] : wrong) {
        SCOPED_TRACE(what);
        calls.changes = [&](std::byte* frame) { frame[at] ^= std::byte{0x40}; };
        EXPECT_EQ(frames_of("shown"), 0);
        EXPECT_FALSE(a->makes_frames());
        pass(seconds(1));
    }
    calls.changes = nullptr;
    EXPECT_EQ(frames_of("shown"), 0);
    EXPECT_EQ(frames_of("ours"), 1);
}

TEST_F(Ethernet, WhoStoodStillForLongAsksFirst) {
    connect();
    expect_comes("the kernel's");
    pass(seconds(10));
    EXPECT_EQ(frames_of("the kernel's"), 0);
    pass(seconds(10));
    const int before = calls.frames;
    expect_burst_comes(2);
    EXPECT_EQ(calls.frames, before + 1) << "behind the one that the kernel showed";
}

/// A VLAN's interface shows it, and the one below shows it without the tag.
TEST_F(Ethernet, OfThoseThatAreShownTheUppermostIsTheModel) {
    connect();
    calls.shows_again = [](std::byte* frame) { frame[0] ^= std::byte{0x02}; };
    expect_comes("the kernel's");
    EXPECT_EQ(frames_of("ours"), 1);
}

TEST_F(Ethernet, WhereNothingIsShownItIsAskedMoreAndMoreSeldom) {
    connect();
    calls.changes = [](std::byte* frame) { frame[12] = std::byte{0}; };
    for (const int pause : {10, 20, 40, 80, 160, 320, 640, 1000, 1000}) {
        calls.shown = 0;
        expect_comes("shown");
        EXPECT_EQ(calls.shown, 1);
        pass(milliseconds(pause - 1));
        expect_comes("not shown");
        EXPECT_EQ(calls.shown, 1) << pause;
        pass(milliseconds(1));
    }
}

TEST_F(Ethernet, AFrameThatCannotBeSentIsTheSockets) {
    connect();
    expect_comes("the kernel's");
    for (const int error : {EAGAIN, ENOBUFS, ENETDOWN, ENXIO, EMSGSIZE, EPERM, EINTR}) {
        SCOPED_TRACE(strerrorname_np(error));
        ASSERT_TRUE(a->makes_frames());
        calls.error = error;
        EXPECT_EQ(frames_of("refused"), 0);
        EXPECT_FALSE(a->makes_frames()) << "until the kernel shows another one";
        calls.error = 0;
        renew();
        calls.error = error;
        expect_burst_comes(40);
        calls.error = 0;
        renew();
    }
    EXPECT_EQ(frames_of("ours"), 1);
}

/// Behind an interface that carries less than before: the socket says so.
TEST_F(Ethernet, WhatTheInterfaceDoesNotCarryIsTheSockets) {
    connect();
    expect_burst_comes(40);
    if (calls.kernels_error == EINVAL) GTEST_SKIP() << "Linux before 6.2 cuts no frames";
    ASSERT_EQ(calls.frames, 1);
    calls.mtu = 1300;
    pass(seconds(1));
    a->service(calls.present);
    renew();
    ASSERT_TRUE(a->makes_frames());
    expect_burst_comes(40);
    EXPECT_EQ(calls.frames, 1);
    EXPECT_EQ(frames_of("ours"), 1) << "a short one";
}

TEST_F(Ethernet, AKernelThatCutsNoFramesGetsLoneOnes) {
    connect();
    expect_comes("the kernel's");
    calls.error = EINVAL;
    expect_burst_comes(40);
    calls.error = 0;
    renew();
    const int before = calls.frames;
    expect_burst_comes(40);
    EXPECT_EQ(calls.frames, before);
    EXPECT_EQ(frames_of("ours"), 1);
}

TEST_F(Ethernet, DoubtsLeaveItToTheKernelLongerAndLonger) {
    connect();
    const auto doubt = [&] { a->doubt(b->data_address(), calls.present); };
    for (const int pause : {10, 20, 40}) {
        expect_comes("the kernel's");
        EXPECT_EQ(frames_of("ours"), 1);
        for (int n = 0; n < 3; ++n) a->doubt(a->data_address(), {});
        EXPECT_TRUE(a->makes_frames()) << "another peer's";
        doubt();
        doubt();
        a->doubt(b->data_address(), calls.present + nanoseconds(1));
        doubt();
        doubt();
        EXPECT_TRUE(a->makes_frames()) << "a frame came between them";
        doubt();
        EXPECT_EQ(frames_of("the kernel's"), 0);
        EXPECT_FALSE(a->makes_frames());
        pass(milliseconds(pause - 1));
        EXPECT_EQ(frames_of("not yet asked"), 0);
        EXPECT_FALSE(a->makes_frames());
        pass(milliseconds(1));
    }
    expect_comes("the kernel's");
    renew();
    for (int n = 0; n < 3; ++n) doubt();
    pass(milliseconds(10));
    EXPECT_EQ(frames_of("the kernel's"), 0);
    EXPECT_EQ(frames_of("ours"), 1) << "it was good for long";
}

/// On a long way the kernel shows a datagram of ours between any two doubts, and that one comes.
TEST_F(Ethernet, WhatTheKernelShowsEndsNoDoubt) {
    connect();
    for (int n = 0; n < 3; ++n) {
        expect_comes("the kernel's");
        EXPECT_EQ(frames_of("ours"), 1);
        a->doubt(b->data_address(), calls.present);
        if (n < 2) renew();
    }
    EXPECT_EQ(frames_of("the kernel's"), 0);
}

/// What a neighbour kept waiting is shown later, when nobody asks for it.
TEST_F(Ethernet, WhatIsShownLateKeepsNobodyAwake) {
    connect();
    calls.late = true;
    expect_comes("shown to nobody");
    calls.late = false;
    a.take_all();
    EXPECT_FALSE(a->has_work() && (a.take_all(), a->has_work()));
}

TEST_F(Ethernet, AnotherBusyPeerHasFramesOfItsOwn) {
    Node c(there, ipv6_address(1), 3);
    connect();
    expect_comes("the kernel's");
    ASSERT_TRUE(a->makes_frames());
    for (std::uint32_t n = 0; n < 2 * enough; ++n) send(a, c->data_address(), "x");
    EXPECT_FALSE(a->makes_frames());
    for (int looks = 0; looks < 3; ++looks) a.take_all();
    const int before = calls.frames;
    send(a, c->data_address(), "the kernel's");
    EXPECT_EQ(calls.frames, before);
    send(a, c->data_address(), "ours");
    EXPECT_EQ(calls.frames, before + 1);
    ASSERT_TRUE(c.hear(2 * enough + 2));
    EXPECT_EQ(c.came.back().bytes, "ours");
}

TEST_F(Ethernet, WhoMayNotOpenPacketSocketsNeverAsks) {
    calls.refuses = true;
    connect();
    EXPECT_EQ(frames_of("the kernel's"), 0);
    EXPECT_EQ(frames_of("the kernel's"), 0);
    EXPECT_FALSE(a->makes_frames());
}

/// The kernel takes 127.0.0.0/8 for a sender only from itself.
TEST_F(Ethernet, OnTheLoopbackOfIPv4AllIsTheKernels) {
    Node from(here, test_address(), 3, calls, enough, true);
    Node to(there, test_address(1), 4);
    for (std::uint32_t n = 0; n < enough; ++n) send(from, to->data_address(), "x");
    from.take_all();
    ASSERT_TRUE(from->is_connected());
    for (int n = 0; n < 3; ++n) send(from, to->data_address(), "more");
    EXPECT_FALSE(from->makes_frames());
    ASSERT_TRUE(to.hear(enough + 3));
}

TEST_F(Ethernet, WhoDoesNotWantItOpensNoPacketSocket) {
    Watched mine;
    Node from(here, ipv6_address(), 3, mine, enough);
    for (std::uint32_t n = 0; n < 3 * enough; ++n) send(from, b->data_address(), "x");
    from.take_all();
    EXPECT_TRUE(from->is_connected());
    EXPECT_EQ(mine.packets, -2);
    ASSERT_TRUE(b.hear(3 * enough));
}

}  // namespace
}  // namespace via::device::udp::test::ethernet_test
