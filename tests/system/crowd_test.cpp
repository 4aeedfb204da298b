// A thousand processes of one host share its NIC address. Each listens at a door of its own;
// somebody on another host finds them all, whoever answers for the host.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::crowd_test {

namespace {

constexpr unsigned crowd_max = 1000;
/// VIA_CROWD: fewer.
const unsigned crowd = [] {
    const char* text = getenv("VIA_CROWD");
    const unsigned wanted = text == nullptr ? crowd_max : static_cast<unsigned>(std::stoul(text));
    return std::min(wanted, sanitized ? 100U : crowd_max);
}();
/// Of each, for everything that is its own.
constexpr double pss_max_kib = 2048;

struct CrowdPage {
    std::atomic<std::uint32_t> open;
    std::atomic<std::uint32_t> failed;
    std::atomic<pid_t> pids[crowd_max];
};

Wants wants() {
    Wants wants;
    wants.receives = wants.sends = 1;
    return wants;
}

std::string door_of(unsigned number) { return "door of " + std::to_string(number); }

/// Sends a word and takes one; who they are for is in the words.
void send_word(End& end, std::uint64_t word) {
    fill(end.send_buffer(0), 64, word);
    end.post_send(0, 64);
    require(end.wait_sent(watchdog_ms)->ok(), "a word is sent");
}
bool take_word(End& end, std::uint64_t word) {
    const auto outcome = end.wait_received(VIP_INFINITE);
    if (!outcome || outcome->flushed()) return false;
    require(holds(end.receive_buffer(0), 64, word), "the word is for this one");
    end.post_receive(0);
    return true;
}

/// One of the crowd: answers until its visitor leaves.
void be_one(unsigned number, CrowdPage& page) {
    Nic nic("udp:via0");
    End end(nic, wants());
    ++page.open;
    end.accept(door_of(number));
    for (std::uint64_t round = 0; take_word(end, number + round); round += crowd)
        send_word(end, number + round + crowd_max * 100);
}

/// Argument: network. Many processes, forked before any of them has a NIC.
void be_crowd(Parent& parent) {
    enter_network(parent.argument(0));
    auto& page = parent.shared<CrowdPage>();
    for (unsigned number = 0; number < crowd; ++number) {
        const pid_t pid = fork();
        require_call(pid >= 0, "fork");
        if (pid != 0) {
            page.pids[number] = pid;
            continue;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        try {
            be_one(number, page);
        } catch (const std::exception& failure) {
            std::fprintf(stderr, "number %u: %s\n", number, failure.what());
            ++page.failed;
        }
        _exit(0);
    }
    parent.say("all are there");
    parent.expect("end");
}
const Role crowd_role("crowd", be_crowd);

/// Argument: network. Told "visit FROM TO EXCEPT": connects to these. "talk EXCEPT": says a word to
/// all that it is connected to.
void be_visitor(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic("udp:via0");
    nic.turn_to(Networks::address(1));
    std::vector<std::unique_ptr<End>> ends(crowd);
    std::vector<std::uint64_t> rounds(crowd);
    for (;;) {
        std::istringstream told(parent.hear());
        std::string what;
        unsigned first = 0;
        unsigned end = crowd;
        told >> what;
        if (what == "end") break;
        if (what == "visit") told >> first >> end;
        unsigned except = crowd;
        told >> except;
        for (unsigned n = first; what == "visit" && n < end; ++n) {
            if (n == except) continue;
            ends[n] = std::make_unique<End>(nic, wants());
            ends[n]->connect(door_of(n));
        }
        for (unsigned n = 0; what == "talk" && n < crowd; ++n) {
            if (n == except || !ends[n]) continue;
            send_word(*ends[n], n + rounds[n]);
            require(take_word(*ends[n], n + rounds[n] + crowd_max * 100), "it answers");
            rounds[n] += crowd;
        }
        parent.say("done");
    }
}
const Role visitor_role("visitor", be_visitor);

/// The process that answers for the host at 10.97.42.2.
pid_t holder_below(const std::string& path) {
    namespace fs = std::filesystem;
    // A link leads to the directory that other users see, too.
    const auto through_links = fs::directory_options::follow_directory_symlink;
    for (const auto& entry : fs::recursive_directory_iterator(path, through_links)) {
        const std::string place = entry.path();
        if (!place.ends_with("/holder") || place.find(Networks::address(1)) == place.npos) continue;
        const std::string name = std::filesystem::read_symlink(entry.path());
        return std::stoi(name.substr(name.find('-') + 1));
    }
    return -1;
}

/// Of all processes of the crowd.
double sum(const CrowdPage& page, double (*of)(const std::string& process)) {
    double all = 0;
    for (unsigned n = 0; n < crowd; ++n) all += of("/proc/" + std::to_string(page.pids[n]));
    return all;
}
double pss_kib(const std::string& process) {
    return static_cast<double>(read_number(process + "/smaps_rollup", "Pss"));
}
/// Of processor time; the program's name, field 2, has no blank in it.
double used_seconds(const std::string& process) {
    std::istringstream stat(read_file(process + "/stat"));
    std::string field;
    double ticks = 0;
    for (int n = 1; n <= 15 && stat >> field; ++n)
        if (n >= 14) ticks += std::stod(field);
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

class Crowd : public testing::Test {
protected:
    double lap() {
        const double before = std::exchange(lap_ms_, now_ms());
        return (lap_ms_ - before) / 1000;
    }
    double lap_ms_ = now_ms();
};

TEST_F(Crowd, IsFoundAtOneAddressWhoeverAnswersForIt) {
    const Host host;
    const Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    Child all("crowd", {.arguments = {networks.name(1)}});
    Child visitor("visitor", {.arguments = {networks.name(0)}});
    const auto tell = [&](const std::string& what) {
        visitor.say(what);
        visitor.expect("done");
    };
    lap();
    all.expect("all are there");
    auto& page = all.shared<CrowdPage>();
    until("all NICs are open", [&] { return page.open + page.failed == crowd; });
    ASSERT_EQ(page.failed, 0U);
    std::printf("%u NICs open after %.1f s\n", crowd, lap());
    std::fflush(stdout);

    const std::string half = std::to_string(crowd / 2);
    const std::string nobody = std::to_string(crowd);
    tell("visit 0 " + half + " " + nobody);
    tell("talk " + nobody);
    const pid_t holder = holder_below(host.path());
    unsigned killed = 0;
    while (killed < crowd && page.pids[killed] != holder) ++killed;
    ASSERT_LT(killed, crowd) << "one of the crowd answers for the host";
    const double kib = sum(page, pss_kib) / crowd;
    ASSERT_EQ(kill(holder, SIGKILL), 0);
    // Any of them may be it, of either half: the first to have a NIC, or who took over from one
    // that did not get to answer.
    tell("visit " + half + " " + std::to_string(crowd) + " " + std::to_string(killed));
    tell("talk " + std::to_string(killed));
    std::printf("all visited after %.1f s more; %.0f KiB Pss each\n", lap(), kib);
    EXPECT_NE(holder_below(host.path()), holder) << "another one answers";
    if (!sanitized) {
        EXPECT_LT(kib, pss_max_kib);
    }
    const double before = sum(page, used_seconds);
    lap();
    sleep(2);
    const double used = sum(page, used_seconds) - before;
    std::printf("idle, all of them use %.1f %% of a processor\n", 100 * used / lap());
    EXPECT_EQ(page.failed, 0U);
    visitor.say("end");
    visitor.join();
    all.say("end");
    all.join();
}

}  // namespace

}  // namespace system_test::crowd_test
