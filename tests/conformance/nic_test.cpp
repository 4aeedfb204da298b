// NICs, their attributes, the name service (VIPL 1.9, 4.1, 4.2, 4.5).
#include <atomic>
#include <cstring>

#include "harness/end.hpp"
#include "harness/stage.hpp"

namespace conformance::nic_test {
namespace {

/// The first word of the NIC's name.
std::string medium_of(Role& me) {
    const std::string name = me.device_name();
    return name.substr(0, name.find(':'));
}

VIPL_TEST(Vipl_1_9_nic_reports_at_least_what_is_promised, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_ATTRIBUTES& nic = me.nic().attributes();
        EXPECT_EQ(6, nic.NicAddressLen);
        EXPECT_NE(nullptr, nic.LocalNicAddress);
        EXPECT_EQ(VIP_TRUE, nic.ThreadSafe);
        EXPECT_GE(nic.MaxDiscriminatorLen, 64);
        EXPECT_GE(nic.MaxSegmentsPerDesc, 252U);
        EXPECT_GE(nic.MaxDescriptorsPerQueue, 1024U);
        EXPECT_GE(nic.MaxCQEntries, 65536U);
        EXPECT_GE(nic.MaxTransferSize, 1U << 20);
        EXPECT_EQ(7, nic.ReliabilityLevelSupport);
        EXPECT_EQ(6, nic.RDMAReadSupport);
        EXPECT_NE(nullptr, std::memchr(nic.Name, '\0', sizeof nic.Name));
        EXPECT_NE('\0', nic.Name[0]);
    });
}

VIPL_TEST(Vipl_1_9_reported_values_fit_into_an_int, nothing) {
    test.role("only", [](Role& me) {
        const VIP_NIC_ATTRIBUTES& nic = me.nic().attributes();
        for (const VIP_ULONG value :
             {nic.MaxRegisterBytes, nic.MaxRegisterRegions, nic.MaxRegisterBlockBytes, nic.MaxVI,
              nic.MaxDescriptorsPerQueue, nic.MaxSegmentsPerDesc, nic.MaxCQ, nic.MaxCQEntries,
              nic.MaxTransferSize, nic.NativeMTU, nic.MaxPtags}) {
            EXPECT_GE(value, 1U);
            EXPECT_LE(value, 0x7FFFFFFFU);
        }
    });
}

VIPL_TEST(Vipl_4_1_the_same_name_opens_again_as_its_own_handle, nothing) {
    test.role("only", [](Role& me) {
        Nic first(me.device_name());
        Nic second(me.device_name());
        EXPECT_NE(first.handle(), second.handle());
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(first.handle(), &attributes, nullptr, nullptr, &vi));
        // Memory of one handle is not the other's (VIPL 4.7).
        Memory memory(second, 4096);
        VIP_DESCRIPTOR* descriptor = memory.descriptor();
        make_receive(descriptor, {});
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(vi, descriptor, memory.handle()));
        first.close();
        VIP_NIC_ATTRIBUTES nic;
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
        EXPECT_EQ(VIP_SUCCESS, VipQueryNic(second.handle(), &nic));
    });
}

VIPL_TEST(Vipl_4_1_unknown_names_are_invalid_parameters, nothing) {
    test.role("only", [](Role& me) {
        const std::string medium = medium_of(me);
        const std::string names[] = {"",
                                     " ",
                                     "no-such-nic",
                                     medium + "x",
                                     " " + medium,
                                     medium + ":/../" + medium,
                                     std::string(63, 'n'),
                                     std::string(64, 'n'),
                                     std::string(100000, 'n')};
        for (const std::string& name : names) {
            VIP_NIC_HANDLE nic = &nic;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipOpenNic(name.c_str(), &nic)) << name.substr(0, 80);
            EXPECT_EQ(&nic, nic) << "nothing changes";
        }
    });
}

VIPL_TEST(Vipl_4_1_scanning_numbered_names_comes_to_an_end, nothing) {
    test.role("only", [](Role& me) {
        for (const std::string& stem : {medium_of(me), std::string("nic"), std::string("VINIC")}) {
            int number = 0;
            VIP_RETURN code = VIP_SUCCESS;
            for (; number < 1000 && code == VIP_SUCCESS; ++number) {
                VIP_NIC_HANDLE nic = nullptr;
                code = VipOpenNic((stem + std::to_string(number)).c_str(), &nic);
                if (code == VIP_SUCCESS) OK(VipCloseNic(nic));
            }
            EXPECT_EQ(VIP_INVALID_PARAMETER, code) << stem << number;
        }
    });
}

VIPL_TEST(Vipl_4_2_close_releases_everything_made_with_the_handle, nothing) {
    test.role("only", [](Role& me) {
        Nic nic(me.device_name());
        Memory memory(nic, 4096);
        VIP_PROTECTION_HANDLE tag = nullptr;
        VIP_CQ_HANDLE cq = nullptr;
        VIP_VI_HANDLE vi = nullptr;
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        OK(VipCreatePtag(nic.handle(), &tag));
        OK(VipCreateCQ(nic.handle(), 4, &cq));
        OK(VipCreateVi(nic.handle(), &attributes, cq, cq, &vi));
        VIP_DESCRIPTOR* descriptor = memory.descriptor();
        make_receive(descriptor, {});
        OK(VipPostRecv(vi, descriptor, memory.handle()));
        const VIP_NIC_HANDLE handle = nic.handle();
        nic.close();
        VIP_VI_HANDLE found = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        VIP_NIC_ATTRIBUTES reported;
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipCloseNic(handle));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipQueryNic(handle, &reported));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyVi(vi));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDisconnect(vi));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipCQDone(cq, &found, &receive));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyPtag(handle, tag));
    });
}

VIPL_TEST(Vipl_4_2_a_hundred_open_and_close_in_turn, nothing) {
    test.role("only", [](Role& me) {
        for (int round = 0; round < 100; ++round) {
            Nic nic(me.device_name());
            Memory memory(nic, 4096);
        }
    });
}

VIPL_TEST(Vipl_4_2_peers_of_a_closed_nic_see_conn_lost, own_nics) {
    test.role("closer", [](Role& me) {
        Nic nic(me.device_name());
        auto local = nic.address(me.discriminator("c"));
        me.tell("other", local);
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_ATTRIBUTES theirs;
        VIP_VI_HANDLE vi = nullptr;
        VIP_CONN_HANDLE connection = nullptr;
        Address remote;
        OK(VipCreateVi(nic.handle(), &attributes, nullptr, nullptr, &vi));
        OK(VipConnectWait(nic.handle(), local.net(), patience_ms, remote.net(), &theirs,
                          &connection));
        OK(VipConnectAccept(connection, vi));
        me.meet();
        nic.close();
    });
    test.role("other", [](Role& me) {
        End end(me);
        VIP_DESCRIPTOR* posted = end.receive(end.take(64));
        end.connect("closer");
        me.meet();
        EXPECT_EQ(posted, end.received(VIP_DESCRIPTOR_ERROR));
        EXPECT_TRUE(flushed(posted));
        me.nic().wait_error(me, end.vi(), VIP_ERROR_CONN_LOST);
        EXPECT_EQ(VIP_STATE_ERROR, end.state());
    });
}

// Name service ------------------------------------------------------------------------------------

VIPL_TEST(Vipl_4_5_init_may_be_repeated_and_shutdown_come_before_connecting, nothing) {
    test.role("server", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        OK(VipNSInit(me.nic().handle(), nullptr));
        OK(VipNSShutdown(me.nic().handle()));
        me.meet();  // on one NIC for both, after either's shutdown
        End end(me);
        end.accept("client");
        me.meet();
    });
    test.role("client", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        me.meet();
        End end(me);
        end.connect("server");
        me.meet();
    });
}

VIPL_TEST(Vipl_4_5_own_host_is_found_by_name_and_nothing_beyond_is_written, nothing) {
    test.role("only", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        std::string name = me.host_name();
        for (const unsigned junk : {0U, 1U, 0xFFFFU}) {
            AddressRoom<4 + 6> room;
            room.net()->HostAddressLen = static_cast<VIP_UINT16>(junk);
            const auto length = static_cast<VIP_UINT16>(junk + 3);
            room.net()->DiscriminatorLen = length;
            ASSERT_EQ(VIP_SUCCESS,
                      VipNSGetHostByName(me.nic().handle(), name.data(), room.net(), 0));
            EXPECT_EQ(6, room.net()->HostAddressLen);
            EXPECT_EQ(length, room.net()->DiscriminatorLen) << "the program's, who set it before";
            EXPECT_TRUE(room.intact_beyond(4 + 6));
        }
    });
}

VIPL_TEST(Vipl_4_5_an_address_found_by_name_can_be_connected_to, nothing) {
    test.role("server", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        std::string name = me.host_name();
        Address found;
        OK(VipNSGetHostByName(me.nic().handle(), name.data(), found.net(), 0));
        const std::string discriminator = me.discriminator("named");
        Address local(found.host(), discriminator);
        me.tell("client", local);
        End end(me);
        Address remote;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        OK(VipConnectWait(me.nic().handle(), local.net(), patience_ms, remote.net(), &attributes,
                          &connection));
        OK(VipConnectAccept(connection, end.vi()));
        me.meet();
    });
    test.role("client", [](Role& me) {
        End end(me);
        VIP_VI_ATTRIBUTES attributes;
        OK(request(me, end.vi(), me.nic().address("c"), me.hear<Address>("server"), &attributes));
        me.meet();
    });
}

VIPL_TEST(Vipl_4_5_unknown_names_and_indices_are_name_service_errors, nothing) {
    test.role("only", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        AddressRoom<4 + 18> room;
        // A name that the rules of the domain name system forbid (RFC 6761).
        for (std::string name : {"no-such-host.invalid", ""})
            EXPECT_EQ(VIP_ERROR_NAMESERVICE,
                      VipNSGetHostByName(me.nic().handle(), name.data(), room.net(), 0))
                << name;
        std::string own = me.host_name();
        EXPECT_EQ(VIP_ERROR_NAMESERVICE,
                  VipNSGetHostByName(me.nic().handle(), own.data(), room.net(), 1000));
        EXPECT_TRUE(room.intact_beyond(0));
    });
}

VIPL_TEST(Vipl_4_5_an_address_leads_back_to_a_name, nothing) {
    test.role("only", [](Role& me) {
        OK(VipNSInit(me.nic().handle(), nullptr));
        Address own = me.nic().address("");
        char name[256];
        VIP_ULONG length = sizeof name;
        ASSERT_EQ(VIP_SUCCESS, VipNSGetHostByAddr(me.nic().handle(), own.net(), name, &length));
        ASSERT_LE(length, sizeof name);
        EXPECT_EQ(length, std::strlen(name) + 1);
        Address found;
        ASSERT_EQ(VIP_SUCCESS, VipNSGetHostByName(me.nic().handle(), name, found.net(), 0));
        EXPECT_EQ(own.host(), found.host());

        std::memset(name, '#', sizeof name);
        VIP_ULONG one = 1;
        EXPECT_EQ(VIP_ERROR_RESOURCE, VipNSGetHostByAddr(me.nic().handle(), own.net(), name, &one));
        EXPECT_EQ(length, one) << "the room that is needed";
        EXPECT_EQ('#', name[1]);

        Address unknown({"\xC0\x00\x02\x01\x00\x01", 6}, "");
        length = sizeof name;
        EXPECT_EQ(VIP_ERROR_NAMESERVICE,
                  VipNSGetHostByAddr(me.nic().handle(), unknown.net(), name, &length));
    });
}

VIPL_TEST(Vipl_2_management_information_of_an_unknown_type_is_refused, nothing) {
    test.role("only", [](Role& me) {
        VIP_AUTODISCOVERY_LIST list{};
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipQuerySystemManagementInfo(me.nic().handle(), 0, &list));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipQuerySystemManagementInfo(me.nic().handle(), 4711, &list));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipQuerySystemManagementInfo(me.nic().handle(), VIP_SMI_AUTODISCOVERY, nullptr));
    });
}

VIPL_TEST(Vipl_1_8_autodiscovery_keeps_within_the_buffers_it_was_given, nothing) {
    test.role("only", [](Role& me) {
        AddressRoom<4 + 18> rooms[2];
        VIP_NET_ADDRESS* addresses[3] = {rooms[0].net(), nullptr, rooms[1].net()};
        VIP_AUTODISCOVERY_LIST list{1, addresses, 1};
        const VIP_RETURN code =
            VipQuerySystemManagementInfo(me.nic().handle(), VIP_SMI_AUTODISCOVERY, &list);
        EXPECT_TRUE(code == VIP_SUCCESS || code == VIP_ERROR_NOT_SUPPORTED) << name_of(code);
        EXPECT_LE(list.NumAdAddrs, 1U);
        EXPECT_EQ(nullptr, addresses[1]);
        EXPECT_TRUE(rooms[1].intact_beyond(0));
        const bool found = code == VIP_SUCCESS && list.NumAdAddrs == 1;
        EXPECT_TRUE(rooms[0].intact_beyond(found ? rooms[0].length() : 0));
    });
}

struct Closing {
    std::string device;
    VIP_NIC_HANDLE nic = nullptr;
    std::atomic<int> wrong{0};
    std::atomic<bool> done{false};
};

/// As one that begins anew with each error. What it was called from must outlive it.
void close_and_open_others(VIP_PVOID context, VIP_ERROR_DESCRIPTOR*) {
    Closing& closing = *static_cast<Closing*>(context);
    if (VipCloseNic(closing.nic) != VIP_SUCCESS) ++closing.wrong;
    for (int n = 0; n < 20; ++n) {
        VIP_NIC_HANDLE another = nullptr;
        if (VipOpenNic(closing.device.c_str(), &another) != VIP_SUCCESS ||
            VipCloseNic(another) != VIP_SUCCESS)
            ++closing.wrong;
    }
    closing.done = true;
}

VIPL_TEST(Vipl_4_4_a_handler_may_close_its_nic_and_others, own_nics | real_threads) {
    test.role("only", [](Role& me) {
        Closing closing;
        closing.device = me.device_name();
        OK(VipOpenNic(closing.device.c_str(), &closing.nic));
        OK(VipErrorCallback(closing.nic, &closing, close_and_open_others));
        alignas(VIP_DESCRIPTOR_ALIGNMENT) VIP_DESCRIPTOR empty[2] = {};
        VIP_MEM_HANDLE memory = 0;
        OK(VipRegisterMem(closing.nic, empty, sizeof empty, nullptr, &memory));
        VIP_CQ_HANDLE cq = nullptr;
        OK(VipCreateCQ(closing.nic, 1, &cq));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(closing.nic, &attributes, cq, nullptr, &vi));
        VipPostSend(vi, &empty[0], memory);  // flushed at once, as it is not connected
        VipPostSend(vi, &empty[1], memory);  // one more than the queue holds
        me.until([&] { return closing.done.load(); }, "the handler has run");
        EXPECT_EQ(0, closing.wrong);
    });
}

}  // namespace
}  // namespace conformance::nic_test
