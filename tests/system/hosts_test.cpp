// Processes under two host names on one machine: they find each other by name and by address, and
// know who the other is (VIPL 1.8, 4.1, 4.5, 4.19, 4.20).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::hosts_test {

namespace {

std::string host_of(Address address) {
    return {reinterpret_cast<const char*>(address.get()->HostAddress),
            address.get()->HostAddressLen};
}

/// The address of `host`, with a discriminator.
Address find(Nic& nic, std::string host, const std::string& discriminator) {
    Address address;
    OK(VipNSInit(nic.handle(), nullptr));
    OK(VipNSGetHostByName(nic.handle(), host.data(), address.get(), 0));
    VIP_NET_ADDRESS& to = *address.get();
    VIP_UINT8* bytes = to.HostAddress;
    std::memcpy(bytes + to.HostAddressLen, discriminator.data(), discriminator.size());
    to.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    return address;
}

/// How many NICs there are at the address of `host`, as autodiscovery sees it.
std::size_t discovered(Nic& nic, const Address& host) {
    Address rooms[16];
    VIP_NET_ADDRESS* addresses[16];
    for (std::size_t n = 0; n < 16; ++n) addresses[n] = rooms[n].get();
    VIP_AUTODISCOVERY_LIST list{1, addresses, 16};
    OK(VipQuerySystemManagementInfo(nic.handle(), VIP_SMI_AUTODISCOVERY, &list));
    std::size_t count = 0;
    for (std::size_t n = 0; n < list.NumAdAddrs; ++n) count += host_of(rooms[n]) == host_of(host);
    return count;
}

VIP_RETURN ask(Nic& nic, End& end, Address remote) {
    Address local = nic.address("asking");
    VIP_VI_ATTRIBUTES theirs{};
    return VipConnectRequest(end.vi(), local.get(), remote.get(), watchdog_ms, &theirs);
}

/// Listens on the NIC called by its first argument, tells who asked, sends a message.
void be_server(Parent& parent) {
    Nic nic(parent.argument(0).c_str());
    End end(nic);
    parent.say("open");
    parent.expect("listen");
    Address local = nic.address("door");
    Address remote;
    VIP_VI_ATTRIBUTES theirs{};
    VIP_CONN_HANDLE connection = nullptr;
    parent.say("listening");
    OK(VipConnectWait(nic.handle(), local.get(), watchdog_ms, remote.get(), &theirs, &connection));
    OK(VipConnectAccept(connection, end.vi()));
    parent.say(host_of(remote));
    fill(end.send_buffer(0), 64, 3);
    end.post_send(0, 64);
    require(end.wait_sent(watchdog_ms)->ok(), "the send succeeds");
    parent.expect("end");
}
const Role server_role("host server", be_server);

/// Asks for a host that nobody is, here. No other test has that name: who is named with NO_MATCH
/// may be anybody's.
void be_stranger(Parent& parent) {
    Nic nic("shm:left");
    End end(nic);
    parent.say(name_of(ask(nic, end, find(nic, "shm:apart", "door"))));
    Address address;
    char apart[] = "apart";
    parent.say(VipNSGetHostByName(nic.handle(), apart, address.get(), 0) == VIP_SUCCESS
                   ? "name known"
                   : "name unknown");
    parent.expect("end");
}
const Role stranger_role("host stranger", be_stranger);

void expect_served(Nic& nic, End& end, const Address& remote, Child& server) {
    VIP_RETURN code = VIP_NO_MATCH;
    until("somebody listens", [&] {
        code = ask(nic, end, remote);
        return code != VIP_NO_MATCH;
    });
    ASSERT_STREQ(name_of(code), "SUCCESS");
    EXPECT_EQ(server.hear(), host_of(nic.address(""))) << "it knows who asked";
    const auto outcome = end.wait_received(watchdog_ms);
    ASSERT_TRUE(outcome && outcome->ok());
    EXPECT_TRUE(holds(end.receive_buffer(outcome->slot), 64, 3));
}

TEST(Hosts, FindEachOtherByNameAndKnowWhoAsks) {
    Host host;
    Child server("host server", {.arguments = {"shm:right"}});
    server.expect("open");
    Nic nic("shm:left");
    End end(nic);
    const Address right = find(nic, "right", "door");
    EXPECT_EQ(host_of(right), host_of(find(nic, "shm:right", "door")));
    EXPECT_NE(host_of(right), host_of(nic.address("")));
    EXPECT_EQ(discovered(nic, right), 1U);
    EXPECT_STREQ(name_of(ask(nic, end, right)), "NO_MATCH") << "nobody listens yet";
    server.say("listen");
    server.expect("listening");
    expect_served(nic, end, right, server);
    // It dies: its host is still known, but nobody is there.
    server.kill();
    nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    nic.forget_errors();
    EXPECT_EQ(discovered(nic, right), 0U);
    EXPECT_EQ(discovered(nic, nic.address("")), 1U);
    end.disconnect();
    end.drain();
    EXPECT_STREQ(name_of(ask(nic, end, right)), "NO_MATCH");
    EXPECT_STREQ(name_of(ask(nic, end, find(nic, "shm:nobody", "door"))), "NO_MATCH");
}

/// As a server of cron's, or one with PrivateTmp: nobody meets it, and somebody says why.
TEST(Hosts, WhoIsInAnotherPlaceIsNamedWithNoMatch) {
    Host ours;
    const std::string log_path = ours.path() + "/log";
    const std::string elsewhere = ours.path() + "/elsewhere";
    require_call(mkdir(elsewhere.c_str(), 0700) == 0, "mkdir");
    Child server("host server",
                 {.arguments = {"shm:apart"}, .environment = {"XDG_RUNTIME_DIR=" + elsewhere}});
    server.expect("open");
    Child client("host stranger", {.environment = {"OPENVIA_LOG=" + log_path}});
    client.expect("NO_MATCH");
    client.expect("name unknown");
    const std::string log = read_file(log_path);
    EXPECT_NE(log.find("nobody was found at 127."), std::string::npos) << log;
    EXPECT_NE(log.find(elsewhere + "/openvia: give all"), std::string::npos) << log;
    EXPECT_EQ(log.find("nobody was found"), log.rfind("nobody was found")) << "once: " << log;
    client.say("end");
    server.kill();
}

TEST(Hosts, OldNamesAndAHostsFileLeadToTheSame) {
    Host host;
    Child server("host server", {.arguments = {"/dev/via7"},
                                 .environment = {"OPENVIA_NICS=/dev/via7 = shm:right"}});
    server.expect("open");
    server.say("listen");
    server.expect("listening");
    setenv("OPENVIA_HOSTS", "node7 = shm:right", 1);
    Nic nic("shm:left");
    unsetenv("OPENVIA_HOSTS");
    End end(nic);
    expect_served(nic, end, find(nic, "node7", "door"), server);
    server.say("end");
    server.join();
    nic.wait_error(end.vi(), VIP_ERROR_CONN_LOST);
    nic.forget_errors();
}

/// How a process ends up that opens `name`.
std::string opened(const std::string& name) {
    VIP_NIC_HANDLE nic = nullptr;
    const VIP_RETURN code = VipOpenNic(name.c_str(), &nic);
    if (code == VIP_SUCCESS) OK(VipCloseNic(nic));
    return name_of(code);
}

TEST(Hosts, TwoNamesWithOneAddressAreNotTakenForEachOther) {
    Host host;
    // Found by search: their hashes agree.
    EXPECT_EQ(opened("shm:host9670"), "SUCCESS");
    EXPECT_EQ(opened("shm:host13929"), "ERROR_RESOURCE");
    EXPECT_EQ(opened("shm:host9670"), "SUCCESS") << "the first one has it";
}

}  // namespace

}  // namespace system_test::hosts_test
