// NICs of two hosts with two cables between them: a checked stream takes both, and goes on over
// one when the other is cut while it flows, and over both again when that is mended.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::rails_test {

namespace {

class Rails : public testing::Test {
protected:
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
        networks.ip(0, {"link", "add", "via1", "type", "veth", "peer", "name", "via1", "netns",
                        networks.name(1)});
        for (const int at : {0, 1}) {
            networks.ip(at, {"address", "add", "10.97.43." + std::to_string(at + 1) + "/24", "dev",
                             "via1"});
            networks.ip(at, {"link", "set", "via1", "up"});
        }
    }
    static StreamWants wants(std::size_t length = 20'000) {
        StreamWants wants{.nic = "udp:via0+via1"};
        wants.length = length;
        return wants;
    }
    void set(int at, const std::string& cable, bool up) const {
        networks.ip(at, {"link", "set", cable, up ? "up" : "down"});
    }
    /// Bytes that left by that cable so far, of the host that the process is on.
    static std::uint64_t left(pid_t process, const std::string& cable) {
        std::string line, name;
        for (std::ifstream all("/proc/" + std::to_string(process) + "/net/dev");
             getline(all, line);) {
            std::istringstream each(line);
            if (!(each >> name) || name != cable + ":") continue;
            std::uint64_t value = 0;
            for (int at = 0; at < 9; ++at) each >> value;
            return value;
        }
        return 0;
    }
    /// Waits until so much more has left by that cable while the stream flows.
    static void carries(const Stream& stream, const std::string& cable) {
        const std::uint64_t before = left(stream.initiator.pid(), cable);
        until("a cable carries some of it", [&] {
            stream.flows(20);
            return left(stream.initiator.pid(), cable) > before + 200'000;
        });
    }

    Host host;
    Networks networks;
};

TEST_F(Rails, AStreamTakesBothCables) {
    Stream stream(networks, wants());
    carries(stream, "via0");
    carries(stream, "via1");
    stream.leave();
}

TEST_F(Rails, EitherCableMayBeCutAndMendedWhileItFlows) {
    Stream stream(networks, wants());
    carries(stream, "via1");
    for (const char* cable : {"via1", "via0"})
        for (const int at : {0, 1}) {
            set(at, cable, false);
            stream.flows(2000);
            set(at, cable, true);
            carries(stream, cable);
        }
    stream.leave();
}

TEST_F(Rails, WithoutAnyCableTheConnectionIsLost) {
    StreamWants impatient = wants();
    impatient.nic += ",silence=1500";
    Stream stream(networks, impatient);
    carries(stream, "via1");
    set(1, "via0", false);
    set(1, "via1", false);
    stream.breaks();
}

TEST_F(Rails, SmallMessagesGoOnWhenTheirCableIsCut) {
    Stream stream(networks, wants(64));
    stream.flows();
    for (const char* cable : {"via0", "via1"}) {
        set(1, cable, false);
        stream.flows(2000);
        set(1, cable, true);
        stream.flows(2000);
    }
    stream.leave();
}

}  // namespace

}  // namespace system_test::rails_test
