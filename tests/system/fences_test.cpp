// Processes that may not call membarrier: they make full fences, and so do their peers towards
// them. Or those that may not any more: what they own is taken from them all the same. All of
// conformance runs so, too (tests/conformance/CMakeLists.txt).
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>

#include "support/child.hpp"
#include "support/filter.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::fences_test {

namespace {

constexpr const char* door = "door";
constexpr std::uint64_t rounds = 300;

/// Argument 0: what membarrier answers here; 0: what the kernel says. Below 0: from the middle on.
int answer_of(Parent& parent) { return std::stoi(parent.argument(0)); }
void obey(Parent& parent) {
    if (const int error = answer_of(parent); error > 0) forbid(SYS_membarrier, error);
}

/// Passes the rounds; in the middle another thread takes what this one owns.
template <class Round>
void pass_all(Parent& parent, Round pass) {
    std::uint64_t round = 0;
    while (round < rounds / 2) pass(round++);
    if (const int error = answer_of(parent); error < 0) forbid(SYS_membarrier, -error);
    std::thread([&] {
        while (round < rounds / 2 + 3) pass(round++);
    }).join();
    while (round < rounds) pass(round++);
}

void take(End& end, std::uint64_t word) {
    const auto received = end.wait_received(watchdog_ms);
    require(received && received->ok(), "a word comes, and who sleeps for it wakes up");
    require(holds(end.receive_buffer(received->slot), 64, word), "it is that word");
    end.post_receive(received->slot);
}
void give(End& end, std::uint64_t word) {
    fill(end.send_buffer(0), 64, word);
    end.post_send(0, 64);
    const auto sent = end.wait_sent(watchdog_ms);
    require(sent && sent->ok(), "it is sent");
}

void be_server(Parent& parent) {
    obey(parent);
    Nic nic;
    End end(nic);
    parent.say("ready");
    end.accept(door);
    pass_all(parent, [&](std::uint64_t round) {
        take(end, 2 * round);
        give(end, 2 * round + 1);
    });
    parent.expect("end");
}
const Role server_role("fences-server", be_server);

void be_client(Parent& parent) {
    obey(parent);
    Nic nic;
    End end(nic);
    end.connect(door);
    pass_all(parent, [&](std::uint64_t round) {
        give(end, 2 * round);
        take(end, 2 * round + 1);
    });
    parent.say("done");
    parent.expect("end");
}
const Role client_role("fences-client", be_client);

void talk(int of_server, int of_client) {
    Host host;
    Child::Options options;
    options.arguments = {std::to_string(of_server)};
    Child server("fences-server", options);
    server.expect("ready");
    options.arguments = {std::to_string(of_client)};
    Child client("fences-client", options);
    client.expect("done");
    client.say("end");
    server.say("end");
    client.join();
    server.join();
}

}  // namespace

TEST(Fences, SleepersWakeUpWhereBothMakeHeavyOnes) { talk(0, 0); }
TEST(Fences, SleepersWakeUpWhereNobodyMay) { talk(EPERM, ENOSYS); }
TEST(Fences, SleepersWakeUpWhereTheServerMayNot) { talk(EPERM, 0); }
TEST(Fences, SleepersWakeUpWhereTheClientMayNot) { talk(0, ENOSYS); }
TEST(Fences, SleepersWakeUpWhereAFilterComesLater) { talk(-EPERM, -ENOSYS); }
TEST(Fences, SleepersWakeUpWhereAFilterComesToOneLater) { talk(0, -EPERM); }

}  // namespace system_test::fences_test
