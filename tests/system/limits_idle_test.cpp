// A process that is connected and does nothing sleeps: no thread of it wakes up, wherever it
// sleeps. One that listens looks whether its names are there, every 5 s (src/device/shm/README.md).
#include <dirent.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::limits_idle_test {

namespace {

/// Of all threads of a pair of processes together, however long they are idle.
constexpr long wake_ups_max = 4;
/// Between two looks of a listener at its names.
constexpr long look_every_s = 5;
/// Of both processes together, in which nothing happens but such looks.
constexpr long run_max_us = 10'000;
/// Until what traffic left behind is done (memory given back after 10 s), with room to spare.
constexpr unsigned settle_s = 15;
/// Of both processes: rings and control words, but no arenas.
constexpr long channel_max_kib = 300;

/// Seconds of idleness that are looked at: VIA_IDLE_SECONDS.
unsigned idle_seconds() {
    const char* text = getenv("VIA_IDLE_SECONDS");
    return text == nullptr ? 10 : static_cast<unsigned>(std::stoul(text));
}

/// Exchanges messages with the other one, then sleeps: argument 0 says where.
void be_idle(Parent& parent) {
    const std::string& place = parent.argument(0);
    Nic nic;
    Wants wants;
    wants.length = 100'000;
    if (place == "CQWait") OK(VipCreateCQ(nic.handle(), 64, &wants.queue));
    End end(nic, wants);
    const std::string door = place + parent.argument(2);
    if (parent.argument(1) == "accept")
        end.accept(door);
    else
        end.connect(door);
    const auto take = [&](auto done) {
        until("it completes", [&] {
            const auto outcome = done();
            require(!outcome || outcome->ok(), "nothing goes wrong");
            return outcome.has_value();
        });
    };
    for (unsigned message = 0; message < 4; ++message) {
        end.post_send(0, wants.length);
        take([&] { return end.sent(); });
        take([&] { return end.received(); });
    }
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    for (int entries = 0; place == "CQWait" && entries < 8; ++entries)
        OK(VipCQDone(wants.queue, &vi, &receive));
    // Long enough for the agent to take over, so that some of these sleep where it slept before.
    if (parent.argument(2) == "late") usleep(100'000);
    parent.say("idle");
    if (place == "RecvWait") end.wait_received(VIP_INFINITE);
    if (place == "CQWait") VipCQWait(wants.queue, VIP_INFINITE, &vi, &receive);
    if (place == "ConnectWait") end.wait_request("nobody " + parent.argument(1) + door);
    parent.expect("end");
}
const Role idle_role("idle", be_idle);

/// `of` each thread, which is a folder of /proc.
long sum_of_threads(const Child& child, long (*of)(const std::string& thread)) {
    long sum = 0;
    const std::string threads = "/proc/" + std::to_string(child.pid()) + "/task";
    for (const auto& thread : std::filesystem::directory_iterator(threads))
        sum += of(thread.path().string());
    return sum;
}

/// Each is followed by a sleep. Who is kept from a processor meanwhile does not wake up again.
long wake_ups(const Child& child) {
    return sum_of_threads(child, [](const std::string& thread) {
        return read_number(thread + "/status", "voluntary_ctxt_switches");
    });
}

long run_us(const Child& child) {
    return sum_of_threads(child, [](const std::string& thread) {
        return std::stol(read_file(thread + "/schedstat")) / 1000;  // ns
    });
}

/// Memory of channels that a process has to pay for.
long channel_kib(const Child& child) {
    std::istringstream maps(read_file("/proc/" + std::to_string(child.pid()) + "/smaps"));
    long sum = 0;
    bool channel = false;
    for (std::string line; std::getline(maps, line);) {
        if (line.find('-') < line.find(' ')) channel = line.find("via-channel") != line.npos;
        if (channel && line.starts_with("Pss:")) sum += std::stol(line.substr(4));
    }
    return sum;
}

struct Pair {
    std::string name;
    Child one;
    Child other;

    Pair(const std::string& place, const std::string& when)
        : name(place + ", " + when),
          one("idle", {.arguments = {place, "accept", when}}),
          other("idle", {.arguments = {place, "connect", when}}) {}
    long sum(long (*of)(const Child&)) const { return of(one) + of(other); }
};

TEST(Idle, ProcessesDoNotWakeUp) {
    Host host;
    std::vector<std::unique_ptr<Pair>> pairs;
    for (const char* place : {"program", "RecvWait", "CQWait", "ConnectWait"}) {
        for (const char* when : {"at once", "late"}) {
            pairs.push_back(std::make_unique<Pair>(place, when));
            pairs.back()->one.expect("idle");
            pairs.back()->other.expect("idle");
        }
    }
    sleep(settle_s);
    std::vector<long> woken;
    std::vector<long> run;
    for (const auto& pair : pairs) {
        woken.push_back(-pair->sum(wake_ups));
        run.push_back(-pair->sum(run_us));
    }
    sleep(idle_seconds());
    for (std::size_t n = 0; n < pairs.size(); ++n) {
        const Pair& pair = *pairs[n];
        SCOPED_TRACE(pair.name);
        ASSERT_FALSE(pair.one.ready() || pair.other.ready()) << "both sleep where they should";
        woken[n] += pair.sum(wake_ups);
        run[n] += pair.sum(run_us);
        std::printf("%-20s %5ld wake-ups and %ld us in %u s, %ld KiB of channels\n",
                    pair.name.c_str(), woken[n], run[n], idle_seconds(), pair.sum(channel_kib));
        const bool listens = pair.name.starts_with("ConnectWait");
        const long looks = listens ? 2 * (idle_seconds() / look_every_s + 1) : 0;
        EXPECT_LE(woken[n], wake_ups_max + looks);
        EXPECT_LE(run[n], run_max_us);
        EXPECT_LE(pair.sum(channel_kib), channel_max_kib)
            << "what large messages needed is given back";
    }
}

}  // namespace

}  // namespace system_test::limits_idle_test
