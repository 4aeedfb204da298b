// One NIC over shared memory and the network: which of them a connection takes, and that both are
// one NIC to the program. A segment can be imported over shared memory only: that shows the way.
#include <gtest/gtest.h>
#include <unistd.h>
#include <via/via.h>

#include <algorithm>
#include <cstring>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/networks.hpp"
#include "support/vipl.hpp"

namespace system_test::auto_test {

namespace {

constexpr std::size_t segment_bytes = 4096;

/// What a server tells of its segment.
struct Page {
    std::uint64_t address;
    VIP_MEM_HANDLE handle;
};

/// Arguments: NIC, discriminator, and a network to enter if it is in one. Has a segment, accepts,
/// answers each message with the same one, until it is told to end.
void be_server(Parent& parent) {
    if (parent.arguments() > 2) enter_network(parent.argument(2));
    Nic nic(parent.argument(0).c_str());
    VIP_MEM_ATTRIBUTES rights{};
    rights.EnableRdmaRead = rights.EnableRdmaWrite = VIP_TRUE;
    VIP_PVOID segment = nullptr;
    Page page{};
    OK(ViaCreateSegment(nic.handle(), segment_bytes, &rights, &segment, &page.handle));
    fill(static_cast<std::byte*>(segment), segment_bytes, 7);
    page.address = reinterpret_cast<std::uint64_t>(segment);
    parent.shared<Page>() = page;
    {
        End end(nic);
        parent.say("ready");
        end.accept(parent.argument(1));
        const auto outcome = end.wait_received(watchdog_ms);
        require(outcome && outcome->ok(), "a message arrives");
        std::memcpy(end.send_buffer(0), end.receive_buffer(outcome->slot), 64);
        end.post_send(0, 64);
        require(end.wait_sent(watchdog_ms)->ok(), "the answer is sent");
        parent.expect("end");
    }
    OK(ViaDestroySegment(nic.handle(), segment));
}
const Role server_role("auto server", be_server);

/// A server, and a connection to it, asked for while it begins to listen.
class Connection {
public:
    /// `host`: the server's, as the name service knows it; empty: ours.
    Connection(Nic& nic, const Child::Options& options, const std::string& host = "",
               VIP_CQ_HANDLE queue = nullptr)
        : nic_(nic), server_("auto server", options), end_(nic, {.queue = queue}) {
        server_.expect("ready");
        if (!host.empty()) nic_.turn_to(host);
        end_.connect(options.arguments[1]);
    }
    End& end() { return end_; }
    void send(std::uint64_t number) {
        fill(end_.send_buffer(0), 64, number);
        end_.post_send(0, 64);
    }
    /// SUCCESS: the segment is here, with its bytes, and was let go again.
    VIP_RETURN import() {
        const Page& page = server_.shared<Page>();
        VIP_PVOID address = nullptr;
        VIP_ULONG length = 0;
        const VIP_RETURN code = ViaImportSegment(end_.vi(), page.address, page.handle, VIP_FALSE,
                                                 watchdog_ms, &address, &length);
        if (code != VIP_SUCCESS) return code;
        EXPECT_TRUE(holds(static_cast<const std::byte*>(address), segment_bytes, 7));
        OK(ViaReleaseSegment(nic_.handle(), address));
        return code;
    }
    void exchange(std::uint64_t number) {
        send(number);
        ASSERT_TRUE(end_.wait_sent(watchdog_ms)->ok());
        const auto outcome = end_.wait_received(watchdog_ms);
        ASSERT_TRUE(outcome && outcome->ok());
        EXPECT_TRUE(holds(end_.receive_buffer(outcome->slot), 64, number));
    }
    void leave() {
        server_.say("end");
        server_.join();
    }

private:
    Nic& nic_;
    Child server_;
    End end_;
};

TEST(Auto, TwoProcessesOfOneHostShareMemory) {
    Host host;
    const std::string name = "auto:" + own_loopback_address();
    Nic nic(name.c_str());
    Connection connection(nic, {.arguments = {name, "door"}});
    connection.exchange(1);
    EXPECT_STREQ(name_of(connection.import()), "SUCCESS");
    connection.leave();
}

TEST(Auto, WhoeverOpenedOnlyTheNetworkIsReachedOverIt) {
    Host host;
    Nic nic(("auto:" + own_loopback_address()).c_str());
    Connection connection(nic, {.arguments = {"udp:" + own_loopback_address(), "door"}});
    connection.exchange(1);
    EXPECT_STREQ(name_of(connection.import()), "ERROR_NOT_SUPPORTED");
    connection.leave();
}

TEST(Auto, IsReachedByWhoeverOpenedOnlyTheNetwork) {
    Host host;
    Nic nic(("udp:" + own_loopback_address()).c_str());
    Connection connection(nic, {.arguments = {"auto:" + own_loopback_address(), "door"}});
    connection.exchange(1);
    EXPECT_STREQ(name_of(connection.import()), "ERROR_NOT_SUPPORTED");
    connection.leave();
}

TEST(Auto, BothWaysEndInOneCompletionQueue) {
    Host host;
    Nic nic(("auto:" + own_loopback_address()).c_str());
    VIP_CQ_HANDLE queue = nullptr;
    OK(VipCreateCQ(nic.handle(), 64, &queue));
    {
        Connection near(nic, {.arguments = {"auto:" + own_loopback_address(), "near"}}, "", queue);
        Connection far(nic, {.arguments = {"udp:" + own_loopback_address(), "far"}}, "", queue);
        EXPECT_STREQ(name_of(near.import()), "SUCCESS");
        EXPECT_STREQ(name_of(far.import()), "ERROR_NOT_SUPPORTED");
        near.send(1);
        far.send(2);
        int sent = 0;
        for (int answers = 0; answers < 2;) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN is_receive = VIP_FALSE;
            OK(VipCQWait(queue, watchdog_ms, &vi, &is_receive));
            Connection& connection = vi == near.end().vi() ? near : far;
            if (is_receive == VIP_FALSE) {
                ASSERT_TRUE(connection.end().sent()->ok());
                ++sent;
                continue;
            }
            const auto outcome = connection.end().received();
            ASSERT_TRUE(outcome && outcome->ok());
            EXPECT_TRUE(holds(connection.end().receive_buffer(outcome->slot), 64,
                              &connection == &near ? 1 : 2));
            ++answers;
        }
        for (; sent < 2; ++sent) {
            VIP_VI_HANDLE vi = nullptr;
            VIP_BOOLEAN is_receive = VIP_TRUE;
            OK(VipCQWait(queue, watchdog_ms, &vi, &is_receive));
            ASSERT_EQ(is_receive, VIP_FALSE);
            ASSERT_TRUE((vi == near.end().vi() ? near : far).end().sent()->ok());
        }
        near.leave();
        far.leave();
    }
    OK(VipDestroyCQ(queue));
}

constexpr int rounds = 100;

/// Arguments: NIC, discriminator. Answers each message after a while, so that who waits sleeps.
void be_patient(Parent& parent) {
    Nic nic(parent.argument(0).c_str());
    End end(nic);
    parent.say("ready");
    end.accept(parent.argument(1));
    for (int round = 0; round < rounds; ++round) {
        const auto outcome = end.wait_received(watchdog_ms);
        require(outcome && outcome->ok(), "a message arrives");
        end.post_receive(outcome->slot);
        usleep(2000);
        end.post_send(0, 64);
        require(end.wait_sent(watchdog_ms)->ok(), "the answer is sent");
    }
    parent.expect("end");
}
const Role patient_role("auto patient", be_patient);

/// Turns that the progress thread took while a call waited for one answer after the other.
VIP_UINT64 turns_of_others(const std::string& mine, const std::string& theirs) {
    Nic nic(mine.c_str());
    Child server("auto patient", {.arguments = {theirs, "patient"}});
    server.expect("ready");
    End end(nic);
    end.connect("patient");
    VIP_UINT64 before = 0, after = 0;
    for (int round = 0; round < rounds; ++round) {
        if (round == 1) OK(ViaReadCounter(nic.handle(), "agent_turns", &before));
        end.post_send(0, 64);
        OK(ViaReadCounter(nic.handle(), "agent_turns", &after));
        require(end.wait_sent(watchdog_ms)->ok(), "the message is sent");
        const auto outcome = end.wait_received(watchdog_ms);
        require(outcome && outcome->ok(), "the answer arrives");
        end.post_receive(outcome->slot);
    }
    server.say("end");
    server.join();
    return after - before;
}

/// The least of several tries: where processors are few, the progress thread has its turns while
/// the caller has none and does not wait.
VIP_UINT64 least_turns_of_others(const std::string& mine, const std::string& theirs) {
    VIP_UINT64 least = turns_of_others(mine, theirs);
    for (int tries = 1; tries < 20 && least >= rounds / 2; ++tries)
        least = std::min(least, turns_of_others(mine, theirs));
    return least;
}

TEST(Auto, WhoWaitsIsWokenItself) {
    Host host;
    const std::string both = "auto:" + own_loopback_address(),
                      network = "udp:" + own_loopback_address();
    EXPECT_LT(least_turns_of_others(both, both), rounds / 2) << "over shared memory";
    EXPECT_LT(least_turns_of_others(both, network), rounds / 2) << "over the network";
    EXPECT_LT(least_turns_of_others(network, network), rounds / 2) << "as on a NIC of one device";
}

TEST(Auto, WithoutAPlaceItTakesTheConfiguredNetwork) {
    Host host;
    setenv("OPENVIA_NICS", ("network = udp:" + own_loopback_address()).c_str(), 1);
    {
        Nic nic("auto");
        Connection connection(nic, {.arguments = {"udp:" + own_loopback_address(), "door"}});
        connection.exchange(1);
        connection.leave();
    }
    unsetenv("OPENVIA_NICS");
}

TEST(Auto, AnEmptyPlaceIsRefused) {
    Host host;
    for (const char* name : {"auto:", "auto:,silence=1000"}) {
        VIP_NIC_HANDLE nic = nullptr;
        EXPECT_STREQ(name_of(VipOpenNic(name, &nic)), "INVALID_PARAMETER") << name;
    }
}

TEST(Auto, WithoutANetworkItIsSharedMemoryAlone) {
    Host host;
    setenv("OPENVIA_NICS", "network = shm:elsewhere", 1);  // that is none
    {
        Nic nic("auto");
        Connection connection(nic, {.arguments = {"shm", "door"}});
        connection.exchange(1);
        EXPECT_STREQ(name_of(connection.import()), "SUCCESS");
        connection.leave();
    }
    unsetenv("OPENVIA_NICS");
}

/// Arguments: network, NIC, discriminator, host. A client on another host than the test's.
void be_client(Parent& parent) {
    enter_network(parent.argument(0));
    Nic nic(parent.argument(1).c_str());
    Connection connection(
        nic, {.arguments = {parent.argument(1), parent.argument(2), parent.argument(4)}},
        parent.argument(3));
    connection.exchange(1);
    parent.say(name_of(connection.import()));
    connection.leave();
}
const Role client_role("auto client", be_client);

TEST(Auto, AnotherHostIsReachedOverTheNetwork) {
    Host host;
    Networks networks;
    if (!networks.why_not().empty()) GTEST_SKIP() << networks.why_not();
    Child client("auto client", {.arguments = {networks.name(0), "auto:via0", "door",
                                               Networks::address(1), networks.name(1)}});
    client.expect("ERROR_NOT_SUPPORTED");
    client.join();
}

}  // namespace

}  // namespace system_test::auto_test
