// kill -9 of somebody who sleeps in a call, and of somebody whose peer sleeps in one.
#include <gtest/gtest.h>

#include <thread>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_waiting_test {

namespace {

constexpr const char* door = "door";

/// Sleeps for ever in the call that argument 0 names.
void be_sleeper(Parent& parent) {
    const std::string& call = parent.argument(0);
    Nic nic;
    VIP_CQ_HANDLE queue = nullptr;
    Wants wants;
    if (call == "CQWait") {
        OK(VipCreateCQ(nic.handle(), 64, &queue));
        wants.queue = queue;
    }
    {
        End end(nic, wants);
        end.connect(door);
        parent.say("connected");
        if (call == "nothing") parent.expect("something");
        if (call == "RecvWait") end.wait_received(VIP_INFINITE);
        if (call == "ConnectWait") end.wait_request("nobody comes here");
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (call == "CQWait") VipCQWait(queue, VIP_INFINITE, &vi, &receive);
    }
    fail("the sleeper was to be killed");
}
const Role sleeper_role("sleeper", be_sleeper);

/// True while that thread sleeps in a system call that waits for memory to change.
bool sleeps(pid_t process, pid_t thread) {
    const std::string task = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread);
    const std::string stat = read_file(task + "/stat");
    const auto state = stat.rfind(") ");
    return state != stat.npos && stat[state + 2] == 'S';
}

/// Waits until it slept each of a few times that we looked.
void wait_asleep(pid_t process, pid_t thread) {
    int seen = 0;
    until("the thread sleeps", [&] {
        seen = sleeps(process, thread) ? seen + 1 : 0;
        return seen == 50;
    });
}

class DeathOfASleeper : public testing::TestWithParam<const char*> {};

TEST_P(DeathOfASleeper, PeerLearnsIt) {
    Host host;
    Nic nic;
    End end(nic);
    Child child("sleeper", {.arguments = {GetParam()}});
    end.accept(door);
    child.expect("connected");
    wait_asleep(child.pid(), child.pid());
    const double killed = now_ms();
    child.kill();
    expect_lost(end);
    std::printf("noticed after %.2f ms\n", now_ms() - killed);
    EXPECT_LE(now_ms() - killed, death_noticed_max_ms);
    nic.close();
    host.reclaim();
    EXPECT_EQ(host.met(), "");
}

INSTANTIATE_TEST_SUITE_P(In, DeathOfASleeper,
                         testing::Values("nothing", "RecvWait", "CQWait", "ConnectWait"),
                         [](const auto& call) { return std::string(call.param); });

/// The peer sleeps for ever in `wait`, in a thread; the process it is connected with is killed.
template <class Wait>
void expect_woken(const Wants& wants, Nic& nic, Wait wait) {
    End end(nic, wants);
    Child child("sleeper", {.arguments = {"nothing"}});
    end.accept(door);
    child.expect("connected");
    std::atomic<pid_t> thread_id = 0;
    double woken = 0;
    std::thread thread([&] {
        thread_id = gettid();
        wait(end);
        woken = now_ms();
    });
    until("the thread began", [&] { return thread_id != 0; });
    wait_asleep(getpid(), thread_id);
    const double killed = now_ms();
    child.kill();
    thread.join();
    std::printf("woken after %.2f ms\n", woken - killed);
    EXPECT_LE(woken - killed, death_noticed_max_ms);
    nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    EXPECT_EQ(end.state(), VIP_STATE_ERROR);
}

TEST(DeathOfThePeer, WakesRecvWait) {
    Host host;
    Nic nic;
    expect_woken({}, nic, [](End& end) {
        for (unsigned slot = 0; slot < end.wants().receives; ++slot) {
            const auto outcome = end.wait_received(VIP_INFINITE);
            ASSERT_TRUE(outcome && outcome->flushed());
            EXPECT_EQ(outcome->slot, slot);
        }
        EXPECT_FALSE(end.wait_received(VIP_INFINITE)) << "the queue is empty";
    });
}

TEST(DeathOfThePeer, WakesSendWait) {
    Host host;
    Nic nic;
    // At this level a send waits for the peer's acknowledgement, so it is asleep until the death;
    // nobody polls there, but the peer's agent takes the message in, so it has no receive left.
    Wants wants;
    wants.level = VIP_SERVICE_RELIABLE_RECEPTION;
    End end(nic, wants);
    Child child("stopper", {});
    end.accept(door);
    child.expect("connected");
    child.stop();
    end.post_send(0, 64);
    std::atomic<pid_t> thread_id = 0;
    double woken = 0;
    std::thread thread([&] {
        thread_id = gettid();
        const auto outcome = end.wait_sent(VIP_INFINITE);
        woken = now_ms();
        ASSERT_TRUE(outcome);
        EXPECT_FALSE(outcome->ok());
    });
    until("the thread began", [&] { return thread_id != 0; });
    wait_asleep(getpid(), thread_id);
    const double killed = now_ms();
    child.kill();
    thread.join();
    std::printf("woken after %.2f ms\n", woken - killed);
    EXPECT_LE(woken - killed, death_noticed_max_ms);
    expect_lost(end);
}

/// Connects at the level where sends are acknowledged, and is stopped from outside.
void be_stopper(Parent& parent) {
    Nic nic;
    Wants wants;
    wants.level = VIP_SERVICE_RELIABLE_RECEPTION;
    End end(nic, wants);
    end.connect(door);
    parent.say("connected");
    parent.expect("something");
}
const Role stopper_role("stopper", be_stopper);

TEST(DeathOfThePeer, WakesCqWait) {
    Host host;
    Nic nic;
    Wants wants;
    OK(VipCreateCQ(nic.handle(), 64, &wants.queue));
    expect_woken(wants, nic, [&](End& end) {
        for (unsigned slot = 0; slot < end.wants().receives; ++slot) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN receive = VIP_FALSE;
            ASSERT_EQ(VipCQWait(wants.queue, VIP_INFINITE, &vi, &receive), VIP_SUCCESS);
            EXPECT_EQ(vi, end.vi());
            EXPECT_EQ(receive, VIP_TRUE);
            const auto outcome = end.received();
            ASSERT_TRUE(outcome && outcome->flushed());
            EXPECT_EQ(outcome->slot, slot);
        }
    });
    EXPECT_EQ(VipDestroyCQ(wants.queue), VIP_SUCCESS);
}

TEST(DeathOfThePeer, WakesNobodyElse) {
    Host host;
    Nic nic;
    std::atomic<pid_t> thread_id = 0;
    VIP_RETURN code = VIP_SUCCESS;
    std::thread listener([&] {
        thread_id = gettid();
        Address local = nic.address("another door");
        Address remote;
        VIP_VI_ATTRIBUTES theirs{};
        VIP_CONN_HANDLE connection = nullptr;
        code = VipConnectWait(nic.handle(), local.get(), 300, remote.get(), &theirs, &connection);
    });
    until("the thread began", [&] { return thread_id != 0; });
    {
        End end(nic);
        Child child("sleeper", {.arguments = {"nothing"}});
        end.accept(door);
        child.expect("connected");
        child.kill();
        expect_lost(end);
    }
    listener.join();
    EXPECT_STREQ(name_of(code), "TIMEOUT") << "a death is no request";
}

}  // namespace

}  // namespace system_test::death_waiting_test
