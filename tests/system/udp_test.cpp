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

/// A process on one of the hosts. Arguments: network, NIC, host to ask; none: it is asked.
struct Party {
    explicit Party(Parent& from, const Wants& wants = {}) : parent(from), end(nic, wants) {}
    bool asks() const { return parent.arguments() > 2; }
    void meet() {
        parent.say("open");
        if (!asks()) return end.accept("door");
        nic.turn_to(parent.argument(2));
        end.connect("door");
    }
    /// One message goes each way.
    void exchange() {
        end.post_send(0, 64);
        const auto sent = end.wait_sent(watchdog_ms);
        const auto received = end.wait_received(watchdog_ms);
        require(sent && sent->ok() && received && received->ok(), "a message each way");
        end.post_receive(received->slot);
    }
    void done(const char* what = "done") {
        parent.say(what);
        parent.expect("end");
    }

    static const char* come(const Parent& parent) {
        enter_network(parent.argument(0));
        return parent.argument(1).c_str();
    }
    Parent& parent;
    Nic nic{come(parent)};
    End end;
};

void be_link_local(Parent& parent) {
    Party party(parent);
    party.meet();
    party.exchange();
    party.done();
}
const Role link_local_role("udp link-local", be_link_local);

/// Small messages go each way, then the one that asked sends a long one.
void be_narrow(Parent& parent) {
    Party party(parent, {.length = 20'000});
    party.meet();
    for (int n = 0; n < 100; ++n) party.exchange();
    parent.say("small ones pass");
    if (party.asks()) {
        party.end.post_send(0, 20'000);
        const auto sent = party.end.wait_sent(watchdog_ms);
        require(sent && !sent->ok(), "a long one comes back with an error");
    }
    until("both hear of it", [&] { return party.end.state() == VIP_STATE_ERROR; });
    party.done("over");
}
const Role narrow_role("udp narrow", be_narrow);

/// Asks again and again, as old programs do, while nobody has a NIC there.
void be_early(Parent& parent) {
    Party party(parent);
    party.nic.turn_to(parent.argument(2));
    for (int n = 0; n < 10; ++n)
        require(party.end.request("door", 3000) == VIP_NO_MATCH,
                "it is known that nobody is there");
    parent.say("early");
    VIP_RETURN code = VIP_NO_MATCH;
    while (code == VIP_NO_MATCH) code = party.end.request("door", watchdog_ms);
    require(code == VIP_SUCCESS, "now somebody is there");
    party.exchange();
    party.done();
}
const Role early_role("udp early", be_early);

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

TEST_P(Udp, AnotherAnswersForAHostWhoseAnswererStandsStill) {
    Child holder("udp bystander", {.arguments = {networks.name(1), nic()}});
    holder.expect("open");
    StreamWants wants = Udp::wants();
    wants.when_listening = [&] { holder.stop(); };
    Stream first(networks, wants);
    holder.go_on();
    first.leave();  // whoever has the port by now
    Stream second(networks, Udp::wants());
    dismiss(holder);
    second.leave();
    Stream(networks, Udp::wants()).leave();
}

TEST_P(Udp, TheNextOneAnswersWhenWhoTookOverEndsAndTheFirstStillStandsStill) {
    Child holder("udp bystander", {.arguments = {networks.name(1), nic()}});
    holder.expect("open");
    holder.stop();
    for (int n = 0; n < 2; ++n) Stream(networks, wants()).leave();
    holder.go_on();
    dismiss(holder);
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

/// Its host says a few times that nobody is at the port, and then once a second.
TEST_P(Udp, WhoAsksBeforeAnybodyHasANicThereHearsThatSoonEachTime) {
    Child early("udp early", {.arguments = {networks.name(0), nic(), wants().host}});
    early.expect("early");
    Child target("udp link-local", {.arguments = {networks.name(1), nic()}});
    target.expect("open");
    for (Child* child : {&early, &target}) child->expect("done");
    for (Child* child : {&early, &target}) dismiss(*child);
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

/// IPv4 asks of each host that it takes 576 bytes, but not of a link. By the kernel's way alone: a
/// burst that this cable's driver cuts would pass it, however narrow it is said to be.
TEST(UdpBelowTheLeast, ASmallMessagePassesAndALongOneEndsTheConnection) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    for (const int end : {0, 1}) networks.set_mtu(end, 552);
    const std::string nic = "udp:via0,silence=1500,own_frames=never";
    Child asked("udp narrow", {.arguments = {networks.name(1), nic}});
    asked.expect("open");
    Child asks("udp narrow", {.arguments = {networks.name(0), nic, Networks::address(1)}});
    asks.expect("open");
    for (Child* child : {&asks, &asked}) child->expect("small ones pass");
    for (Child* child : {&asks, &asked}) child->expect("over");
    for (Child* child : {&asks, &asked}) {
        child->say("end");
        child->join();
    }
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
