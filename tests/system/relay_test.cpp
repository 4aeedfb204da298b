// Hosts in no common network, and relays between them: `viad --relay` in network namespaces of its
// own, joined to each side by a cable. No kernel there forwards.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::relay_test {

namespace {

/// Arguments: network, table, file for what it says.
void be_relay(Parent& parent) {
    enter_network(parent.argument(0));
    const int said =
        open(parent.argument(2).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(said >= 0 && dup2(said, STDOUT_FILENO) >= 0, "there is a file for what it says");
    execl(VIA_VIAD, VIA_VIAD, "--relay", parent.argument(1).c_str(), nullptr);
    require(false, "viad starts");
}
const Role relay_role("relay", be_relay);

/// Hosts 0 and 1, and relays, each in both of their networks: 10.96.1 and 10.96.2.
class Split {
public:
    explicit Split(int relays) : networks_(Joined::not_yet, 2 + relays), relays_(relays) {
        if (!why_not().empty()) return;
        for (int end = 0; end < 2; ++end) {
            networks_.ip(end, {"link", "add", "via0", "type", "bridge"});
            for (int relay = 0; relay < relays; ++relay) join(end, relay);
            networks_.ip(end, {"address", "add", address(end) + "/24", "dev", "via0"});
            networks_.set_up(end, true);
        }
        write_ends_table();
    }
    const std::string& why_not() const { return networks_.why_not(); }
    const Networks& networks() const { return networks_; }
    static std::string address(int end) { return "10.96." + std::to_string(end + 1) + ".1"; }
    static std::string address(int end, int relay) {
        return "10.96." + std::to_string(end + 1) + "." + std::to_string(relay + 2);
    }

    void start(int relay) {
        const std::string table = file("relay", relay);
        std::ofstream out(table);
        for (int end = 0; end < 2; ++end) {
            const std::string own = address(end, relay);
            out << "way " << own << ' ' << address(end) << ' ' << address(end) << " 1000\n";
            out << "way " << own << ' ' << own << ' ' << own << " 0\n";
        }
        out.close();
        const std::string said = file("said", relay);
        std::filesystem::remove(said);
        processes_.resize(std::max(processes_.size(), static_cast<std::size_t>(relay) + 1));
        processes_[static_cast<std::size_t>(relay)].reset(new Child(
            "relay", Child::Options{.arguments = {networks_.name(2 + relay), table, said}}));
        until("the relay says that it passes on",
              [&] { return read_file(said).find("passes on") != std::string::npos; });
    }
    Child& relay(std::size_t index) { return *processes_[index]; }
    /// What a relay says of what it did.
    std::string ask(std::size_t relay) {
        processes_[relay]->signal(SIGUSR1);
        const std::string said = file("said", static_cast<int>(relay));
        until("the relay says what it did",
              [&] { return read_file(said).find("passed on;") != std::string::npos; });
        return read_file(said);
    }
    /// From host 0 to host 1.
    StreamWants wants(const std::string& options = "") const {
        StreamWants wants;
        wants.nic = "udp:via0,ways=" + file("ends", 0) + options;
        wants.host = address(1);
        return wants;
    }

private:
    void join(int end, int relay) const {
        const std::string inner = "end" + std::to_string(end);
        const std::string outer = "port" + std::to_string(relay);
        const int host = 2 + relay;
        networks_.ip(end, {"link", "add", outer, "type", "veth", "peer", "name", inner, "netns",
                           networks_.name(host)});
        networks_.ip(end, {"link", "set", outer, "master", "via0", "up"});
        networks_.ip(host, {"address", "add", address(end, relay) + "/24", "dev", inner});
        networks_.ip(host, {"link", "set", inner, "up"});
    }
    std::string file(const std::string& what, int number) const {
        return host_.path() + "/" + what + std::to_string(number);
    }
    void write_ends_table() const {
        std::ofstream out(file("ends", 0));
        for (int end = 0; end < 2; ++end) {
            for (int relay = 0; relay < relays_; ++relay) {
                out << "way " << address(end) << ' ' << address(1 - end) << ' '
                    << address(end, relay) << ' ' << 1000 * (relay + 1) << '\n';
                out << "relay " << address(end, relay) << '\n';
            }
        }
    }

    Host host_;
    Networks networks_;
    int relays_;
    std::vector<std::unique_ptr<Child>> processes_;
};

/// Passes on what others cannot reach.
struct OverARelay : ::testing::Test {
    Split split{1};
    void SetUp() override {
        if (!split.why_not().empty()) GTEST_SKIP() << split.why_not();
        split.start(0);
    }
};

class OverARelayBy : public OverARelay, public ::testing::WithParamInterface<Operation> {};

TEST_P(OverARelayBy, EverythingArrivesOnceAndWhole) {
    StreamWants wants = split.wants();
    wants.operation = GetParam();
    Stream stream(split.networks(), wants);
    stream.flows(300);
    stream.leave();
    const std::string said = split.ask(0);
    EXPECT_NE(said.find("0 malformed, 0 of strangers, 0 for unknown hosts, 0 going round"),
              std::string::npos)
        << said;
}
INSTANTIATE_TEST_SUITE_P(Each, OverARelayBy,
                         ::testing::Values(Operation::send, Operation::write, Operation::read),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_F(OverARelay, CommandsTellOfIt) {
    Stream stream(split.networks(), split.wants());
    stream.flows(50);
    // Each namespace is a host, with counters of its own.
    const auto on_host = [&](int host, const std::string& arguments) {
        return "ip netns exec " + split.networks().name(host) + " " VIA_COMMAND " " + arguments;
    };
    const std::string relay = Split::address(0, 0) + ":9742";
    const std::string relays = said_by(on_host(2, "stat"));
    EXPECT_TRUE(has(relays, "NIC relay:" + relay + "+" + Split::address(1, 0) + ":9742")) << relays;
    EXPECT_TRUE(has(relays, "  relayed_datagrams ")) << relays;
    EXPECT_TRUE(has(relays, ": " + Split::address(0) + " to " + Split::address(1) + ", "))
        << relays;
    const std::string ends = said_by(on_host(0, "stat"));
    EXPECT_TRUE(has(ends, " over relay " + relay + ", round trip ")) << ends;
    EXPECT_TRUE(has(said_by(on_host(0, "stat --json")), R"("over":")" + relay + '"'));
    const std::string ask =
        on_host(0, "info " + split.wants(",silence=1000").nic + " --peer " + Split::address(1));
    std::string text = said_by(ask);
    EXPECT_TRUE(has(text, ", over " + relay + ": the host answers")) << text;
    EXPECT_TRUE(has(text, "\n  over  " + relay + "\n")) << text;
    EXPECT_TRUE(has(said_by(ask + " --json"), R"("over":[")" + relay + R"("])"));
    stream.leave();
    split.relay(0).kill();
    text = said_by(ask);
    EXPECT_TRUE(has(text, "the relay " + relay + " says that no 'viad --relay'")) << text;
}

TEST_F(OverARelay, TheEndOfARelayIsTheEndOfWhatGoesOverIt) {
    Stream stream(split.networks(), split.wants(",silence=1000"));
    stream.flows(50);
    split.relay(0).kill();
    stream.breaks();
    split.start(0);
    Stream another(split.networks(), split.wants());
    another.flows(50);
    another.leave();
}

TEST_F(OverARelay, TheDeathOfAProcessIsHeardOfAtOnce) {
    // Silence alone would take longer than any watchdog.
    Stream stream(split.networks(), split.wants(",silence=3600000"));
    stream.flows(50);
    stream.target.kill();
    stream.initiator.expect("over");
    stream.initiator.say("end");
    stream.initiator.join();
}

TEST(OverTwoRelays, WhereOneEndsTheOtherOneGoesOn) {
    Split split(2);
    if (!split.why_not().empty()) GTEST_SKIP() << split.why_not();
    split.start(0);
    split.start(1);
    Stream stream(split.networks(), split.wants(",silence=60000"));
    stream.flows(50);
    split.relay(0).kill();
    stream.flows(300);
    stream.leave();
    EXPECT_NE(split.ask(1).find("0 malformed"), std::string::npos);
}

TEST(OverARelayThatIsNarrow, NearlyItsRateArrives) {
    constexpr int megabits = 10;  // so few that processors are not what is narrow
    Split split(1);
    if (!split.why_not().empty()) GTEST_SKIP() << split.why_not();
    // What leaves the target's side of the relay.
    split.networks().shape_interface(2, "end1", megabits, 64 * 1024);
    split.start(0);
    Stream stream(split.networks(), split.wants());
    stream.flows(30);  // the rate is found
    constexpr std::uint64_t more = 100;
    const double start = now_ms();
    stream.flows(more);
    const double seconds = (now_ms() - start) / 1000;
    const double got = static_cast<double>(more) * 20'000 * 8 / 1e6 / seconds;
    std::printf("%.1f Mbit/s of %d\n", got, megabits);
    EXPECT_GT(got, megabits / 2.0);
    EXPECT_LT(got, megabits * 1.2) << "the link is narrow";
    stream.leave();
}

}  // namespace

}  // namespace system_test::relay_test
