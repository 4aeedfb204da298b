// NICs of two hosts (network namespaces joined by a cable) and what may become of cable, interface,
// processes and hosts while a checked stream of messages is on its way; on both versions of IP.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::udp_test {

namespace {

/// Arguments: network, NIC. Has a NIC and does nothing.
void be_bystander(Parent& parent) {
    enter_network(parent.argument(0));
    const Nic nic(parent.argument(1).c_str());
    parent.say("open");
    parent.expect("end");
}
const Role bystander_role("udp bystander", be_bystander);

/// Arguments: network, NIC, host to ask; none: it is asked. One message goes each way.
void be_link_local(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    End end(nic);
    parent.say("open");
    if (parent.arguments() > 2) {
        nic.turn_to(parent.argument(2));
        end.connect("door");
    } else {
        end.accept("door");
    }
    end.post_send(0, 64);
    require(end.wait_sent(watchdog_ms)->ok() && end.wait_received(watchdog_ms)->ok(),
            "a message each way");
    parent.say("done");
    parent.expect("end");
}
const Role link_local_role("udp link-local", be_link_local);

class Udp : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    }
    static bool ipv6() { return GetParam() == 6; }
    static std::string nic() { return ipv6() ? "udp:[via0]" : "udp:via0"; }
    /// The least that IP asks of a link: 1280; of IPv4's no more than 68.
    static int least_mtu() { return ipv6() ? 1280 : 576; }
    /// Little patience, but more than IPv6 needs to find a neighbour again: a second.
    static int impatient_ms() { return ipv6() ? 2000 : 1500; }
    /// `silence_ms`: patience with a peer that says nothing; 0: what the library has.
    static StreamWants wants(int silence_ms = 0) {
        StreamWants wants{.nic = nic(), .host = Networks::address(1)};
        if (ipv6()) wants.host = Networks::address_ipv6(1);
        if (silence_ms != 0) wants.nic += ",silence=" + std::to_string(silence_ms);
        return wants;
    }
    void set_up(int end, bool up) const {
        networks.set_up(end, up);
        if (up && ipv6()) networks.give_ipv6_address(end);
    }
    void set_mtu(int mtu) const {
        for (const int end : {0, 1}) networks.set_mtu(end, mtu);
    }
    static void dismiss(Child& child) {
        child.say("end");
        child.join();
    }
    Host host;
    Networks networks;
};

TEST_P(Udp, AStreamBetweenHosts) {
    Stream stream(networks, wants());
    stream.flows(2000);
    stream.leave();
}

TEST_P(Udp, TheOneThatAnswersForTheHostIsKilledAndNobodyNotices) {
    Child holder("udp bystander", {.arguments = {networks.name(1), nic()}});
    holder.expect("open");
    Stream first(networks, wants());
    holder.kill();
    first.flows();
    first.leave();
    Stream second(networks, wants());
    second.leave();
}

TEST_P(Udp, AnotherAnswersAtOnceForAHostWhoseAnswererWasKilled) {
    Child holder("udp bystander", {.arguments = {networks.name(1), nic()}});
    holder.expect("open");
    StreamWants wants = Udp::wants();
    wants.when_listening = [&] { holder.kill(); };
    Stream(networks, wants).leave();
}

TEST_P(Udp, ACableThatIsOutForAWhile) {
    Stream stream(networks, wants());
    for (const int end : {0, 1}) {
        set_up(end, false);
        usleep(300'000);  // so long it is out: a good part of all patience
        set_up(end, true);
        stream.flows();
    }
    stream.leave();
}

TEST_P(Udp, ACableThatIsOutForLongerThanPatienceBreaksTheConnectionAndANewOneStands) {
    Stream stream(networks, wants(impatient_ms()));
    set_up(1, false);
    stream.breaks();
    set_up(1, true);
    Stream second(networks, wants());  // patient: the way has to be found anew
    second.leave();
}

TEST_P(Udp, WhoseInterfaceIsDownForTooLongGoesOnWithTheSameNic) {
    Child bystander("udp bystander", {.arguments = {networks.name(1), nic()}});
    bystander.expect("open");
    Stream stream(networks, wants(impatient_ms()));
    set_up(0, false);
    stream.breaks();
    set_up(0, true);
    // The one that answers for host 1 was open all the time.
    Stream second(networks, wants());  // patient: the way has to be found anew
    second.leave();
    dismiss(bystander);
}

TEST_P(Udp, TheMtuChangesUnderWay) {
    Stream stream(networks, wants());
    for (const int mtu : {9000, 1500, least_mtu(), 1500, 9000}) {
        set_mtu(mtu);
        stream.flows();
    }
    stream.leave();
}

TEST_P(Udp, TheMtuOfOneEndChangesUnderWay) {
    set_mtu(9000);
    Stream stream(networks, wants());
    for (const int end : {0, 1}) {
        for (const int mtu : {1500, least_mtu(), 9000}) {
            networks.set_mtu(end, mtu);
            stream.flows();
        }
    }
    stream.leave();
}

TEST_P(Udp, AKilledTargetIsMissedBeforeItsSilence) {
    Stream stream(networks, wants(30'000));
    const double start = now_ms();
    stream.target.kill();
    stream.initiator.expect("over");
    // With nothing under way when it died, who waits asks after a third of his patience.
    EXPECT_LT(now_ms() - start, 20'000) << "its host says that nobody is at the port";
    dismiss(stream.initiator);
}

TEST_P(Udp, AKilledInitiatorIsMissedByATargetThatOnlyReceives) {
    Stream stream(networks, wants(impatient_ms()));
    stream.initiator.kill();
    stream.target.expect("over");
    dismiss(stream.target);
}

TEST_P(Udp, AHostThatIsGoneIsMissedByItsSilence) {
    Stream stream(networks, wants(impatient_ms()));
    networks.ip(1, {"link", "delete", "via0"});
    stream.breaks();
}

TEST_P(Udp, ANetworkThatIsRemovedWithItsProcesses) {
    Stream stream(networks, wants(impatient_ms()));
    stream.target.kill();
    networks.remove(1);
    stream.initiator.expect("over");
    dismiss(stream.initiator);
}

TEST_P(Udp, ANetworkThatLosesItsNameGoesOnWhileProcessesAreInIt) {
    Stream stream(networks, wants());
    networks.remove(1);
    stream.flows();
    stream.leave();
}

TEST(UdpLinkLocal, OneAddressAtTwoInterfacesIsTwoPlaces) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    networks.ip(0, {"link", "add", "via1", "type", "veth", "peer", "name", "via1", "netns",
                    networks.name(1)});
    for (const std::string interface : {"via0", "via1"})
        for (const int end : {0, 1}) {
            networks.ip(end, {"link", "set", interface, "up"});
            networks.ip(end, {"address", "add", "fe80::97:" + std::to_string(end + 1) + "/64",
                              "dev", interface, "nodad"});
        }
    // Both of a host have the same discriminator, and each is found on its own link only.
    std::vector<std::unique_ptr<Child>> children;
    const auto start = [&](int end, const std::string& interface, const std::string& asks = "") {
        std::vector<std::string> arguments{
            networks.name(end), "udp:[fe80::97:" + std::to_string(end + 1) + "%" + interface + "]"};
        if (!asks.empty()) arguments.push_back(asks);
        children.push_back(
            std::make_unique<Child>("udp link-local", Child::Options{.arguments = arguments}));
        children.back()->expect("open");
    };
    for (const char* interface : {"via0", "via1"}) start(1, interface);
    for (const char* interface : {"via0", "via1"}) start(0, interface, "[fe80::97:2]");
    for (const auto& child : children) child->expect("done");
    for (const auto& child : children) {
        child->say("end");
        child->join();
    }
}

INSTANTIATE_TEST_SUITE_P(OverIp, Udp, testing::Values(4, 6),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

}  // namespace

}  // namespace system_test::udp_test
