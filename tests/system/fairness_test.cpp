// A hundred VIs of two processes on two hosts, all full at once: the network is shared fairly, and
// nobody starves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <vector>

#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::fairness_test {

namespace {

constexpr unsigned vis = 100;
constexpr unsigned depth = 8;
constexpr unsigned receives = 16;
constexpr std::size_t length = 4096;
/// Of all together, so that the mean is of some weight.
constexpr std::uint64_t messages = sanitized ? 5'000 : 40'000;

struct FairPage {
    std::atomic<std::uint64_t> taken[vis];
    std::atomic<std::uint32_t> leave;
};

std::vector<std::unique_ptr<End>> ends_of(Nic& nic, const Wants& wants) {
    std::vector<std::unique_ptr<End>> ends;
    for (unsigned n = 0; n < vis; ++n) ends.push_back(std::make_unique<End>(nic, wants));
    return ends;
}

/// Argument: network. Takes what comes, until told to leave.
void be_taker(Parent& parent) {
    enter_network(parent.argument(0));
    auto& page = parent.shared<FairPage>();
    Nic nic("udp:via0");
    Wants wants;
    wants.length = length;
    wants.receives = receives;
    wants.sends = 1;
    const auto ends = ends_of(nic, wants);
    for (const auto& end : ends) end->accept("door");
    parent.say("connected");
    while (page.leave == 0) {
        for (unsigned n = 0; n < vis; ++n) {
            while (const auto outcome = ends[n]->received()) {
                require(outcome->ok(), "a message arrives");
                ends[n]->post_receive(outcome->slot);
                page.taken[n].fetch_add(1);
            }
        }
    }
    parent.say("left");
    parent.expect("end");
}
const Role taker_role("fair taker", be_taker);

/// Argument: network. Every VI has as much under way as it may, all the time.
void be_giver(Parent& parent) {
    enter_network(parent.argument(0));
    auto& page = parent.shared<FairPage>();
    Nic nic("udp:via0");
    nic.turn_to(Networks::address(1));
    Wants wants;
    wants.length = length;
    wants.receives = 1;
    wants.sends = depth;
    const auto ends = ends_of(nic, wants);
    for (const auto& end : ends) end->connect("door");
    parent.say("connected");
    parent.expect("go");
    std::vector<std::uint64_t> started(vis);
    std::vector<std::uint64_t> done(vis);
    const auto may_start = [&](unsigned n) {
        return started[n] - done[n] < depth && started[n] < page.taken[n] + receives;
    };
    while (page.leave == 0) {
        for (unsigned n = 0; n < vis; ++n) {
            while (may_start(n)) ends[n]->post_send(started[n]++ % depth, length);
            while (const auto outcome = ends[n]->sent()) {
                require(outcome->ok(), "a message is sent");
                ++done[n];
            }
        }
    }
    parent.say("left");
    parent.expect("end");
}
const Role giver_role("fair giver", be_giver);

TEST(Fairness, AHundredVisShareAWire) {
    Host host;
    const Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    Child taker("fair taker", {.arguments = {networks.name(1)}});
    Child giver("fair giver", {.arguments = {networks.name(0)}, .shares_with = &taker});
    giver.expect("connected");
    taker.expect("connected");
    giver.say("go");
    auto& page = taker.shared<FairPage>();
    std::vector<std::uint64_t> shares(vis);
    until("they have sent what tells", [&] {
        std::uint64_t all = 0;
        for (unsigned n = 0; n < vis; ++n) all += shares[n] = page.taken[n];
        return all >= messages;
    });
    page.leave = 1;
    giver.expect("left");
    taker.expect("left");  // it looks at no connection that the other has ended
    double sum = 0;
    double squares = 0;
    for (const std::uint64_t share : shares) {
        const auto had = static_cast<double>(share);
        sum += had;
        squares += had * had;
    }
    const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
    const double mean = sum / vis;
    const double jain = squares > 0 ? sum * sum / (squares * vis) : 0;
    std::printf("shares of %u VIs: least %llu, mean %.1f, most %llu; Jain's index %.4f\n", vis,
                static_cast<unsigned long long>(*least), mean,
                static_cast<unsigned long long>(*most), jain);
    EXPECT_GT(static_cast<double>(*least), mean / 4) << "nobody starves";
    EXPECT_GT(jain, 0.9);
    giver.say("end");
    taker.say("end");
    giver.join();
    taker.join();
}

}  // namespace

}  // namespace system_test::fairness_test
