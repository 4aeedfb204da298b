// Three and four hosts on a switch (a bridge), many to one and all to all; and a link that a bucket
// of tokens makes narrow.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "support/host.hpp"
#include "support/stream.hpp"

namespace system_test::topology_test {

namespace {

constexpr std::uint64_t messages = 300;  ///< each way of each connection
constexpr std::size_t message_bytes = 5000;
constexpr unsigned ahead = 8;  ///< messages sent before one of the other side came

/// One connection's messages, both ways at once.
class Talk {
public:
    explicit Talk(Nic& nic)
        : end_(nic, {.length = message_bytes, .receives = 2 * ahead, .sends = 2 * ahead}) {}
    End& end() { return end_; }
    /// `ours`, `theirs`: what tells the patterns of the two ways apart.
    void name(int ours, int theirs) {
        ours_ = pattern(ours, theirs);
        theirs_ = pattern(theirs, ours);
    }
    bool over() const { return done_ == messages && taken_ == messages; }
    std::uint64_t taken() const { return taken_; }
    void step() {
        // What of theirs came says how much of ours they had taken: so there always is a receive.
        const std::uint64_t end = std::min({messages, taken_ + ahead, done_ + end_.wants().sends});
        for (; posted_ < end; ++posted_) {
            const auto slot = static_cast<unsigned>(posted_ % end_.wants().sends);
            fill(end_.send_buffer(slot), message_bytes, ours_ + posted_);
            end_.post_send(slot, message_bytes);
        }
        for (; const auto outcome = end_.sent(); ++done_) require(outcome->ok(), "a send is done");
        for (; const auto outcome = end_.received(); ++taken_) {
            require(outcome->ok(), "a receive is done");
            require(holds(end_.receive_buffer(outcome->slot), message_bytes, theirs_ + taken_),
                    "each message comes once, whole, and in its turn");
            end_.post_receive(outcome->slot);
        }
    }

private:
    static std::uint64_t pattern(int from, int to) {
        return static_cast<std::uint64_t>(from * 16 + to) * messages;
    }
    End end_;
    std::uint64_t ours_ = 0;
    std::uint64_t theirs_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t done_ = 0;
    std::uint64_t taken_ = 0;
};

std::string door_of(int member) { return "door of " + std::to_string(member); }

/// How much of the slowest had come when the first was over, in percent.
class Shares {
public:
    void look(const std::vector<std::unique_ptr<Talk>>& talks) {
        if (known_ ||
            std::none_of(talks.begin(), talks.end(), [](const auto& talk) { return talk->over(); }))
            return;
        known_ = true;
        for (const auto& talk : talks) least_ = std::min(least_, talk->taken() * 100 / messages);
    }
    std::uint64_t least() const { return least_; }

private:
    bool known_ = false;
    std::uint64_t least_ = 100;
};

/// Arguments: network, our number, how many there are, how many of them everybody is connected to.
/// Each asks those before it, and is asked by those behind it.
void be_member(Parent& parent) {
    enter_network(parent.argument(0));
    const int self = std::stoi(parent.argument(1));
    const int count = std::stoi(parent.argument(2));
    const int centres = std::stoi(parent.argument(3));
    Nic nic("udp:via0");
    std::vector<std::unique_ptr<Talk>> talks;
    const auto add = [&](int other) -> End& {
        talks.push_back(std::make_unique<Talk>(nic));
        talks.back()->name(self, other);
        return talks.back()->end();
    };
    for (int other = 0; other < std::min(self, centres); ++other) {
        End& end = add(other);
        nic.turn_to(Networks::address(other));
        end.connect(door_of(self));
    }
    for (int other = self + 1; other < count && self < centres; ++other)
        add(other).accept(door_of(other));
    Shares shares;
    until("all is said", [&] {
        bool over = true;
        for (const auto& talk : talks) {
            talk->step();
            over = over && talk->over();
        }
        shares.look(talks);
        return over;
    });
    parent.say("over");
    parent.say(std::to_string(shares.least()));
    parent.expect("end");
}
const Role member_role("member", be_member);

/// `centres`: hosts that everybody is connected to.
void talk(const Networks& networks, int hosts, int centres, int least_share = 0) {
    const Host host;
    std::vector<std::unique_ptr<Child>> members;
    for (int member = 0; member < hosts; ++member)
        members.push_back(std::make_unique<Child>(
            "member",
            Child::Options{.arguments = {networks.name(member), std::to_string(member),
                                         std::to_string(hosts), std::to_string(centres)}}));
    for (const auto& member : members) member->expect("over");
    for (int member = 0; member < hosts; ++member) {
        const std::string share = members[static_cast<std::size_t>(member)]->hear();
        if (member != 0 || least_share == 0) continue;
        std::printf("the slowest had %s %% when the first was over\n", share.c_str());
        EXPECT_GE(std::stoi(share), least_share);
    }
    for (const auto& member : members) {
        member->say("end");
        member->join();
    }
}

void talk(int hosts, int centres) {
    const Networks networks(Joined::by_switch, hosts);
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    talk(networks, hosts, centres);
}

TEST(OnASwitch, TwoHostsTalkToOneAtOnce) { talk(3, 1); }
TEST(OnASwitch, ThreeHostsTalkToOneAtOnce) { talk(4, 1); }
TEST(OnASwitch, ThreeHostsTalkToEachOther) { talk(3, 3); }
TEST(OnASwitch, FourHostsTalkToEachOther) { talk(4, 4); }

TEST(OnASwitch, ThreeHostsTalkToOneBehindANarrowPort) {
    const Networks networks(Joined::by_switch, 4);
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    networks.shape_port(0, 80, 64 * 1024);
    talk(networks, 4, 1, 10);
}

/// So long its thread that sends or takes messages has been kept from a processor: on a busy
/// machine that, not the link, decides how much flows.
double kept_waiting_ms(const Child& child) {
    std::istringstream numbers(read_file("/proc/" + std::to_string(child.pid()) + "/schedstat"));
    double ran_ns = 0, waited_ns = 0;
    require(bool(numbers >> ran_ns >> waited_ns), "the kernel tells how long it waited");
    return waited_ns / 1e6;
}

TEST(OnANarrowLink, EverythingArrivesAtNearlyItsRate) {
    constexpr int megabits = 80;
    constexpr int queue_bytes = 64 * 1024;
    const Host host;
    const Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    networks.shape(0, megabits, queue_bytes);
    Stream stream(networks);
    stream.flows(100);  // the rate is found
    constexpr std::uint64_t more = 500;
    const auto kept_waiting = [&] {
        return kept_waiting_ms(stream.initiator) + kept_waiting_ms(stream.target);
    };
    const double waited_before = kept_waiting();
    const double start = now_ms();
    stream.flows(more);
    const double seconds = (now_ms() - start) / 1000;
    const double waited = (kept_waiting() - waited_before) / 1000;
    const double sent_megabits = static_cast<double>(more) * 20'000 * 8 / 1e6;
    std::printf("%.1f Mbit/s of %d, %.3f of %.3f s without a processor\n", sent_megabits / seconds,
                megabits, waited, seconds);
    EXPECT_LT(seconds - waited, 4 * sent_megabits / megabits) << "a quarter of the link's rate";
    EXPECT_LT(sent_megabits / seconds, megabits * 1.2) << "the link is narrow";
    stream.leave();
}

}  // namespace

}  // namespace system_test::topology_test
