// NICs of two hosts (network namespaces joined by a cable) and what may become of cable, interface,
// processes and hosts while a checked stream of messages is on its way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/traffic.hpp"

namespace system_test {

namespace {

/// Patience with a peer that says nothing, where a test waits for its end.
constexpr const char* impatient = "udp:via0,silence=1000";

/// The NIC at `host`, with a discriminator.
Address at(Nic& nic, const std::string& host, const std::string& discriminator) {
    Address address = nic.address(discriminator);
    std::string name = host;
    Address found;
    OK(VipNSInit(nic.handle(), nullptr));
    OK(VipNSGetHostByName(nic.handle(), name.data(), found.get(), 0));
    std::memcpy(address.get()->HostAddress, found.get()->HostAddress, 6);
    return address;
}

/// Arguments: network, NIC. Accepts at "door" and takes messages until told to leave, or for good.
void be_target(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    auto& page = parent.shared<TrafficPage>();
    End end(nic, {.length = 20'000});
    Target target(end, Operation::send, page);
    parent.say("listening");
    end.accept("door");
    parent.say("connected");
    while (page.leave.load() == 0 && !target.over()) target.step();
    parent.say(target.over() ? "over" : "left");
    parent.expect("end");
}
const Role target_role("udp target", be_target);

/// Arguments: network, NIC, host of the target.
void be_initiator(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    auto& page = parent.shared<TrafficPage>();
    End end(nic, {.length = 20'000});
    Address local = nic.address("initiator");
    Address remote = at(nic, parent.argument(2), "door");
    VIP_VI_ATTRIBUTES theirs{};
    VIP_RETURN code = VIP_NO_MATCH;
    until("somebody listens", [&] {
        code = VipConnectRequest(end.vi(), local.get(), remote.get(), watchdog_ms, &theirs);
        return code != VIP_NO_MATCH;
    });
    must(code, "VipConnectRequest");
    Initiator initiator(end, Operation::send, page);
    while (page.leave.load() == 0 && !initiator.over()) initiator.step();
    parent.say(initiator.over() ? "over" : "left");
    if (initiator.over()) nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    parent.expect("end");
}
const Role initiator_role("udp initiator", be_initiator);

/// Arguments: network. Has a NIC and does nothing.
void be_bystander(Parent& parent) {
    enter_network(parent.argument(0));
    const Nic nic("udp:via0");
    parent.say("open");
    parent.expect("end");
}
const Role bystander_role("udp bystander", be_bystander);

/// A stream from host 0 to host 1.
class Stream {
public:
    Stream(const Networks& networks, const char* nic)
        : target("udp target", {.arguments = {networks.name(1), nic}}) {
        target.expect("listening");
        initiator = std::make_unique<Child>(
            "udp initiator",
            Child::Options{.arguments = {networks.name(0), nic, Networks::address(1)},
                           .shares_with = &target});
        target.expect("connected");
        flows();
    }
    TrafficPage& page() const { return target.shared<TrafficPage>(); }
    /// Waits until that many more messages have arrived.
    void flows(std::uint64_t messages = 200) const {
        const std::uint64_t goal = page().taken.load() + messages;
        until("messages arrive", [&] { return page().taken.load() >= goal; });
    }
    void leave() {
        page().leave.store(1);
        for (Child* child : {&target, initiator.get()}) child->expect("left");
        for (Child* child : {&target, initiator.get()}) {
            child->say("end");
            child->join();
        }
    }

    Child target;
    std::unique_ptr<Child> initiator;
};

class Udp : public testing::Test {
protected:
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    }
    Host host;
    Networks networks;
};

TEST_F(Udp, AStreamBetweenHosts) {
    Stream stream(networks, "udp:via0");
    stream.flows(2000);
    stream.leave();
}

TEST_F(Udp, TheOneThatAnswersForTheHostIsKilledAndNobodyNotices) {
    Child holder("udp bystander", {.arguments = {networks.name(1)}});
    holder.expect("open");
    Stream first(networks, "udp:via0");
    holder.kill();
    first.flows();
    first.leave();
    Stream second(networks, "udp:via0");
    second.leave();
}

TEST_F(Udp, AnotherAnswersAtOnceForAHostWhoseAnswererWasKilled) {
    Child holder("udp bystander", {.arguments = {networks.name(1)}});
    holder.expect("open");
    Child target("udp target", {.arguments = {networks.name(1), "udp:via0"}});
    target.expect("listening");
    holder.kill();
    Child initiator("udp initiator",
                    {.arguments = {networks.name(0), "udp:via0", Networks::address(1)},
                     .shares_with = &target});
    target.expect("connected");
    target.shared<TrafficPage>().leave.store(1);
}

TEST_F(Udp, ACableThatIsOutForAWhile) {
    Stream stream(networks, "udp:via0");
    for (const int end : {0, 1}) {
        networks.set_up(end, false);
        usleep(300'000);  // so long it is out: a good part of all patience
        networks.set_up(end, true);
        stream.flows();
    }
    stream.leave();
}

TEST_F(Udp, TheMtuChangesUnderWay) {
    Stream stream(networks, "udp:via0");
    for (const int mtu : {9000, 1200, 600, 1500}) {
        // The shorter one first: what is sent always is what the other end takes.
        for (const int end : {0, 1}) networks.set_mtu(end, mtu);
        stream.flows();
    }
    stream.leave();
}

TEST_F(Udp, AKilledTargetIsMissedBeforeItsSilence) {
    Stream stream(networks, "udp:via0,silence=30000");
    const double start = now_ms();
    stream.target.kill();
    stream.initiator->expect("over");
    EXPECT_LT(now_ms() - start, 10'000) << "its host says that nobody is at the port";
    stream.initiator->say("end");
    stream.initiator->join();
}

TEST_F(Udp, AHostThatIsGoneIsMissedByItsSilence) {
    Stream stream(networks, impatient);
    networks.ip(1, {"link", "delete", "via0"});
    for (Child* child : {&stream.target, stream.initiator.get()}) {
        child->expect("over");
        child->say("end");
        child->join();
    }
}

TEST_F(Udp, ANetworkThatIsRemovedWithItsProcesses) {
    Stream stream(networks, impatient);
    stream.target.kill();
    networks.remove(1);
    stream.initiator->expect("over");
    stream.initiator->say("end");
    stream.initiator->join();
}

}  // namespace

}  // namespace system_test
