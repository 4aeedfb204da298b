// Hosts that look seldom, as one does who shares his processor: they are no queue on the way, and
// acknowledge all the same.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::absence_test {
namespace {

struct Absence : Carrying {
    void SetUp() override {
        a.port().room = b.port().room = 4U << 20;
        b.port().keep_max = 4096;
        Carrying::SetUp();
        for (End* end : ends) end->device->arm(Sleep::awake);
    }
    /// There is always more to send. Both poll every 10 us, but for `away` of each 4 ms in which
    /// the one says nothing.
    void stream(Duration span, const End& absent, Duration away) {
        const std::string message(1400, 'x');
        const Time begin = network.now;
        for (; network.now - begin < span; network.now = network.now + microseconds(10)) {
            while (a.waiting() < 64) a.send(message);
            for (End* end : ends)
                if (end != &absent || (network.now - begin).ns % 4'000'000 >= away.ns) end->turn();
            network.log.clear();
            b.received.clear();
            a.arrived.clear();
        }
    }
    void over_a_gigabit() {
        network.weather = [this](const Datagram& datagram) {
            if (datagram.from.bytes[3] != 1) return Fate{network.delay};
            free_at = std::max(free_at, network.now) + microseconds(12);
            return Fate{free_at - network.now + network.delay};
        };
    }
    Time free_at{};
    std::uint64_t window() const { return a.device->statistics(a.path).window; }
};

TEST_F(Absence, of_the_receiver_is_no_queue) {
    stream(milliseconds(40), b, milliseconds(3));
    EXPECT_GT(window(), 1'000'000U);
}

TEST_F(Absence, of_the_sender_is_no_queue) {
    stream(milliseconds(40), a, milliseconds(3));
    EXPECT_GT(window(), 1'000'000U);
}

TEST_F(Absence, a_queue_is_one_while_both_are_there) {
    over_a_gigabit();
    stream(milliseconds(100), b, {});
    EXPECT_LT(window(), 200'000U);
}

TEST_F(Absence, a_queue_is_one_beside_absences) {
    over_a_gigabit();
    stream(milliseconds(200), b, milliseconds(1));
    EXPECT_LT(window(), 300'000U);
}

TEST_F(Absence, who_looks_seldom_acknowledges_with_the_next_look) {
    ASSERT_EQ(a.send_run(std::string(2 * 600, 'm'), 600), 2U);
    a.device->transmit(a.path);
    a.device->notify();
    network.now = network.now + network.delay;
    EXPECT_EQ(b.turn(), 2U);
    network.now = network.now + microseconds(5);
    b.turn();
    EXPECT_EQ(network.sent_by(2), 0U) << "the rest is on its way";
    network.now = network.now + looks_take_max;
    b.turn();
    EXPECT_EQ(network.sent_by(2), 1U);
}

}  // namespace
}  // namespace via::device::datagram::test::absence_test
