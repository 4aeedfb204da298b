// Two processes that poll exchange messages without system calls.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"

namespace system_test {

namespace {

constexpr const char* door = "door";
constexpr std::uint64_t round_trips = 20'000;
/// A machine with other things to do takes the processor away, and then somebody has to be woken;
/// one run out of these must show what it is like undisturbed.
constexpr int attempts = 8;
/// For the agent that looks once a millisecond whether the program still polls, and a few wakes.
constexpr std::uint64_t calls_per_message_inverse = 20;

/// Argument 0: "accept" or "request". Plays ping-pong, polling, for ever; counts in the page.
void be_player(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    const bool begins = parent.argument(0) == "request";
    Nic nic;
    Wants wants;
    wants.length = 8;
    End end(nic, wants);
    if (begins) end.connect(door);
    else end.accept(door);
    parent.say("connected");
    std::uint64_t& number = *reinterpret_cast<std::uint64_t*>(end.send_buffer(0));
    for (number = 0; page.leave.load(std::memory_order_relaxed) == 0; ++number) {
        if (begins) {
            end.post_send(0, 8);
            while (!end.sent()) {
            }
        }
        for (;;) {
            const auto outcome = end.received();
            if (!outcome) continue;
            require(outcome->ok(), "the message is received");
            std::uint64_t heard = 0;
            std::memcpy(&heard, end.receive_buffer(outcome->slot), 8);
            require(heard == number, "messages come in order");
            end.post_receive(outcome->slot);
            break;
        }
        if (!begins) {
            end.post_send(0, 8);
            while (!end.sent()) {
            }
        }
        page.done.store(number + 1, std::memory_order_relaxed);
    }
}
const Role player_role("player", be_player);

/// Traces all threads of a process and counts their system calls.
class CallCounter {
public:
    /// False: not allowed here.
    bool attach(pid_t process) {
        const std::string tasks = "/proc/" + std::to_string(process) + "/task";
        for (const auto& task : std::filesystem::directory_iterator(tasks)) {
            const auto thread = static_cast<pid_t>(std::stol(task.path().filename().string()));
            if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return false;
            threads_.push_back(thread);
            require_call(ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0, "ptrace");
        }
        return true;
    }
    /// Lets them run until `done`; afterwards call count() and kill the process.
    template <class Done>
    void run_until(Done done) {
        until("the traced process gets that far", [&] {
            for (const pid_t thread : threads_) follow(thread);
            return done();
        });
    }
    void reset() { stops_ = 0; }
    std::uint64_t count() const { return stops_ / 2; }  // entry and exit

private:
    void follow(pid_t thread) {
        int status = 0;
        if (waitpid(thread, &status, __WALL | WNOHANG) != thread || !WIFSTOPPED(status)) return;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) ++stops_;
        const bool event = status >> 16 != 0 || WSTOPSIG(status) == (SIGTRAP | 0x80);
        const long signal = event ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
    }

    std::vector<pid_t> threads_;
    std::uint64_t stops_ = 0;
};

/// System calls per message of a process that answers or begins; negative: ptrace is not allowed.
double calls_per_message(bool of_the_one_that_begins) {
    Host host;
    Child answering("player", {.arguments = {"accept"}});
    Child beginning("player", {.arguments = {"request"}});
    answering.expect("connected");
    beginning.expect("connected");
    Child& traced = of_the_one_that_begins ? beginning : answering;
    const auto& count = traced.shared<TrafficPage>().done;
    CallCounter counter;
    if (!counter.attach(traced.pid())) return -1;
    const std::uint64_t warm = count + 1000;
    counter.run_until([&] { return count >= warm; });
    counter.reset();
    const std::uint64_t from = count;
    counter.run_until([&] { return count >= from + round_trips; });
    const auto messages = static_cast<double>(2 * (count - from));
    return static_cast<double>(counter.count()) / messages;
}

class Polling : public testing::TestWithParam<bool> {};

TEST_P(Polling, MakesNoSystemCallPerMessage) {
    double least = 1e9;
    for (int attempt = 0; attempt < attempts && least > 1.0 / calls_per_message_inverse;
         ++attempt) {
        const double calls = calls_per_message(GetParam());
        if (calls < 0) GTEST_SKIP() << "ptrace is not allowed here";
        std::printf("%.5f system calls per message\n", calls);
        least = std::min(least, calls);
    }
    EXPECT_LE(least, 1.0 / calls_per_message_inverse);
}

INSTANTIATE_TEST_SUITE_P(The, Polling, testing::Bool(), [](const auto& begins) {
    return std::string(begins.param ? "one_that_begins" : "one_that_answers");
});

}  // namespace

}  // namespace system_test
