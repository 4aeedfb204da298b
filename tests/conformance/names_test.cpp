// Names that users write down, hosts that find each other by address, autodiscovery (VIPL 1.8, 4.1,
// 4.5, 4.19, 4.20, 4.22).
#include <stdlib.h>

#include <cstring>
#include <optional>

#include "harness/end.hpp"

namespace conformance::names_test {
namespace {

/// Sets a variable of the environment until it goes. In a test with this there is one role.
class Variable {
public:
    Variable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = getenv(name)) before_ = before;
        setenv(name, value.c_str(), 1);
    }
    ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
    Variable(const Variable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

/// The names of the variables alone: whoever runs the tests may have files.
struct NoUserFiles {
    Variable directory{"XDG_CONFIG_HOME", "/nonexistent"};
};

VIP_RETURN open_and_close(const std::string& name, std::string* real_name = nullptr) {
    VIP_NIC_HANDLE nic = nullptr;
    const VIP_RETURN code = VipOpenNic(name.c_str(), &nic);
    if (code != VIP_SUCCESS) return code;
    VIP_NIC_ATTRIBUTES attributes;
    OK(VipQueryNic(nic, &attributes));
    if (real_name != nullptr) *real_name = attributes.Name;
    OK(VipCloseNic(nic));
    return code;
}

// NICs --------------------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_1_old_names_lead_to_the_nics_that_were_configured, nothing) {
    test.role("only", [](Role& me) {
        const NoUserFiles none;
        const std::string own = me.device_name();
        const Variable names("OPENVIA_NICS", "/dev/old0 = " + own + "; nonsense ; OLD1=" + own);
        std::string real_name;
        EXPECT_EQ(VIP_SUCCESS, open_and_close("/dev/old0", &real_name));
        EXPECT_EQ(own, real_name);
        EXPECT_EQ(VIP_SUCCESS, open_and_close("OLD1"));
        EXPECT_EQ(VIP_INVALID_PARAMETER, open_and_close("OLD2")) << "past the last";
        EXPECT_EQ(VIP_INVALID_PARAMETER, open_and_close("old1")) << "another name";
        EXPECT_EQ(VIP_INVALID_PARAMETER, open_and_close("nonsense"));
    });
}

VIPL_TEST(Vipl_4_1_a_nics_own_name_cannot_be_given_away, nothing) {
    test.role("only", [](Role& me) {
        const NoUserFiles none;
        const std::string own = me.device_name();
        const Variable names("OPENVIA_NICS", own + " = udp:nowhere");
        std::string real_name;
        EXPECT_EQ(VIP_SUCCESS, open_and_close(own, &real_name));
        EXPECT_EQ(own, real_name);
    });
}

VIPL_TEST(Vipl_4_1_names_that_lead_nowhere_fail, nothing) {
    test.role("only", [](Role&) {
        const NoUserFiles none;
        const Variable names("OPENVIA_NICS",
                             "a=udp:nowhere; b=shm:../x; c=loopback:; d=sim; e=e; f=nic0");
        for (const char* name : {"a", "b", "c", "d", "e", "f"})
            EXPECT_EQ(VIP_INVALID_PARAMETER, open_and_close(name)) << name;
    });
}

VIPL_TEST(Vipl_4_1_a_strangers_program_finds_nic_number_0, configured) {
    test.role("only", [](Role&) {
        const NoUserFiles none;
        const Variable names("OPENVIA_NICS", "");
        for (const char* name : {"nic0", "VINIC", "/dev/via0", "/dev/via_eth0", "/dev/clanvi0"}) {
            std::string real_name;
            EXPECT_EQ(VIP_SUCCESS, open_and_close(name, &real_name)) << name;
            EXPECT_EQ("shm", real_name);
        }
        for (const char* name : {"nic1", "VINIC1", "/dev/via1", "/dev/via_eth1", "/dev/clanvi1"})
            EXPECT_EQ(VIP_INVALID_PARAMETER, open_and_close(name)) << name;
    });
}

// Name service ------------------------------------------------------------------------------------

/// What the name service says to a name: the host's bytes, or the error's name.
std::string answer_for(Nic& nic, std::string name, VIP_ULONG index = 0) {
    AddressRoom<4 + 6> room;
    room.net()->HostAddressLen = 0xFFFF;  // does not count
    room.net()->DiscriminatorLen = 7;     // stays
    const VIP_RETURN code = VipNSGetHostByName(nic.handle(), name.data(), room.net(), index);
    EXPECT_TRUE(room.intact_beyond(code == VIP_SUCCESS ? 4 + 6 : 4)) << name;
    EXPECT_EQ(7, room.net()->DiscriminatorLen);
    if (code != VIP_SUCCESS) return name_of(code);
    EXPECT_EQ(6, room.net()->HostAddressLen);
    return std::string(room.host());
}

VIPL_TEST(Vipl_4_5_hosts_that_were_written_down_are_found, configured) {
    test.role("only", [](Role& me) {
        const NoUserFiles none;
        const Variable names("OPENVIA_HOSTS",
                             "node1 = 10.0.0.1, [fe80::1], 10.0.0.2:258; nonsense; node2=10.0.0.3");
        Nic nic(me.device_name());
        OK(VipNSInit(nic.handle(), nullptr));
        EXPECT_EQ(std::string("\x0A\0\0\x01\x26\x0D", 6), answer_for(nic, "node1"));
        EXPECT_EQ(std::string("\x0A\0\0\x02\x01\x02", 6), answer_for(nic, "NODE1", 1))
            << "an address that this NIC has no room for is passed over";
        EXPECT_EQ("VIP_ERROR_NAMESERVICE", answer_for(nic, "node1", 2));
        EXPECT_EQ(std::string("\x0A\0\0\x03\x26\x0D", 6), answer_for(nic, "node2"));
        char name[16];
        VIP_ULONG length = sizeof name;
        Address address({"\x0A\0\0\x02\x01\x02", 6}, "whatever");
        OK(VipNSGetHostByAddr(nic.handle(), address.net(), name, &length));
        EXPECT_STREQ("node1", name);
        EXPECT_EQ(6U, length);
        OK(VipNSShutdown(nic.handle()));
    });
}

VIPL_TEST(Vipl_4_5_the_hosts_file_comes_before_the_own_host, configured) {
    test.role("only", [](Role& me) {
        const NoUserFiles none;
        const Variable names("OPENVIA_HOSTS", "localhost = 10.0.0.1");
        Nic nic(me.device_name());
        EXPECT_EQ(std::string("\x0A\0\0\x01\x26\x0D", 6), answer_for(nic, "localhost"));
    });
}

VIPL_TEST(Vipl_4_5_hosts_find_each_other_by_name, own_nics) {
    test.role("server", [](Role& me) {
        me.move_to_own_host();
        me.tell("client", me.nic().address(""));
        me.meet();
    });
    test.role("client", [](Role& me) {
        me.move_to_own_host();
        const std::string own = me.device_name();
        if (own.find(':') == own.npos) return me.meet();  // a medium with one host
        const auto server = me.hear<Address>("server");
        std::string name(256, '\0');
        VIP_ULONG length = name.size();
        OK(VipNSGetHostByAddr(me.nic().handle(), Address(server).net(), name.data(), &length));
        name.resize(length - 1);
        EXPECT_NE(own.substr(own.find(':') + 1), name);
        EXPECT_EQ(server.host(), answer_for(me.nic(), name));
        me.meet();
    });
}

// Hosts -------------------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_19_a_requester_on_another_host_is_known_by_its_address, own_nics) {
    test.role("server", [](Role& me) {
        me.move_to_own_host();
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(8192));
        Address local = me.nic().address(me.discriminator("server"));
        me.tell("client", local);
        const auto client = me.hear<Address>("client");
        EXPECT_NE(local.host(), client.host()) << "two hosts";
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        EXPECT_EQ(client.host(), remote.host());
        EXPECT_EQ(client.discriminator(), remote.discriminator());
        OK(VipConnectAccept(connection, end.vi()));
        EXPECT_EQ(posted, end.received());
        EXPECT_EQ(8000U, posted->CS.Length);
        end.send(end.filled(100, 2));
        end.sent();
        me.meet();
    });
    test.role("client", [](Role& me) {
        me.move_to_own_host();
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(100));
        const auto server = me.hear<Address>("server");
        const Address own = me.nic().address("client");
        me.tell("server", own);
        VIP_VI_ATTRIBUTES attributes;
        OK(request(me, end.vi(), own, server, &attributes));
        end.send(end.filled(8000, 1));
        end.sent();
        EXPECT_EQ(posted, end.received());
        me.meet();
    });
}

VIPL_TEST(Vipl_4_20_host_and_listener_are_told_apart, own_nics) {
    test.role("server", [](Role& me) {
        me.move_to_own_host();
        me.tell("client", me.nic().address(me.discriminator("nobody-listens")));
        me.meet();
    });
    test.role("client", [](Role& me) {
        me.move_to_own_host();
        End end(me);
        Address own = me.nic().address("client");
        auto server = me.hear<Address>("server");
        VIP_VI_ATTRIBUTES attributes;
        EXPECT_EQ(VIP_NO_MATCH,
                  VipConnectRequest(end.vi(), own.net(), server.net(), patience_ms, &attributes));
        server.net()->HostAddress[1] ^= 0x80;
        server.net()->HostAddress[2] ^= 0x55;
        // Where that is this machine, it is there, and its NIC may yet be opened.
        const VIP_RETURN code =
            VipConnectRequest(end.vi(), own.net(), server.net(), patience_ms, &attributes);
        const bool here = server.host()[0] == 127;
        EXPECT_EQ(here ? VIP_NO_MATCH : VIP_NOT_REACHABLE, code);
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
        me.meet();
    });
}

VIPL_TEST(Vipl_4_22_peers_on_two_hosts_meet, own_nics) {
    const auto act = [](Role& me, const char* other) {
        me.move_to_own_host();
        End end(me);
        Address local = me.nic().address(me.discriminator("same"));
        me.tell(other, local);
        auto remote = me.hear<Address>(other);
        OK(VipConnectPeerRequest(end.vi(), local.net(), remote.net(), patience_ms));
        VIP_VI_ATTRIBUTES theirs;
        OK(VipConnectPeerWait(end.vi(), &theirs));
        EXPECT_EQ(VIP_STATE_CONNECTED, end.state());
        me.meet();
    };
    test.role("left", [act](Role& me) { act(me, "right"); });
    test.role("right", [act](Role& me) { act(me, "left"); });
}

// Autodiscovery -----------------------------------------------------------------------------------

/// Everything that can be found, at most 64.
std::vector<std::string> discovered(Nic& nic) {
    std::vector<AddressRoom<4 + 6>> rooms(64);
    std::vector<VIP_NET_ADDRESS*> addresses;
    for (auto& room : rooms) addresses.push_back(room.net());
    VIP_AUTODISCOVERY_LIST list{1, addresses.data(), addresses.size()};
    OK(VipQuerySystemManagementInfo(nic.handle(), VIP_SMI_AUTODISCOVERY, &list));
    std::vector<std::string> hosts;
    for (std::size_t n = 0; n < rooms.size(); ++n) {
        EXPECT_TRUE(rooms[n].intact_beyond(n < list.NumAdAddrs ? 4 + 6 : 0));
        if (n < list.NumAdAddrs) hosts.emplace_back(rooms[n].host());
    }
    return hosts;
}

std::size_t count(const std::vector<std::string>& hosts, const Address& address) {
    std::size_t times = 0;
    for (const std::string& host : hosts) times += host == address.host();
    return times;
}

VIPL_TEST(Vipl_1_8_autodiscovery_finds_the_nics_that_are_there, own_nics) {
    test.role("other", [](Role& me) {
        me.move_to_own_host();
        me.tell("looking", me.nic().address(""));
        me.meet();
    });
    test.role("looking", [](Role& me) {
        me.move_to_own_host();
        const auto other = me.hear<Address>("other");
        const std::vector<std::string> hosts = discovered(me.nic());
        EXPECT_EQ(1U, count(hosts, other));
        EXPECT_EQ(1U, count(hosts, me.nic().address("")));
        me.meet();
    });
}

VIPL_TEST(Vipl_1_8_autodiscovery_fills_no_more_than_the_buffers_it_has, nothing) {
    test.role("only", [](Role& me) {
        Nic& nic = me.nic();
        EXPECT_EQ(1U, count(discovered(nic), nic.address("")));
        AddressRoom<4 + 6> rooms[2];
        VIP_NET_ADDRESS* addresses[2] = {rooms[0].net(), rooms[1].net()};
        VIP_AUTODISCOVERY_LIST list{0, addresses, 1};
        OK(VipQuerySystemManagementInfo(nic.handle(), VIP_SMI_AUTODISCOVERY, &list));
        EXPECT_EQ(1U, list.NumAdAddrs);
        EXPECT_EQ(0, rooms[0].net()->DiscriminatorLen);
        EXPECT_TRUE(rooms[0].intact_beyond(4 + 6) && rooms[1].intact_beyond(0));
        list.NumAdAddrs = 0;
        list.ADAddrArray = nullptr;
        OK(VipQuerySystemManagementInfo(nic.handle(), VIP_SMI_AUTODISCOVERY, &list));
        EXPECT_EQ(0U, list.NumAdAddrs);
    });
}

VIPL_TEST(Vipl_1_8_autodiscovery_without_buffers_is_refused, nothing) {
    test.role("only", [](Role& me) {
        VIP_NET_ADDRESS* addresses[1] = {nullptr};
        VIP_AUTODISCOVERY_LIST list{1, nullptr, 1};
        for (VIP_NET_ADDRESS** array : {static_cast<VIP_NET_ADDRESS**>(nullptr), addresses}) {
            list.ADAddrArray = array;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(
                                                 me.nic().handle(), VIP_SMI_AUTODISCOVERY, &list));
            EXPECT_EQ(1U, list.NumAdAddrs);
        }
    });
}

}  // namespace
}  // namespace conformance::names_test
