// Two hosts and a wire with bad weather between them, which does to packets whatever it likes. Of
// what a reliable VI sends, everything arrives, once, in order and whole.
#include <gtest/gtest.h>

#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::weather_test {

namespace {

struct Sky {
    const char* name;
    std::vector<std::string> weather;
};

const Sky skies[] = {
    {"drops_5_percent", {"--loss", "5"}},
    {"drops_20_percent", {"--loss", "20"}},
    {"drops_in_bursts", {"--loss", "10", "--burst", "4"}},
    {"reorders", {"--reorder", "20", "--held", "2000"}},
    {"duplicates", {"--duplicate", "20"}},
    {"corrupts", {"--corrupt", "20"}},
    {"delays_and_drops", {"--delay", "500", "--loss", "5"}},
    {"does_all_of_it",
     {"--loss", "5", "--burst", "3", "--reorder", "5", "--duplicate", "5", "--corrupt", "5"}},
};

void PrintTo(const Sky& sky, std::ostream* out) { *out << sky.name; }

struct Weather : testing::TestWithParam<Sky> {
    void SetUp() override {
        if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
        wire = std::make_unique<BadWeather>(networks, GetParam().weather);
    }
    void carry(const StreamWants& wants, std::uint64_t messages) {
        Stream stream(networks, wants);
        stream.flows(messages);
        stream.leave();
    }
    Host host;
    Networks networks{Joined::not_yet};
    std::unique_ptr<BadWeather> wire;
};

constexpr VIP_RELIABILITY_LEVEL reliable_levels[] = {VIP_SERVICE_RELIABLE_DELIVERY,
                                                     VIP_SERVICE_RELIABLE_RECEPTION};
/// A message of 12,000 bytes needs nine packets.
constexpr std::size_t some_packets = 12'000;

TEST_P(Weather, TakesNothingOfWhatReliableVisSend) {
    for (const VIP_RELIABILITY_LEVEL level : reliable_levels) {
        StreamWants wants{.host = BadWeather::address(1), .level = level};
        wants.length = 100;
        carry(wants, 1000);
        wants.length = some_packets;
        for (const auto operation : {Operation::send, Operation::write, Operation::read}) {
            wants.operation = operation;
            carry(wants, 100);
        }
    }
}

TEST_P(Weather, LeavesWhatArrivesOfAnUnreliableViWholeAndInOrder) {
    StreamWants wants{.host = BadWeather::address(1), .level = VIP_SERVICE_UNRELIABLE};
    wants.length = 100;
    carry(wants, 1000);
    wants.length = some_packets;
    carry(wants, 30);
}

TEST_P(Weather, IsNoBetterForIpv6) {
    StreamWants wants{.nic = "udp:[via0]", .host = BadWeather::address_ipv6(1)};
    carry(wants, 300);
}

/// kill -9 of either side: the other one's sends come back, it hears that the connection is lost,
/// in its patience; the next two find a host without remains.
TEST(InBadWeather, WhoIsKilledIsMissedAndLeavesNothingBehind) {
    const Host host;
    const Networks networks(Joined::not_yet);
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    const BadWeather wire(networks, {"--loss", "10"});
    const StreamWants wants{.nic = "udp:via0,silence=2000", .host = BadWeather::address(1)};
    for (const bool is_target : {true, false}) {
        Stream stream(networks, wants);
        stream.flows();
        Child& killed = is_target ? stream.target : stream.initiator;
        Child& survivor = is_target ? stream.initiator : stream.target;
        const double start = now_ms();
        killed.kill();
        survivor.expect("over");
        EXPECT_LT(now_ms() - start, 10'000) << "much more than its patience";
        survivor.say("end");
        survivor.join();
        Stream(networks, wants).leave();
        EXPECT_EQ(host.entries(), std::vector<std::string>{});
    }
}

INSTANTIATE_TEST_SUITE_P(That, Weather, testing::ValuesIn(skies),
                         [](const auto& sky) { return std::string(sky.param.name); });

}  // namespace

}  // namespace system_test::weather_test
