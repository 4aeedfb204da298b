// Hosts that look seldom, as one does who shares his processor: they acknowledge all the same.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test {
namespace {

struct Absence : Carrying {};

TEST_F(Absence, who_looks_seldom_acknowledges_with_the_next_look) {
    a.send("a message");
    network.now = network.now + network.delay;
    b.turn();
    EXPECT_EQ(b.received.size(), 1U);
    network.now = network.now + microseconds(5);
    b.turn();
    EXPECT_EQ(network.sent_by(2), 0U) << "an answer may take it along";
    network.now = network.now + looks_take_max;
    b.turn();
    EXPECT_EQ(network.sent_by(2), 1U);
}

}  // namespace
}  // namespace via::device::datagram::test
