// A process that is connected and does nothing sleeps: no thread of it wakes up, wherever it sleeps.
#include <gtest/gtest.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test {

namespace {

constexpr const char* door = "door";
/// Of all threads of both processes together, however long they are idle.
constexpr long wake_ups_max = 4;
/// Until what traffic left behind is done (memory given back a second after), with room to spare.
constexpr unsigned settle_s = 3;

/// Seconds of idleness that are looked at: 10 in the slow test, VIA_IDLE_SECONDS.
unsigned idle_seconds() {
    const char* text = getenv("VIA_IDLE_SECONDS");
    return text == nullptr ? 2 : static_cast<unsigned>(std::stoul(text));
}

/// Exchanges messages with the other one, then sleeps: argument 0 says where.
void be_idle(Parent& parent) {
    const std::string& place = parent.argument(0);
    Nic nic;
    Wants wants;
    wants.length = 100'000;
    if (place == "CQWait") OK(VipCreateCQ(nic.handle(), 64, &wants.queue));
    End end(nic, wants);
    if (parent.argument(1) == "accept") end.accept(door);
    else end.connect(door);
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
    parent.say("idle");
    if (place == "RecvWait") end.wait_received(VIP_INFINITE);
    if (place == "CQWait") VipCQWait(wants.queue, VIP_INFINITE, &vi, &receive);
    if (place == "ConnectWait") end.wait_request("nobody comes here");
    parent.expect("end");
}
const Role idle_role("idle", be_idle);

long wake_ups(const Child& child) {
    const std::string tasks = "/proc/" + std::to_string(child.pid()) + "/task";
    long sum = 0;
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        const std::string status = task.path().string() + "/status";
        sum += read_number(status, "voluntary_ctxt_switches");
        sum += read_number(status, "nonvoluntary_ctxt_switches");
    }
    return sum;
}

/// Clock ticks of processor time, of all threads.
long ticks(const Child& child) {
    std::istringstream stat(read_file("/proc/" + std::to_string(child.pid()) + "/stat"));
    std::string field;
    long sum = 0;
    for (int n = 1; stat >> field; ++n)
        if (n == 14 || n == 15) sum += std::stol(field);
    return sum;
}

class Idle : public testing::TestWithParam<const char*> {};

TEST_P(Idle, ProcessesDoNotWakeUp) {
    Host host;
    Child one("idle", {.arguments = {GetParam(), "accept"}});
    Child other("idle", {.arguments = {GetParam(), "connect"}});
    one.expect("idle");
    other.expect("idle");
    sleep(settle_s);
    const long before = wake_ups(one) + wake_ups(other);
    const long ticks_before = ticks(one) + ticks(other);
    sleep(idle_seconds());
    const long woken = wake_ups(one) + wake_ups(other) - before;
    std::printf("%ld wake-ups in %u s\n", woken, idle_seconds());
    EXPECT_LE(woken, wake_ups_max);
    EXPECT_LE(ticks(one) + ticks(other) - ticks_before, 1);
}

INSTANTIATE_TEST_SUITE_P(In, Idle,
                         testing::Values("program", "RecvWait", "CQWait", "ConnectWait"),
                         [](const auto& place) { return std::string(place.param); });

}  // namespace

}  // namespace system_test
