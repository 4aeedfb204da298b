// Frames of our own between hosts: that they are what carries a stream, and that what the kernel
// decides of its own datagrams holds for them, too.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::own_frames_test {

namespace {

/// What left a host so far.
struct Left {
    std::uint64_t datagrams = 0;  ///< by the kernel's UDP, a burst that is cut below it being one
    std::uint64_t packets = 0;    ///< by via0, likewise
    std::uint64_t above = 0;      ///< by the bridge that via0 is a port of
};

class OwnFrames : public testing::TestWithParam<int> {
protected:
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    }
    /// Else only lone datagrams leave as frames, and too few of a stream are.
    static bool kernel_cuts_frames() {
        std::ifstream version("/proc/sys/kernel/osrelease");
        int major = 0, minor = 0;
        char point = 0;
        version >> major >> point >> minor;
        return major > 6 || (major == 6 && minor >= 2);
    }
    static bool ipv6() { return GetParam() == 6; }
    static StreamWants wants(const std::string& options) {
        StreamWants wants{.nic = ipv6() ? "udp:[via0]" : "udp:via0", .host = Networks::address(1)};
        if (ipv6()) wants.host = Networks::address_ipv6(1);
        wants.nic += options;
        return wants;
    }
    /// Of the host that a process is on.
    static Left left(pid_t process) {
        const std::string net = "/proc/" + std::to_string(process) + "/net/";
        Left left;
        std::string line, name;
        if (ipv6()) {
            for (std::ifstream all(net + "snmp6"); all >> name;)
                if (name == "Udp6OutDatagrams") all >> left.datagrams;
        } else {
            std::string names, values;
            for (std::ifstream all(net + "snmp"); getline(all, line);)
                if (line.starts_with("Udp:")) {
                    names = values;
                    values = line;
                }
            std::istringstream each(names), counts(values);
            for (std::string value; each >> name && counts >> value;)
                if (name == "OutDatagrams") left.datagrams = std::stoull(value);
        }
        for (std::ifstream all(net + "dev"); getline(all, line);) {
            std::istringstream each(line);
            if (!(each >> name) || (name != "via0:" && name != "bridge0:")) continue;
            std::uint64_t value = 0;
            for (int at = 0; at < 10; ++at) each >> value;
            (name == "via0:" ? left.packets : left.above) = value;
        }
        return left;
    }
    /// What leaves the initiator's host while messages flow.
    static Left leaves(const Stream& stream) {
        const Left before = left(stream.initiator.pid());
        stream.flows(2000);
        const Left after = left(stream.initiator.pid());
        return {after.datagrams - before.datagrams, after.packets - before.packets,
                after.above - before.above};
    }

    Host host;
    Networks networks;
};

TEST_P(OwnFrames, CarryNearlyAllOfAStream) {
    if (!kernel_cuts_frames()) GTEST_SKIP() << "Linux before 6.2 cuts no frames";
    Stream stream(networks, wants(""));
    // A peer who gets no processor for long is doubted for a while.
    Left left;
    for (int tries = 0; tries < 100; ++tries) {
        left = leaves(stream);
        if (left.datagrams * 2 < left.packets) break;
    }
    EXPECT_LT(left.datagrams * 2, left.packets);
    stream.leave();
}

TEST_P(OwnFrames, AreNotMadeWhereTheyAreNotWanted) {
    Stream stream(networks, wants(",own_frames=never"));
    for (int n = 0; n < 5; ++n) {
        const Left left = leaves(stream);
        EXPECT_GT(left.datagrams * 10, left.packets * 9) << left.datagrams << " " << left.packets;
    }
    stream.leave();
}

TEST_P(OwnFrames, EndWhereTheKernelSendsNothingAnyMore) {
    Stream stream(networks, wants(",silence=1500"));
    stream.flows(5000);
    networks.ip(0, {"route", "add", "blackhole", wants("").host + (ipv6() ? "/128" : "/32")});
    stream.breaks();
}

TEST_P(OwnFrames, FollowTheKernelToAnotherAddressOfThePeersInterface) {
    Stream stream(networks, wants(""));
    stream.flows(5000);
    // It was known as a neighbour by another one; the kernel is told at once, as by an
    // announcement.
    const std::string address = "02:00:00:00:97:02";
    networks.ip(1, {"link", "set", "via0", "address", address});
    networks.ip(0, {"neighbour", "replace", wants("").host, "lladdr", address, "dev", "via0"});
    stream.flows(5000);
    stream.leave();
}

/// What is set there holds for them, too.
TEST_P(OwnFrames, LeaveByTheInterfaceThatTheRouteNamesNotByOneBelow) {
    if (!kernel_cuts_frames()) GTEST_SKIP() << "Linux before 6.2 cuts no frames";
    for (const int at : {0, 1}) {
        networks.ip(at, {"address", "flush", "dev", "via0"});
        networks.ip(at, {"link", "add", "bridge0", "type", "bridge"});
        networks.ip(at, {"link", "set", "via0", "master", "bridge0"});
        networks.ip(at, {"address", "add", Networks::address(at) + "/24", "dev", "bridge0"});
        networks.ip(at, {"link", "set", "bridge0", "up"});
    }
    for (const int at : {0, 1})
        networks.ip(
            at, {"address", "add", Networks::address_ipv6(at) + "/64", "dev", "bridge0", "nodad"});
    StreamWants through = wants("");
    through.nic = ipv6() ? "udp:[bridge0]" : "udp:bridge0";
    Stream stream(networks, through);
    Left left;
    for (int tries = 0; tries < 100; ++tries) {
        left = leaves(stream);
        if (left.datagrams * 2 < left.packets) break;
    }
    EXPECT_LT(left.datagrams * 2, left.packets);
    EXPECT_GT(left.above * 10, left.packets * 9);
    stream.leave();
}

INSTANTIATE_TEST_SUITE_P(OverIp, OwnFrames, testing::Values(4, 6),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

}  // namespace

}  // namespace system_test::own_frames_test
