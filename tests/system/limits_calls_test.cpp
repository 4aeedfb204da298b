// Two processes that poll exchange messages without system calls, also while a thread of each waits
// for something else.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <tuple>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/traffic.hpp"

namespace system_test::limits_calls_test {

namespace {

constexpr double attempt_ms = 1000;
constexpr std::uint64_t round_trips_min = 100;
/// A machine with other things to do takes processors away, and then somebody has to be woken: an
/// attempt counts when that happened to fewer than one message in twenty.
constexpr int attempts = 10;
constexpr double disturbed_per_message_max = 0.05;
/// For the agent that looks once a millisecond whether the program still polls.
constexpr double calls_per_message_max = 0.05;

/// Argument 0: "accept" or "request"; 1: "alone", or "beside" a thread that waits for a connection
/// that nobody asks for, and then tells its number; 2: the NIC. Plays ping-pong, polling, for ever;
/// counts in the page.
void be_player(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    const bool begins = parent.argument(0) == "request";
    // So that there is a processor for whoever is woken.
    const bool yields = parent.argument(2) != "shm";
    Nic nic(parent.argument(2).c_str());
    Wants wants;
    wants.length = 8;
    End end(nic, wants);
    if (begins)
        end.connect(door_of_this_host());
    else
        end.accept(door_of_this_host());
    parent.say("connected");
    if (parent.argument(1) == "beside")
        std::thread([&] {
            parent.say(std::to_string(gettid()));
            end.wait_request(door_of_this_host("nobody asks " + parent.argument(0)));
        }).detach();
    std::uint64_t& number = *reinterpret_cast<std::uint64_t*>(end.send_buffer(0));
    for (number = 0; page.leave.load(std::memory_order_relaxed) == 0; ++number) {
        if (begins) {
            end.post_send(0, 8);
            while (!end.sent()) {
            }
        }
        for (;;) {
            const auto outcome = end.received();
            if (!outcome) {
                if (yields) std::this_thread::yield();
                continue;
            }
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

constexpr unsigned rounds_messages = 20;

/// Sends them one by one, at an interval in which a thread falls asleep, when the other one says
/// so.
void be_steady_sender(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    Nic nic("udp:127.0.0.1");
    Wants wants;
    wants.sends = rounds_messages;
    End end(nic, wants);
    end.connect(door_of_this_host());
    parent.say("connected");
    while (page.leave.load(std::memory_order_relaxed) == 0) {
        const auto asked = end.received();
        if (!asked) continue;
        end.post_receive(asked->slot);
        for (unsigned n = 0; n < rounds_messages; ++n) {
            const double next = now_ms() + 0.1;
            end.post_send(n, 8);
            while (now_ms() < next || !end.sent()) {
            }
        }
    }
}
const Role steady_sender_role("steady sender", be_steady_sender);

/// Polls, beside a thread that waits, and asks for messages; but while they come it is away for
/// longer than the agent's period, as one is that waits for a processor.
void be_absent_receiver(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    Nic nic("udp:127.0.0.1");
    Wants wants;
    wants.receives = rounds_messages;
    End end(nic, wants);
    end.accept(door_of_this_host());
    parent.say("connected");
    std::thread([&] {
        parent.say(std::to_string(gettid()));
        end.wait_request(door_of_this_host("nobody asks"));
    }).detach();
    while (page.leave.load(std::memory_order_relaxed) == 0) {
        for (const double until = now_ms() + 3; now_ms() < until;) end.received();
        end.post_send(0, 8);
        while (!end.sent()) {
        }
        usleep(3000);
        for (unsigned taken = 0; taken < rounds_messages;) {
            const auto outcome = end.received();
            if (!outcome) continue;
            end.post_receive(outcome->slot);
            ++taken;
        }
        page.done.fetch_add(1, std::memory_order_relaxed);
    }
}
const Role absent_receiver_role("absent receiver", be_absent_receiver);

/// Traces all threads of a process and counts their system calls.
class CallCounter {
public:
    explicit CallCounter(Child& process) : process_(process) {}
    /// Ends the process. Each traced thread must be reaped, or its process never can.
    ~CallCounter() {
        process_.signal(SIGKILL);
        for (const pid_t thread : threads_) {
            int status = 0;
            while (thread != process_.pid() && waitpid(thread, &status, __WALL) == thread &&
                   WIFSTOPPED(status)) {
            }
        }
    }
    CallCounter(const CallCounter&) = delete;
    CallCounter& operator=(const CallCounter&) = delete;

    /// False: not allowed here.
    bool attach() {
        const std::string tasks = "/proc/" + std::to_string(process_.pid()) + "/task";
        for (const auto& task : std::filesystem::directory_iterator(tasks)) {
            const auto thread = static_cast<pid_t>(std::stol(task.path().filename().string()));
            if (ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return false;
            threads_.push_back(thread);
            require_call(ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0, "ptrace");
        }
        return true;
    }
    /// Lets the threads run until `done`.
    template <class Done>
    void run_until(Done done) {
        const double start = now_ms();
        while (!done()) {
            require(now_ms() - start < watchdog_ms, "the traced process gets that far");
            for (const pid_t thread : threads_) follow(thread);
            usleep(100);  // leaves the processors to those that we watch
        }
    }
    void reset() { stops_ = 0; }
    double count() const { return static_cast<double>(stops_) / 2; }  // entry and exit

private:
    void follow(pid_t thread) {
        int status = 0;
        if (waitpid(thread, &status, __WALL | WNOHANG) != thread || !WIFSTOPPED(status)) return;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) ++stops_;
        const bool event = status >> 16 != 0 || WSTOPSIG(status) == (SIGTRAP | 0x80);
        const long signal = event ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
    }

    Child& process_;
    std::vector<pid_t> threads_;
    std::uint64_t stops_ = 0;
};

/// How often a process had to leave its processor to another one.
double displaced(const Child& child) {
    const std::string process = "/proc/" + std::to_string(child.pid());
    return static_cast<double>(read_number(process + "/status", "nonvoluntary_ctxt_switches"));
}

struct Measure {
    bool traced = false;  ///< ptrace is allowed
    double calls_per_message = 0;
    double disturbed_per_message = 0;
};

/// System calls per message of the process that begins or the one that answers.
Measure measure(bool of_the_one_that_begins, bool beside) {
    Host host;
    const char* const company = beside ? "beside" : "alone";
    Child answering("player", {.arguments = {"accept", company, "shm"}});
    Child beginning("player", {.arguments = {"request", company, "shm"}});
    answering.expect("connected");
    beginning.expect("connected");
    Child& traced = of_the_one_that_begins ? beginning : answering;
    const auto& count = traced.shared<TrafficPage>().done;
    CallCounter counter(traced);
    if (!counter.attach()) return {};
    const std::uint64_t warm = count + round_trips_min;
    counter.run_until([&] { return count >= warm; });
    counter.reset();
    const std::uint64_t from = count;
    const double displaced_before = displaced(answering) + displaced(beginning);
    const double start = now_ms();
    counter.run_until(
        [&] { return count >= from + round_trips_min && now_ms() - start >= attempt_ms; });
    const auto messages = static_cast<double>(2 * (count - from));
    return {true, counter.count() / messages,
            (displaced(answering) + displaced(beginning) - displaced_before) / messages};
}

/// Of the one that begins? While threads wait?
class PollingPair : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(PollingPair, MakesNoSystemCallPerMessage) {
    double least = 1e9;
    bool undisturbed = false;
    for (int attempt = 0; attempt < attempts && least > calls_per_message_max; ++attempt) {
        const Measure found = measure(std::get<0>(GetParam()), std::get<1>(GetParam()));
        if (!found.traced) GTEST_SKIP() << "ptrace is not allowed here";
        std::printf("%.5f system calls per message, %.5f times disturbed\n",
                    found.calls_per_message, found.disturbed_per_message);
        if (found.disturbed_per_message <= disturbed_per_message_max) undisturbed = true;
        least = std::min(least, found.calls_per_message);
    }
    if (!undisturbed && least > calls_per_message_max)
        GTEST_SKIP() << "the machine is too busy to tell";
    EXPECT_LE(least, calls_per_message_max);
}

/// Wake-ups of threads that wait, but for one in each period, which a program that has no processor
/// may cost: on a busy machine these are most.
class WakeUps {
public:
    explicit WakeUps(std::vector<std::string> statuses)
        : statuses_(std::move(statuses)), before_(sum()), start_ms_(now_ms()) {}
    double more_than_one_a_period() const {
        constexpr double period_ms = 1;  // HostAgentOptions::period
        const double periods = (now_ms() - start_ms_) / period_ms;
        return sum() - before_ - periods * static_cast<double>(statuses_.size());
    }

private:
    double sum() const {
        double all = 0;
        for (const std::string& status : statuses_)
            all += static_cast<double>(read_number(status, "voluntary_ctxt_switches"));
        return all;
    }

    std::vector<std::string> statuses_;
    double before_;
    double start_ms_;
};

/// Where each packet could wake who sleeps on the socket, to find that the program was quicker.
TEST(Polling, LetsThoseWhoWaitSleep) {
    constexpr double wake_ups_per_message_max = 0.1;
    double least = 1e9;
    for (int attempt = 0; attempt < attempts && least > wake_ups_per_message_max; ++attempt) {
        Host host;
        Child answering("player", {.arguments = {"accept", "beside", "udp:127.0.0.1"}});
        Child beginning("player", {.arguments = {"request", "beside", "udp:127.0.0.1"}});
        std::vector<std::string> waiting;
        for (Child* child : {&answering, &beginning}) {
            child->expect("connected");
            waiting.push_back("/proc/" + std::to_string(child->pid()) + "/task/" + child->hear() +
                              "/status");
        }
        const auto& count = beginning.shared<TrafficPage>().done;
        const auto play = [&] {
            const std::uint64_t from = count;
            until("messages go to and fro", [&] { return count >= from + 1000; });
        };
        play();
        const std::uint64_t from = count;
        const WakeUps wake_ups(waiting);
        play();
        const double woken = wake_ups.more_than_one_a_period();
        least = std::min(least, woken / static_cast<double>(2 * (count - from)));
        std::printf("%.5f times woken for a message\n", least);
    }
    EXPECT_LE(least, wake_ups_per_message_max);
}

/// A program that did not poll for some periods may be waiting for a processor: who wakes up for
/// each packet then takes it away, too. Once a period is enough.
TEST(Polling, LetsThoseWhoWaitSleepWhileTheProgramIsAwayForAWhile) {
    constexpr double wake_ups_per_message_max = 0.5;
    double least = 1e9;
    for (int attempt = 0; attempt < attempts && least > wake_ups_per_message_max; ++attempt) {
        Host host;
        Child receiver("absent receiver");
        Child sender("steady sender");
        receiver.expect("connected");
        sender.expect("connected");
        const std::string status =
            "/proc/" + std::to_string(receiver.pid()) + "/task/" + receiver.hear() + "/status";
        const auto& rounds = receiver.shared<TrafficPage>().done;
        const auto play = [&](std::uint64_t more) {
            const std::uint64_t from = rounds;
            until("messages come", [&] { return rounds >= from + more; });
        };
        play(5);
        const WakeUps wake_ups({status});
        play(50);
        least = std::min(least, wake_ups.more_than_one_a_period() / (50 * rounds_messages));
        std::printf("%.5f times woken for a message\n", least);
    }
    EXPECT_LE(least, wake_ups_per_message_max);
}

INSTANTIATE_TEST_SUITE_P(The, PollingPair, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& one) {
                             return std::string(std::get<0>(one.param) ? "one_that_begins"
                                                                       : "one_that_answers") +
                                    (std::get<1>(one.param) ? "_beside_one_that_waits" : "");
                         });

}  // namespace

}  // namespace system_test::limits_calls_test
