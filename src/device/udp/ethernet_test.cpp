// What leaves past UDP and IP: that it comes as ever, and that the kernel's way takes over where
// the other one is none.
#include <linux/if_packet.h>

#include <functional>

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
        if (!fails()) return sent(System::sendto(fd, bytes, length, address, address_length));
        return -1;
    }
    int sendmmsg(int fd, mmsghdr* messages, unsigned count) override {
        if (fd != packets) return System::sendmmsg(fd, messages, count);
        if (!fails()) return static_cast<int>(sent(System::sendmmsg(fd, messages, count)));
        return -1;
    }
    ssize_t recvmsg(int fd, msghdr* message, int flags) override {
        const ssize_t length = System::recvmsg(fd, message, flags);
        if (length > 0 && (flags & MSG_ERRQUEUE) != 0 && message->msg_iov->iov_len > 0 && changes)
            changes(static_cast<std::byte*>(message->msg_iov->iov_base));
        return length;
    }
    Time now() override { return present; }

    int packets = -2;
    int frames = 0;  ///< or messages of several, that were sent
    int error = 0;   ///< of all that is sent by the packet socket
    bool refuses = false;
    std::function<void(std::byte*)> changes;  ///< what the kernel shows
    Time present{1'000'000'000};

private:
    bool fails() const {
        errno = error;
        return error != 0;
    }
    ssize_t sent(ssize_t result) {
        if (result > 0) ++frames;
        return result;
    }
};

bool may_open_packet_sockets() {
    const Descriptor socket(System::real(), System::real().socket(AF_PACKET));
    return socket.valid();
}

HostAddress ipv6_address(std::uint8_t number) {
    HostAddress address;
    address.length = 18;
    address.bytes[15] = 1;  // ::1
    const HostAddress port = test_address(number);
    address.bytes[16] = port.bytes[4];
    address.bytes[17] = port.bytes[5];
    return address;
}

/// Two that talk, of IPv4 or IPv6.
class Ethernet : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        if (!may_open_packet_sockets()) GTEST_SKIP() << "packet sockets need CAP_NET_RAW";
    }
    void connect() {
        for (std::uint32_t n = 0; n < enough; ++n) send(a, b->data_address(), "x");
        a.take_all();
        ASSERT_TRUE(a->is_connected());
        ASSERT_TRUE(b.hear(enough));
        b.came.clear();
    }
    /// The kernel shows a frame.
    void learn() {
        EXPECT_EQ(send(a, b->data_address(), "the kernel's"), 1U);
        ASSERT_TRUE(b.hear(1));
        EXPECT_EQ(b.came.back().bytes, "the kernel's");
        b.came.clear();
    }
    void expect_comes(const std::string& bytes) {
        b.came.clear();
        EXPECT_EQ(send(a, b->data_address(), bytes), 1U);
        ASSERT_TRUE(b.hear(1)) << bytes.size();
        ASSERT_EQ(b.came.size(), 1U);
        EXPECT_EQ(b.came[0].bytes, bytes);
        EXPECT_EQ(b.came[0].from, a->data_address());
        b.came.clear();
    }
    void pass(Duration time) {
        calls.present = calls.present + time;
        a->service(calls.present);
    }

    Directory here, there;
    Watched calls;
    Node a{here, GetParam() ? ipv6_address(0) : test_address(), 1, calls, enough, true};
    Node b{there, GetParam() ? ipv6_address(1) : test_address(1), 2};
};

INSTANTIATE_TEST_SUITE_P(Over, Ethernet, testing::Bool(),
                         [](const auto& over) { return over.param ? "IPv6" : "IPv4"; });

TEST_P(Ethernet, FramesOfOurOwnComeLikeTheKernels) {
    connect();
    EXPECT_FALSE(a->makes_frames()) << "the kernel has not shown one yet";
    learn();
    ASSERT_TRUE(a->makes_frames());
    ASSERT_EQ(calls.frames, 0);
    int sent = 0;
    for (const std::size_t length : {1U, 2U, 333U, 1472U, 2048U, 2049U, 9000U, 60000U}) {
        expect_comes(text(length, length));
        EXPECT_EQ(calls.frames, ++sent);
    }
}

}  // namespace
}  // namespace via::device::udp::test::ethernet_test
