// kill -9 while two processes connect: before the answer, after it, before the first message.
#include <gtest/gtest.h>

#include <thread>

#include "death_scene.hpp"
#include "support/host.hpp"

namespace system_test::death_connecting_test {

namespace {

constexpr const char* door = "door";

/// Asks for a connection, once somebody listens, and tells how that went.
void be_requester(Parent& parent) {
    Nic nic;
    End end(nic);
    parent.say("ready");
    VIP_RETURN code = VIP_NO_MATCH;
    while (code == VIP_NO_MATCH) code = end.request(door, watchdog_ms);
    parent.say(name_of(code));
    parent.expect("send");
    fill(end.send_buffer(0), 64, 7);
    end.post_send(0, 64);
    require(end.wait_sent(watchdog_ms)->ok(), "the send succeeds");
    parent.say("sent");
    parent.expect("end");
}
const Role requester_role("requester", be_requester);

/// Waits for a request, and does with it what the parent says.
void be_listener(Parent& parent) {
    Nic nic;
    End end(nic);
    parent.say("ready");
    const VIP_CONN_HANDLE connection = end.wait_request(door);
    parent.say("asked");
    parent.expect("accept");
    OK(VipConnectAccept(connection, end.vi()));
    parent.say("accepted");
    parent.expect("end");
}
const Role listener_role("listener", be_listener);

/// A connection with a new process works: the VI is none the worse.
void expect_usable(Nic& nic) {
    End end(nic);
    Child child("requester");
    child.expect("ready");
    end.accept(door);
    child.expect("SUCCESS");
    child.say("send");
    child.expect("sent");
    const auto outcome = end.wait_received(watchdog_ms);
    ASSERT_TRUE(outcome && outcome->ok());
    EXPECT_TRUE(holds(end.receive_buffer(outcome->slot), 64, 7));
    child.say("end");
    child.join();
    end.nic().wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    nic.forget_errors();
}

TEST(DeathWhileConnecting, RequesterDiesBeforeItIsAnswered) {
    Host host;
    Nic nic;
    End end(nic);
    Child child("requester");
    child.expect("ready");
    const VIP_CONN_HANDLE connection = end.wait_request(door);
    child.kill();
    // Accepted before the news of the death came, or after.
    const VIP_RETURN code = VipConnectAccept(connection, end.vi());
    if (code == VIP_SUCCESS) {
        expect_lost(end);
    } else {
        EXPECT_STREQ(name_of(code), "TIMEOUT");
        EXPECT_EQ(end.state(), VIP_STATE_IDLE);
        EXPECT_FALSE(end.receive_queue_empty()) << "the receives stay posted";
    }
    expect_usable(nic);
}

TEST(DeathWhileConnecting, RequesterDiesAndTheListenerLearnsItFirst) {
    Host host;
    Nic nic;
    End end(nic);
    VIP_CONN_HANDLE connection = nullptr;
    {
        Child child("requester");
        child.expect("ready");
        connection = end.wait_request(door);
        // The same process has a connected VI, too, so that we are told when it dies.
        End witness(nic);
        Child other("requester");
        other.expect("ready");
        witness.accept(door);
        other.expect("SUCCESS");
        child.kill();
        other.kill();
        nic.wait_error(witness.vi(), VIP_ERROR_CONN_LOST);
        nic.forget_errors();
    }
    // Our NIC heard of both deaths, or will in a moment: only TIMEOUT and a lost connection are
    // right, and TIMEOUT it must be in the end.
    VIP_RETURN code = VipConnectAccept(connection, end.vi());
    if (code == VIP_SUCCESS) {
        expect_lost(end);
    } else {
        EXPECT_STREQ(name_of(code), "TIMEOUT");
        EXPECT_STREQ(name_of(VipConnectReject(connection)), "SUCCESS") << "the handle stayed";
    }
    EXPECT_STREQ(name_of(VipConnectAccept(connection, end.vi())), "INVALID_PARAMETER")
        << "the connection handle is used up";
    expect_usable(nic);
}

TEST(DeathWhileConnecting, ListenerDiesBeforeItAnswers) {
    Host host;
    Nic nic;
    End end(nic);
    Child child("listener");
    child.expect("ready");
    VIP_RETURN code = VIP_NO_MATCH;
    double returned = 0;
    std::thread request([&] {
        while (code == VIP_NO_MATCH) code = end.request(door, VIP_INFINITE);
        returned = now_ms();
    });
    child.expect("asked");
    const double killed = now_ms();
    child.kill();
    request.join();
    EXPECT_STREQ(name_of(code), "NOT_REACHABLE");
    EXPECT_LE(returned - killed, death_noticed_max_ms);
    std::printf("noticed after %.2f ms\n", returned - killed);
    EXPECT_EQ(end.state(), VIP_STATE_IDLE);
    EXPECT_FALSE(end.receive_queue_empty()) << "the receives stay posted";
    EXPECT_STREQ(name_of(end.request(door, watchdog_ms)), "NO_MATCH") << "nobody listens now";
    end.disconnect();
    expect_usable(nic);
}

TEST(DeathWhileConnecting, ListenerDiesInsideConnectWaitAndItsNameIsFree) {
    Host host;
    Nic nic;
    End end(nic);
    {
        Child child("listener");
        child.expect("ready");
        // It listens once its name is there.
        until("the listener's name is in the directory", [&] {
            for (const std::string& entry : host.entries())
                if (entry.find("/d-") != entry.npos) return true;
            return false;
        });
        child.kill();
    }
    const double start = now_ms();
    EXPECT_STREQ(name_of(end.request(door, watchdog_ms)), "NO_MATCH");
    EXPECT_LE(now_ms() - start, death_noticed_max_ms) << "promptly (VIPL 4.20)";
    end.disconnect();
    expect_usable(nic);  // we listen to the dead one's discriminator ourselves
    nic.close();
    host.reclaim();
    EXPECT_EQ(host.met(), "");
}

TEST(DeathWhileConnecting, RequesterDiesAfterItWasAccepted) {
    Host host;
    Nic nic;
    End end(nic);
    Child child("requester");
    child.expect("ready");
    end.accept(door);
    child.expect("SUCCESS");
    const double killed = now_ms();
    child.kill();
    expect_lost(end);
    std::printf("noticed after %.2f ms\n", now_ms() - killed);
    EXPECT_LE(now_ms() - killed, death_noticed_max_ms);
    expect_usable(nic);
}

TEST(DeathWhileConnecting, ListenerDiesAfterItAccepted) {
    Host host;
    Nic nic;
    End end(nic);
    Child child("listener");
    child.expect("ready");
    std::thread request([&] { end.connect(door); });
    child.expect("asked");
    child.say("accept");
    child.expect("accepted");
    request.join();
    const double killed = now_ms();
    child.kill();
    expect_lost(end);
    std::printf("noticed after %.2f ms\n", now_ms() - killed);
    EXPECT_LE(now_ms() - killed, death_noticed_max_ms);
    expect_usable(nic);
}

TEST(DeathWhileConnecting, OneProcessOfManyDiesAndTheOthersStay) {
    Host host;
    Nic nic;
    constexpr unsigned peers = 6;
    std::vector<std::unique_ptr<End>> ends;
    std::vector<std::unique_ptr<Child>> children;
    for (unsigned peer = 0; peer < peers; ++peer) {
        ends.push_back(std::make_unique<End>(nic));
        children.push_back(std::make_unique<Child>("requester"));
        children.back()->expect("ready");
        ends.back()->accept(door);
        children.back()->expect("SUCCESS");
    }
    for (unsigned peer = 0; peer < peers; peer += 2) {
        children[peer]->kill();
        expect_lost(*ends[peer]);
    }
    for (unsigned peer = 1; peer < peers; peer += 2) {
        children[peer]->say("send");
        children[peer]->expect("sent");
        const auto outcome = ends[peer]->wait_received(watchdog_ms);
        ASSERT_TRUE(outcome && outcome->ok());
        EXPECT_TRUE(holds(ends[peer]->receive_buffer(outcome->slot), 64, 7));
    }
    EXPECT_EQ(nic.errors(), 0U) << nic.error_text();
}

}  // namespace

}  // namespace system_test::death_connecting_test
