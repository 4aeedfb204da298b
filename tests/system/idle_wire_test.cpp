// Connections between hosts over which nothing is to be said: no packets but signs of life,
// whatever the programs at their ends wait for.
#include <gtest/gtest.h>
#include <unistd.h>
#include <via/via.h>

#include <sstream>

#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::idle_wire_test {

namespace {

constexpr unsigned silence_s = 3;
constexpr unsigned idle_s = 4;
/// A ping and its answer, from both ends at once, each third of the patience; all of it twice more,
/// since a machine that is busy answers late and is asked again.
constexpr long packets_max = 3 * 4 * (idle_s * 3 / silence_s + 1);
constexpr unsigned sends_without_a_receive = 4;

/// Arguments: network, "accept" or "request", where it waits. The initiator sends as many messages
/// as there are receives, and if it is to wait for a receive some more.
void be_quiet(Parent& parent) {
    enter_network(parent.argument(0));
    const bool accepts = parent.argument(1) == "accept";
    const std::string& place = parent.argument(2);
    Nic nic(("udp:via0,silence=" + std::to_string(silence_s * 1000)).c_str());
    End end(nic, {.length = 5000, .receives = 4, .sends = 8});
    OK(ViaSetCredits(end.vi(), VIP_TRUE));
    if (accepts) {
        end.accept("door");
    } else {
        nic.turn_to(Networks::address(1));
        end.connect("door");
        const unsigned more = place == "a receive" ? sends_without_a_receive : 0;
        for (unsigned slot = 0; slot < 4 + more; ++slot) end.post_send(slot, 5000);
    }
    for (unsigned n = 0; n < 4; ++n)
        require((accepts ? end.wait_received(watchdog_ms) : end.wait_sent(watchdog_ms))->ok(),
                "messages are sent and arrive");
    parent.say("idle");
    if (place == "a message") end.wait_received(VIP_INFINITE);
    parent.expect("end");
}
const Role quiet_role("quiet", be_quiet);

/// UDP packets that the network of that process has sent.
long sent(const Child& child) {
    std::istringstream text(read_file("/proc/" + std::to_string(child.pid()) + "/net/snmp"));
    std::string name;
    long in = 0;
    long no_port = 0;
    long errors = 0;
    long out = -1;
    for (std::string line; std::getline(text, line);) {
        std::istringstream fields(line);
        if (line.starts_with("Udp: ") && fields >> name >> in >> no_port >> errors >> out)
            return out;
    }
    fail("the network counts its packets");
}

class IdleWire : public testing::TestWithParam<const char*> {};

TEST_P(IdleWire, CarriesSignsOfLifeAlone) {
    const Host host;
    const Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    const std::string place = GetParam();
    Child target("quiet", {.arguments = {networks.name(1), "accept", place}});
    Child initiator("quiet", {.arguments = {networks.name(0), "request", place}});
    for (Child* child : {&target, &initiator}) child->expect("idle");
    usleep(200'000);  // what traffic left behind is done: the last acknowledgements
    const long before = sent(target) + sent(initiator);
    sleep(idle_s);
    const long packets = sent(target) + sent(initiator) - before;
    std::printf("%ld packets in %u s\n", packets, idle_s);
    EXPECT_GE(packets, 2) << "a ping and its answer";
    EXPECT_LE(packets, packets_max);
    EXPECT_FALSE(target.ready() || initiator.ready()) << "both wait";
}

INSTANTIATE_TEST_SUITE_P(WaitingFor, IdleWire, testing::Values("nothing", "a message", "a receive"),
                         [](const auto& place) {
                             std::string name = place.param;
                             std::replace(name.begin(), name.end(), ' ', '_');
                             return name;
                         });

}  // namespace

}  // namespace system_test::idle_wire_test
