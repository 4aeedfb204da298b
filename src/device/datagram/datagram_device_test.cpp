#include "device/datagram/datagram_device.hpp"

#include "base/random.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::datagram_device_test {
namespace {

struct Device : ::testing::Test, Scene {
    void exchange(int count, std::size_t length) {
        std::vector<std::string> sent;
        for (int n = 0; n < count; ++n) {
            std::string payload(length, static_cast<char>('a' + n % 26));
            payload.replace(0, 0, std::to_string(n) + ":");
            sent.push_back(payload.substr(0, std::max<std::size_t>(length, 8)));
            a.send(sent.back());
        }
        ASSERT_TRUE(run(seconds(60),
                        [&] { return b.received.size() == sent.size() && a.under_way() == 0; }))
            << b.received.size() << " of " << sent.size();
        EXPECT_EQ(b.received, sent);
        EXPECT_EQ(a.arrived.size(), sent.size());
    }
};

TEST_F(Device, meets) {
    meet();
    EXPECT_EQ(a.events.at(0).kind, PathEventKind::resolved);
    EXPECT_EQ(a.events[0].cookie, 7U);
    EXPECT_EQ(a.events[0].payload_max, 1472U - 24 - 8 - 40);
    EXPECT_EQ(b.events.at(0).kind, PathEventKind::up);
    EXPECT_EQ(a.device->peer_address(a.path), address(2, host_port));
    EXPECT_EQ(b.device->peer_address(b.path), address(1, host_port));
}

TEST_F(Device, carries_small_and_full_frames) {
    meet();
    exchange(1, 8);
    b.received.clear();
    a.arrived.clear();
    exchange(500, 1400);
}

TEST_F(Device, carries_through_loss) {
    meet();
    for (const std::uint64_t percent : {1U, 5U, 20U}) {
        SCOPED_TRACE(percent);
        Random random(percent);
        network.weather = [&](const Datagram&) {
            return random.chance(percent) ? Fate{} : Fate{microseconds(10)};
        };
        b.received.clear();
        a.arrived.clear();
        exchange(3000, 1400);
        b.received.clear();
        a.arrived.clear();
        exchange(3000, 20);
    }
}

}  // namespace
}  // namespace via::device::datagram::test::datagram_device_test
