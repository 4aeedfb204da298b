// A process that stands still (SIGSTOP) is not dead: it loses nothing, and meanwhile the other
// side's calls return, or time out as documented.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_stopped_test {

namespace {

constexpr const char* door = "door";
/// How long a peer stands still; VIA_STILLNESS_MS makes it longer.
const VIP_ULONG stillness_ms = [] {
    const char* text = getenv("VIA_STILLNESS_MS");
    return text == nullptr ? 1000UL : std::stoul(text);
}();
/// What a call may take that shall not wait for the peer.
constexpr double prompt_max_ms = 1000;
/// Processor time of a call that sleeps while the peer stands still, as a part of its duration.
constexpr double busy_max = 0.25;

/// Many receives, so that the ring to a stopped peer fills before the credits run out.
Wants wants_of(std::size_t length, VIP_RELIABILITY_LEVEL level) {
    Wants wants;
    wants.level = level;
    wants.length = length;
    wants.receives = 500;
    wants.sends = 100;
    return wants;
}

/// Arguments: operation, length, level, 1 if it initiates. Works until it is asked to leave or the
/// connection is over, says which and how far it came, and ends.
void be_peer(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    const auto operation = static_cast<Operation>(std::stoul(parent.argument(0)));
    Nic nic;
    End end(nic, wants_of(std::stoul(parent.argument(1)),
                          static_cast<VIP_RELIABILITY_LEVEL>(std::stoul(parent.argument(2)))));
    const auto work = [&](auto& part) {
        end.connect(door);
        parent.say("connected");
        while (!part.over() && page.leave.load() == 0) part.step();
        parent.say(part.over() ? "over" : "left");
        parent.expect("end");
    };
    if (parent.argument(3) == "1") {
        Initiator initiator(end, operation, page);
        work(initiator);
    } else {
        Target target(end, operation, page);
        work(target);
    }
}
const Role peer_role("peer", be_peer);

struct Pair {
    Child child;
    End end;
    Operation operation;

    Pair(Nic& nic, Operation what, std::size_t length, bool child_initiates,
         VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY)
        : child("peer",
                {.arguments = {std::to_string(static_cast<int>(what)), std::to_string(length),
                               std::to_string(level), child_initiates ? "1" : "0"}}),
          end(nic, wants_of(length, level)),
          operation(what) {}
    TrafficPage& page() { return child.shared<TrafficPage>(); }
    void connect() {
        end.accept(door);
        child.expect("connected");
    }
};

template <class Part>
void work_until(Part& part, const std::string& what, const std::atomic<std::uint64_t>& count,
                std::uint64_t enough) {
    until(what, [&] {
        part.step();
        require(!part.over(), "the connection holds");
        return count.load() >= enough;
    });
}

/// Polls alone cannot tell that nothing comes any more: while the progress thread has the turn and
/// no processor, thousands of them find nothing.
constexpr VIP_ULONG quiet_ms = 200;

/// Fills the ring to a stopped peer, or all that may be outstanding.
void fill_the_way(Initiator& initiator) {
    until("the way to the stopped peer is full", [&] { return !initiator.wait(quiet_ms); });
}

/// Runs `call`, which is to take as long as the peer stands still, asleep.
template <class Call>
void expect_asleep(Call call) {
    const auto ms = static_cast<double>(stillness_ms);
    const double start = now_ms();
    const double used = processor_seconds();
    call();
    const double took = now_ms() - start;
    const double busy = (processor_seconds() - used) * 1000 / took;
    EXPECT_GE(took, ms - 1);
    EXPECT_LE(took, ms + prompt_max_ms);
    EXPECT_LE(busy, busy_max) << "a call that waits for a stopped peer sleeps";
}

template <class Call>
double expect_prompt(const char* name, Call call) {
    const double start = now_ms();
    call();
    const double took = now_ms() - start;
    EXPECT_LE(took, prompt_max_ms) << name;
    return took;
}

/// Everything that has nothing to do with the peer works as ever.
void expect_calls_return(Nic& nic) {
    expect_prompt("calls that do not concern the peer", [&] {
        VIP_CQ_HANDLE queue = nullptr;
        OK(VipCreateCQ(nic.handle(), 16, &queue));
        Wants wants;
        wants.queue = queue;
        {
            End other(nic, wants);
            EXPECT_EQ(other.state(), VIP_STATE_IDLE);
            other.disconnect();
            EXPECT_EQ(other.drain(), other.wants().receives);
        }
        OK(VipDestroyCQ(queue));
    });
}

class Stopped : public testing::TestWithParam<std::tuple<Operation, VIP_RELIABILITY_LEVEL>> {};

TEST_P(Stopped, TargetLosesNothing) {
    const auto [operation, level] = GetParam();
    Host host;
    Nic nic;
    Pair pair(nic, operation, 16384, false, level);
    pair.connect();
    Initiator initiator(pair.end, operation, pair.page());
    work_until(initiator, "messages flow", pair.page().done, 200);
    pair.child.stop();
    fill_the_way(initiator);
    expect_asleep([&] { EXPECT_FALSE(pair.end.wait_sent(stillness_ms)); });
    expect_calls_return(nic);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    EXPECT_EQ(pair.end.state(), VIP_STATE_CONNECTED);
    const std::uint64_t blocked_at = initiator.done();
    pair.child.go_on();
    work_until(initiator, "messages flow again", pair.page().done, blocked_at + 1000);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    pair.page().leave = 1;
    pair.child.expect("left");
    pair.child.say("end");
    pair.child.join();
}

TEST_P(Stopped, InitiatorLosesNothing) {
    const auto [operation, level] = GetParam();
    Host host;
    Nic nic;
    Pair pair(nic, operation, 16384, true, level);
    Target target(pair.end, operation, pair.page());
    pair.connect();
    work_until(target, "messages flow", pair.page().done, 200);
    pair.child.stop();
    until("all that is there is taken", [&] { return !target.wait(quiet_ms); });
    expect_asleep([&] { EXPECT_FALSE(pair.end.wait_received(stillness_ms)); });
    expect_calls_return(nic);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    const std::uint64_t stood_at = pair.page().done;
    pair.child.go_on();
    work_until(target, "messages flow again", pair.page().done, stood_at + 1000);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    pair.page().leave = 1;
    pair.child.expect("left");
    pair.child.say("end");
    pair.child.join();
}

/// What the survivor does while its peer stands still in the middle of a stream towards it.
template <class Leave>
void leave_a_stopped_target(Leave leave) {
    Host host;
    Nic nic;
    auto pair = std::make_unique<Pair>(nic, Operation::send, 16384, false);
    pair->connect();
    Initiator initiator(pair->end, Operation::send, pair->page());
    work_until(initiator, "messages flow", pair->page().done, 200);
    pair->child.stop();
    fill_the_way(initiator);
    leave(nic, pair->end, initiator);
    const std::uint64_t done = pair->page().done;
    pair->child.go_on();
    pair->child.expect("over");
    EXPECT_GE(pair->page().taken.load(), done) << "what completed is delivered (VIPL 4.18)";
    pair->child.say("end");
    pair->child.join();
}

TEST(StoppedPeer, DisconnectReturnsAndWhatCompletedIsDelivered) {
    leave_a_stopped_target([](Nic&, End& end, Initiator& initiator) {
        expect_prompt("Disconnect", [&] { end.disconnect(); });
        initiator.step();
        EXPECT_TRUE(initiator.all_back()) << "all is flushed when Disconnect returns (VIPL 3)";
        EXPECT_TRUE(end.send_queue_empty());
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        end.drain();
        expect_prompt("DeregisterMem", [&] { end.memory().deregister(); });
    });
}

TEST(StoppedPeer, CloseNicReturnsAndWhatCompletedIsDelivered) {
    leave_a_stopped_target(
        [](Nic& nic, End&, Initiator&) { expect_prompt("CloseNic", [&] { nic.close(); }); });
}

/// Connects to a peer, which then stands still, and exits in the middle of a stream to it.
void be_leaver(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    static Nic nic;  // closed by exit(), not by us
    static End end(nic, wants_of(16384, VIP_SERVICE_RELIABLE_DELIVERY));
    end.accept(door);
    Initiator initiator(end, Operation::send, page);
    parent.say("accepted");
    while (page.leave.load() == 0) initiator.step();
    parent.say("leaving");
    std::exit(0);
}
const Role leaver_role("leaver", be_leaver);

TEST(StoppedPeer, ExitReturns) {
    Host host;
    Child leaver("leaver");
    auto& page = leaver.shared<TrafficPage>();
    Nic nic;
    End end(nic, wants_of(16384, VIP_SERVICE_RELIABLE_DELIVERY));
    Target target(end, Operation::send, page);
    end.connect(door);
    leaver.expect("accepted");
    // We stand still ourselves: as far as the leaver can tell, nobody takes anything any more.
    until("the way is full", [&] {
        const std::uint64_t done = page.done.load();
        for (int polls = 0; polls < 100; ++polls) sched_yield();
        return page.started.load() == 0 ? false : page.done.load() == done;
    });
    page.leave = 1;
    leaver.expect("leaving");
    expect_prompt("exit", [&] { leaver.join(); });
    run_to_the_end(target, end);
    EXPECT_GE(target.taken(), page.done.load()) << "what completed is delivered (VIPL 4.18)";
    expect_over(end, "the peer left");
}

TEST(StoppedPeer, IdleForLongIsNotDead) {
    Host host;
    Nic nic;
    Pair pair(nic, Operation::send, 64, false);
    pair.connect();
    pair.child.stop();
    expect_asleep([&] { EXPECT_FALSE(pair.end.wait_received(stillness_ms)); });
    EXPECT_EQ(pair.end.state(), VIP_STATE_CONNECTED);
    pair.child.go_on();
    Initiator initiator(pair.end, Operation::send, pair.page());
    work_until(initiator, "messages flow", pair.page().taken, 100);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    pair.page().leave = 1;
    pair.child.expect("left");
    pair.child.say("end");
    pair.child.join();
}

/// Waits for requests and accepts them, one after another.
void be_doorkeeper(Parent& parent) {
    auto& page = parent.shared<TrafficPage>();
    Nic nic;
    parent.say("ready");
    while (page.leave.load() == 0) {
        Address local = nic.address(door);
        Address remote;
        VIP_VI_ATTRIBUTES theirs{};
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN code =
            VipConnectWait(nic.handle(), local.get(), 100, remote.get(), &theirs, &connection);
        if (code == VIP_TIMEOUT) continue;
        must(code, "VipConnectWait");
        End end(nic);
        const VIP_RETURN accepted = VipConnectAccept(connection, end.vi());
        if (accepted == VIP_TIMEOUT) continue;  // it gave up meanwhile
        must(accepted, "VipConnectAccept");
        nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    }
}
const Role doorkeeper_role("doorkeeper", be_doorkeeper);

/// Stops a doorkeeper while it listens: it takes its name down for a moment between two waits.
void stop_listening(const Host& host, const Child& doorkeeper) {
    const auto listens = [&] {
        for (const std::string& entry : host.entries())
            if (entry.find("/d-") != entry.npos) return true;
        return false;
    };
    for (bool stopped = false; !stopped;) {
        until("it listens", listens);
        doorkeeper.stop();
        stopped = listens();
        if (!stopped) doorkeeper.go_on();
    }
}

void expect_request_times_out(End& end) {
    const double start = now_ms();
    const double used = processor_seconds();
    constexpr VIP_ULONG timeout_ms = 1000;
    EXPECT_STREQ(name_of(end.request(door, timeout_ms)), "TIMEOUT");
    const double took = now_ms() - start;
    EXPECT_GE(took, timeout_ms - 1.0);
    EXPECT_LE(took, timeout_ms + prompt_max_ms);
    EXPECT_LE((processor_seconds() - used) * 1000 / took, busy_max)
        << "a request to a stopped peer sleeps";
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
    EXPECT_FALSE(end.receive_queue_empty()) << "the receives stay posted (VIPL 3)";
}

class StoppedListener : public testing::TestWithParam<bool> {};

TEST_P(StoppedListener, RequestTimesOutAndALaterOneIsAccepted) {
    const bool knows_us = GetParam();
    Host host;
    Nic nic;
    End end(nic);
    Child child("doorkeeper");
    child.expect("ready");
    if (knows_us) {
        end.connect(door);
        end.disconnect();
        end.drain();
        for (unsigned slot = 0; slot < end.wants().receives; ++slot) end.post_receive(slot);
    }
    stop_listening(host, child);
    expect_request_times_out(end);
    expect_request_times_out(end);
    child.go_on();
    end.connect(door);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
    end.disconnect();
    child.shared<TrafficPage>().leave = 1;
    child.join();
}

INSTANTIATE_TEST_SUITE_P(That, StoppedListener, testing::Bool(), [](const auto& knows_us) {
    return std::string(knows_us.param ? "has_a_channel_with_us" : "never_met_us");
});

TEST(StoppedListener, DoesNotHoldUpOthers) {
    Host host;
    Nic nic;
    Pair pair(nic, Operation::send, 64, false);
    pair.connect();
    Child stopped("doorkeeper");
    stopped.expect("ready");
    stop_listening(host, stopped);
    End asking(nic);
    VIP_RETURN code = VIP_SUCCESS;
    std::atomic<bool> returned = false;
    std::thread request([&] {
        code = asking.request(door, 1000);
        returned = true;
    });
    Initiator initiator(pair.end, Operation::send, pair.page());
    std::uint64_t moved = 0;
    while (!returned) {
        work_until(initiator, "messages flow", pair.page().taken, pair.page().taken + 100);
        ++moved;
    }
    request.join();
    EXPECT_STREQ(name_of(code), "TIMEOUT");
    EXPECT_GT(moved, 10U);
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
}

INSTANTIATE_TEST_SUITE_P(
    Of, Stopped,
    testing::Values(std::tuple(Operation::send, VIP_SERVICE_RELIABLE_DELIVERY),
                    std::tuple(Operation::send, VIP_SERVICE_RELIABLE_RECEPTION),
                    std::tuple(Operation::send, VIP_SERVICE_UNRELIABLE),
                    std::tuple(Operation::write, VIP_SERVICE_RELIABLE_DELIVERY),
                    std::tuple(Operation::read, VIP_SERVICE_RELIABLE_DELIVERY)),
    [](const auto& given) {
        return std::string(name_of(std::get<0>(given.param))) + "_at_level_" +
               std::to_string(std::get<1>(given.param));
    });

}  // namespace

}  // namespace system_test::death_stopped_test
