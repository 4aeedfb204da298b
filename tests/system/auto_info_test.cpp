// `via info NIC --peer HOST`: the way that it names is the one that a connection would take.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "support/child.hpp"
#include "support/command.hpp"
#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::auto_info_test {

namespace {

/// Arguments: NIC, and a network to enter if it is in one. Has a NIC and does nothing.
void be_bystander(Parent& parent) {
    if (parent.arguments() > 1) enter_network(parent.argument(1));
    const Nic nic(parent.argument(0).c_str());
    parent.say("open");
    parent.expect("end");
}
const Role bystander_role("info bystander", be_bystander);

class Bystander {
public:
    explicit Bystander(std::vector<std::string> arguments)
        : child_("info bystander", {.arguments = std::move(arguments)}) {
        child_.expect("open");
    }
    ~Bystander() { child_.kill(); }
    Bystander(const Bystander&) = delete;
    Bystander& operator=(const Bystander&) = delete;

private:
    Child child_;
};

/// What the command prints, and its exit code. `prefix` runs it.
std::string info(const std::string& arguments, const std::string& prefix = "") {
    return said_by(prefix + VIA_COMMAND " info " + arguments);
}

std::string place(std::uint32_t number) { return text_of_host(loopback_host(getpid(), number)); }

constexpr const char* good = "\n0\n";
constexpr const char* none = "\n1\n";

TEST(InfoPeer, WhoSharesMemoryIsReachedByIt) {
    Host host;
    const Bystander peer({"auto:" + place(1)});
    for (const std::string& nic : {"auto:" + place(2), std::string("shm")}) {
        const std::string text = info(nic + " --peer " + place(1));
        EXPECT_TRUE(has(text, "way   shm") && has(text, good)) << text;
    }
    const std::string text = info("auto:" + place(1) + " --peer " + place(1));
    EXPECT_TRUE(has(text, "way   shm")) << text;
}

TEST(InfoPeer, WhoHasOnlyTheNetworkIsReachedOverIt) {
    Host host;
    const Bystander peer({"udp:" + place(1)});
    for (const char* medium : {"auto:", "udp:"}) {
        const std::string text = info(medium + place(2) + " --peer " + place(1));
        EXPECT_TRUE(has(text, "way   udp") && has(text, "by lo (" + place(2)) && has(text, good))
            << text;
    }
    const std::string text = info("shm --peer " + place(1));
    EXPECT_TRUE(has(text, "way   none") && has(text, "has no network") && has(text, none)) << text;
}

TEST(InfoPeer, NobodyIsNotReachable) {
    Host host;
    std::string text = info("auto:" + place(2) + ",silence=1000 --peer " + place(1));
    EXPECT_TRUE(has(text, "way   none") && has(text, "not reachable") && has(text, none)) << text;
    text = info("auto:" + place(2) + " --peer " + place(2));
    EXPECT_TRUE(has(text, "nobody but this command") && has(text, none)) << text;
    text = info("auto:" + place(2) + " --peer [fd00::1]");
    EXPECT_TRUE(has(text, "no host is called") && has(text, none)) << text;
    text = info("loopback --peer " + place(1));
    EXPECT_TRUE(has(text, "reaches nobody outside") && has(text, none)) << text;
}

TEST(InfoPeer, AnotherProgramAtOurAddressIsReached) {
    Host host;
    const Bystander peer({"udp:" + place(1)});
    for (const char* medium : {"auto:", "udp:"}) {
        const std::string text = info(medium + place(1) + " --peer " + place(1));
        EXPECT_TRUE(has(text, "way   udp") && has(text, good)) << text;
        EXPECT_TRUE(has(text, "key   none: ")) << text;
    }
    const std::string text = info("udp:" + place(1) + ",secure=never --json --peer " + place(1));
    EXPECT_TRUE(has(text, R"("key":"none: secure=never")")) << text;
}

TEST(InfoPeer, WhyNobodyAnswersIsSaid) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    const auto ask = [&](const std::string& peer) {
        return info("udp:via0,silence=1000 --peer " + peer,
                    "ip netns exec " + networks.name(0) + " ");
    };
    std::string text = ask(Networks::address(1));
    EXPECT_TRUE(has(text, "not reachable") && has(text, "no NIC has UDP port 9741")) << text;
    text = ask("203.0.113.77");
    EXPECT_TRUE(has(text, "not reachable") && has(text, "Network is unreachable")) << text;
}

TEST(InfoPeer, JsonSaysTheSame) {
    Host host;
    const Bystander peer({"shm:right"});
    const std::string text = info("shm:left --json --peer right");
    EXPECT_TRUE(has(text, R"("kind":"peer","nic":"shm:left")") && has(text, R"("way":"shm")"))
        << text;
    EXPECT_TRUE(has(info("shm:left --json --peer " + place(1)), R"("way":null)"));
}

TEST(InfoPeer, AnotherHostIsReachedOverTheNetwork) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    const Bystander peer({"auto:via0", networks.name(1)});
    const std::string text =
        info("auto:via0 --peer " + Networks::address(1), "ip netns exec " + networks.name(0) + " ");
    EXPECT_TRUE(has(text, "way   udp") && has(text, "by via0 (" + Networks::address(0)) &&
                has(text, good))
        << text;
}

TEST(Info, APlaceThatIsNotMetIsNamed) {
    Host host;
    const std::string elsewhere = host.path() + "/elsewhere";
    require_call(mkdir(elsewhere.c_str(), 0700) == 0, "mkdir");
    Child server("info bystander",
                 {.arguments = {"shm:right"}, .environment = {"XDG_RUNTIME_DIR=" + elsewhere}});
    server.expect("open");
    EXPECT_TRUE(has(info(""), "NICs of yours in " + elsewhere + "/openvia: give all"));
    EXPECT_TRUE(has(info("--json"), R"("kind":"elsewhere","place":")" + elsewhere));
    server.kill();
}

/// As by a new lease of DHCP.
TEST(Info, ANicWhoseAddressWasTakenAwayIsTold) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    const std::string enter = "ip netns exec " + networks.name(0) + " ";
    const Bystander nic({"udp:via0", networks.name(0)});
    const std::string place = Networks::address(0);
    EXPECT_TRUE(has(info("", enter), place + ":9741             via0\n")) << info("", enter);
    require_call(std::system((enter + "ip address flush dev via0").c_str()) == 0, "ip");
    const std::string text = info("", enter);
    EXPECT_TRUE(has(text, "its address is on no interface any more")) << text;
    EXPECT_TRUE(has(info("--json", enter), R"("interface":null)"));
}

}  // namespace

}  // namespace system_test::auto_info_test
