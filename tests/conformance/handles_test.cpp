// Bad handles and NULL out-pointers, for every function (VIPL 1.11, 2): INVALID_PARAMETER, and
// nothing changes.
#include <cstring>
#include <functional>

#include "harness/end.hpp"

namespace conformance::handles_test {
namespace {

constexpr int untouched = 0x5A;

/// Every kind of out-parameter, filled with a pattern, so that any writing shows.
struct Outs {
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    VIP_PROTECTION_HANDLE tag;
    VIP_CONN_HANDLE connection;
    VIP_MEM_HANDLE memory;
    VIP_BOOLEAN flag;
    VIP_BOOLEAN other_flag;
    VIP_VI_STATE state;
    VIP_ULONG number;
    VIP_NIC_ATTRIBUTES nic_attributes;
    VIP_VI_ATTRIBUTES vi_attributes;
    VIP_MEM_ATTRIBUTES memory_attributes;
    VIP_DESCRIPTOR* descriptor;
    VIP_CHAR name[64];
    alignas(8) unsigned char address[96];

    Outs() { std::memset(static_cast<void*>(this), untouched, sizeof *this); }
    VIP_NET_ADDRESS* net() { return reinterpret_cast<VIP_NET_ADDRESS*>(address); }
    bool intact() const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(this);
        for (std::size_t at = 0; at < sizeof *this; ++at)
            if (bytes[at] != untouched) return false;
        return true;
    }
};

/// Valid objects of a NIC, to be named in calls whose one other argument is bad.
struct Objects {
    explicit Objects(Role& role)
        : nic(role.nic()), memory(nic, 4096), cq(nic, 4), address(nic.address("handles")) {
        OK(VipCreatePtag(nic.handle(), &tag));
        attributes = vi_attributes();
        OK(VipCreateVi(nic.handle(), &attributes, nullptr, nullptr, &vi));
        descriptor = memory.descriptor();
        make_receive(descriptor, {});
    }
    ~Objects() {
        EXPECT_EQ(VIP_SUCCESS, VipDestroyVi(vi)) << "it was idle and empty, and still is";
        EXPECT_EQ(VIP_SUCCESS, VipDestroyPtag(nic.handle(), tag));
    }
    Nic& nic;
    Memory memory;
    Cq cq;
    Address address;
    VIP_PROTECTION_HANDLE tag = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_VI_ATTRIBUTES attributes;
    VIP_MEM_ATTRIBUTES memory_attributes = rights(false, false);
    VIP_DESCRIPTOR* descriptor = nullptr;
};

/// A call with one argument left open, which will be a bad one.
struct Call {
    const char* name;
    std::function<VIP_RETURN(VIP_PVOID handle, Outs& out)> make;
};

void expect_refused(const Call& call, VIP_PVOID handle) {
    Outs out;
    EXPECT_EQ(VIP_INVALID_PARAMETER, call.make(handle, out)) << call.name << ' ' << handle;
    EXPECT_TRUE(out.intact()) << call.name << " wrote to an out-parameter, handle " << handle;
}

/// Handles that no call ever gave: numbers, addresses, and near misses of `valid`.
std::vector<VIP_PVOID> invented(VIP_PVOID valid) {
    const auto bits = reinterpret_cast<std::uintptr_t>(valid);
    std::vector<VIP_PVOID> handles{nullptr, &handles, reinterpret_cast<VIP_PVOID>(&invented)};
    for (const std::uintptr_t number :
         {std::uintptr_t{1}, std::uintptr_t{0xDEADBEEF}, ~std::uintptr_t{0}, ~bits})
        handles.push_back(reinterpret_cast<VIP_PVOID>(number));
    for (int bit = 0; bit < 64; ++bit)
        handles.push_back(reinterpret_cast<VIP_PVOID>(bits ^ (std::uintptr_t{1} << bit)));
    return handles;
}

void nothing_happens(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}
void no_completion(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}
void no_entry(VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_BOOLEAN) {}

std::vector<Call> calls_with_nic(Objects& o) {
    return {
        {"VipCloseNic", [](VIP_PVOID h, Outs&) { return VipCloseNic(h); }},
        {"VipQueryNic", [](VIP_PVOID h, Outs& out) { return VipQueryNic(h, &out.nic_attributes); }},
        {"VipQuerySystemManagementInfo",
         [](VIP_PVOID h, Outs&) {
             VIP_AUTODISCOVERY_LIST list{};
             return VipQuerySystemManagementInfo(h, VIP_SMI_AUTODISCOVERY, &list);
         }},
        {"VipErrorCallback",
         [](VIP_PVOID h, Outs&) { return VipErrorCallback(h, nullptr, nothing_happens); }},
        {"VipCreatePtag", [](VIP_PVOID h, Outs& out) { return VipCreatePtag(h, &out.tag); }},
        {"VipDestroyPtag", [&](VIP_PVOID h, Outs&) { return VipDestroyPtag(h, o.tag); }},
        {"VipRegisterMem",
         [&](VIP_PVOID h, Outs& out) {
             return VipRegisterMem(h, o.memory.base(), 64, nullptr, &out.memory);
         }},
        {"VipDeregisterMem",
         [&](VIP_PVOID h, Outs&) {
             return VipDeregisterMem(h, o.memory.base(), o.memory.handle());
         }},
        {"VipSetMemAttributes",
         [&](VIP_PVOID h, Outs&) {
             return VipSetMemAttributes(h, o.memory.base(), o.memory.handle(),
                                        &o.memory_attributes);
         }},
        {"VipQueryMem",
         [&](VIP_PVOID h, Outs& out) {
             return VipQueryMem(h, o.memory.base(), o.memory.handle(), &out.memory_attributes);
         }},
        {"VipCreateVi",
         [&](VIP_PVOID h, Outs& out) {
             return VipCreateVi(h, &o.attributes, nullptr, nullptr, &out.vi);
         }},
        {"VipConnectWait",
         [&](VIP_PVOID h, Outs& out) {
             return VipConnectWait(h, o.address.net(), patience_ms, out.net(), &out.vi_attributes,
                                   &out.connection);
         }},
        {"VipCreateCQ", [](VIP_PVOID h, Outs& out) { return VipCreateCQ(h, 4, &out.cq); }},
        {"VipNSInit", [](VIP_PVOID h, Outs&) { return VipNSInit(h, nullptr); }},
        {"VipNSGetHostByName",
         [](VIP_PVOID h, Outs& out) {
             char name[] = "localhost";
             return VipNSGetHostByName(h, name, out.net(), 0);
         }},
        {"VipNSGetHostByAddr",
         [&](VIP_PVOID h, Outs& out) {
             VIP_ULONG length = sizeof out.name;
             return VipNSGetHostByAddr(h, o.address.net(), out.name, &length);
         }},
        {"VipNSShutdown", [](VIP_PVOID h, Outs&) { return VipNSShutdown(h); }},
    };
}

std::vector<Call> calls_with_vi(Objects& o) {
    return {
        {"VipDestroyVi", [](VIP_PVOID h, Outs&) { return VipDestroyVi(h); }},
        {"VipSetViAttributes",
         [&](VIP_PVOID h, Outs&) { return VipSetViAttributes(h, &o.attributes); }},
        {"VipQueryVi",
         [](VIP_PVOID h, Outs& out) {
             return VipQueryVi(h, &out.state, &out.vi_attributes, &out.flag, &out.other_flag);
         }},
        {"VipConnectRequest",
         [&](VIP_PVOID h, Outs& out) {
             return VipConnectRequest(h, o.address.net(), o.address.net(), patience_ms,
                                      &out.vi_attributes);
         }},
        {"VipDisconnect", [](VIP_PVOID h, Outs&) { return VipDisconnect(h); }},
        {"VipConnectPeerRequest",
         [&](VIP_PVOID h, Outs&) {
             return VipConnectPeerRequest(h, o.address.net(), o.address.net(), patience_ms);
         }},
        {"VipConnectPeerDone",
         [](VIP_PVOID h, Outs& out) { return VipConnectPeerDone(h, &out.vi_attributes); }},
        {"VipConnectPeerWait",
         [](VIP_PVOID h, Outs& out) { return VipConnectPeerWait(h, &out.vi_attributes); }},
        {"VipPostSend",
         [&](VIP_PVOID h, Outs&) { return VipPostSend(h, o.descriptor, o.memory.handle()); }},
        {"VipSendDone", [](VIP_PVOID h, Outs& out) { return VipSendDone(h, &out.descriptor); }},
        {"VipSendWait",
         [](VIP_PVOID h, Outs& out) { return VipSendWait(h, patience_ms, &out.descriptor); }},
        {"VipSendNotify",
         [](VIP_PVOID h, Outs&) { return VipSendNotify(h, nullptr, no_completion); }},
        {"VipPostRecv",
         [&](VIP_PVOID h, Outs&) { return VipPostRecv(h, o.descriptor, o.memory.handle()); }},
        {"VipRecvDone", [](VIP_PVOID h, Outs& out) { return VipRecvDone(h, &out.descriptor); }},
        {"VipRecvWait",
         [](VIP_PVOID h, Outs& out) { return VipRecvWait(h, patience_ms, &out.descriptor); }},
        {"VipRecvNotify",
         [](VIP_PVOID h, Outs&) { return VipRecvNotify(h, nullptr, no_completion); }},
    };
}

std::vector<Call> calls_with_cq(Objects& o) {
    return {
        {"VipDestroyCQ", [](VIP_PVOID h, Outs&) { return VipDestroyCQ(h); }},
        {"VipResizeCQ", [](VIP_PVOID h, Outs&) { return VipResizeCQ(h, 8); }},
        {"VipCQDone", [](VIP_PVOID h, Outs& out) { return VipCQDone(h, &out.vi, &out.flag); }},
        {"VipCQWait",
         [](VIP_PVOID h, Outs& out) { return VipCQWait(h, patience_ms, &out.vi, &out.flag); }},
        {"VipCQNotify", [](VIP_PVOID h, Outs&) { return VipCQNotify(h, nullptr, no_entry); }},
        // NULL means no queue here, any other must be one.
        {"VipCreateVi, sends",
         [&](VIP_PVOID h, Outs& out) {
             return h == nullptr ? VIP_INVALID_PARAMETER
                                 : VipCreateVi(o.nic.handle(), &o.attributes, h, nullptr, &out.vi);
         }},
        {"VipCreateVi, receives",
         [&](VIP_PVOID h, Outs& out) {
             return h == nullptr ? VIP_INVALID_PARAMETER
                                 : VipCreateVi(o.nic.handle(), &o.attributes, nullptr, h, &out.vi);
         }},
    };
}

std::vector<Call> calls_with_connection(Objects& o) {
    return {{"VipConnectAccept", [&](VIP_PVOID h, Outs&) { return VipConnectAccept(h, o.vi); }},
            {"VipConnectReject", [](VIP_PVOID h, Outs&) { return VipConnectReject(h); }}};
}

VIPL_TEST(Vipl_2_invented_nic_handles_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        std::vector<VIP_PVOID> handles = invented(objects.nic.handle());
        handles.insert(handles.end(), {objects.vi, objects.cq.handle(), objects.tag});
        for (const Call& call : calls_with_nic(objects))
            for (const VIP_PVOID handle : handles) expect_refused(call, handle);
    });
}

VIPL_TEST(Vipl_2_invented_vi_handles_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        std::vector<VIP_PVOID> handles = invented(objects.vi);
        handles.insert(handles.end(), {objects.nic.handle(), objects.cq.handle(), objects.tag});
        for (const Call& call : calls_with_vi(objects))
            for (const VIP_PVOID handle : handles) expect_refused(call, handle);
    });
}

VIPL_TEST(Vipl_2_invented_cq_handles_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        std::vector<VIP_PVOID> handles = invented(objects.cq.handle());
        handles.insert(handles.end(), {objects.nic.handle(), objects.vi, objects.tag});
        for (const Call& call : calls_with_cq(objects))
            for (const VIP_PVOID handle : handles) expect_refused(call, handle);
    });
}

VIPL_TEST(Vipl_2_invented_connection_handles_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        std::vector<VIP_PVOID> handles = invented(objects.vi);
        handles.insert(handles.end(), {objects.nic.handle(), objects.vi, objects.cq.handle()});
        for (const Call& call : calls_with_connection(objects))
            for (const VIP_PVOID handle : handles) expect_refused(call, handle);
    });
}

VIPL_TEST(Vipl_2_invented_tags_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        const VIP_NIC_HANDLE nic = objects.nic.handle();
        std::vector<VIP_PVOID> handles = invented(objects.tag);
        handles.insert(handles.end(), {nic, objects.vi, objects.cq.handle()});
        for (const VIP_PVOID handle : handles) {
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyPtag(nic, handle)) << handle;
            if (handle == nullptr) continue;  // which means the default
            Outs out;
            VIP_VI_ATTRIBUTES vi = vi_attributes();
            vi.Ptag = handle;
            VIP_MEM_ATTRIBUTES memory = rights(true, true, handle);
            EXPECT_EQ(VIP_INVALID_PTAG, VipCreateVi(nic, &vi, nullptr, nullptr, &out.vi)) << handle;
            EXPECT_EQ(VIP_INVALID_PTAG, VipSetViAttributes(objects.vi, &vi)) << handle;
            EXPECT_EQ(VIP_INVALID_PTAG,
                      VipRegisterMem(nic, objects.memory.base(), 64, &memory, &out.memory))
                << handle;
            EXPECT_EQ(VIP_INVALID_PTAG, VipSetMemAttributes(nic, objects.memory.base(),
                                                            objects.memory.handle(), &memory))
                << handle;
            EXPECT_TRUE(out.intact()) << handle;
        }
    });
}

VIPL_TEST(Vipl_2_invented_memory_handles_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        const VIP_NIC_HANDLE nic = objects.nic.handle();
        std::vector<VIP_MEM_HANDLE> handles{0, 1, 0xFFFFFFFF, ~objects.memory.handle()};
        for (int bit = 0; bit < 32; ++bit)
            handles.push_back(objects.memory.handle() ^ (VIP_MEM_HANDLE{1} << bit));
        for (const VIP_MEM_HANDLE handle : handles) {
            Outs out;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, objects.memory.base(), handle))
                << handle;
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipQueryMem(nic, objects.memory.base(), handle, &out.memory_attributes))
                << handle;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipSetMemAttributes(nic, objects.memory.base(), handle,
                                                                 &objects.memory_attributes))
                << handle;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostSend(objects.vi, objects.descriptor, handle))
                << handle;
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipPostRecv(objects.vi, objects.descriptor, handle))
                << handle;
            EXPECT_TRUE(out.intact());
        }
    });
}

VIPL_TEST(Vipl_1_11_handles_of_what_was_destroyed_are_refused_even_when_the_place_is_used_again,
          nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        const VIP_NIC_HANDLE nic = objects.nic.handle();
        VIP_VI_HANDLE vi = nullptr;
        VIP_CQ_HANDLE cq = nullptr;
        VIP_PROTECTION_HANDLE tag = nullptr;
        OK(VipCreateVi(nic, &objects.attributes, nullptr, nullptr, &vi));
        OK(VipCreateCQ(nic, 4, &cq));
        OK(VipCreatePtag(nic, &tag));
        for (int round = 0; round < 70; ++round) {
            OK(VipDestroyVi(vi));
            OK(VipDestroyCQ(cq));
            OK(VipDestroyPtag(nic, tag));
            for (const Call& call : calls_with_vi(objects)) expect_refused(call, vi);
            for (const Call& call : calls_with_cq(objects)) expect_refused(call, cq);
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyPtag(nic, tag));
            const VIP_VI_HANDLE old_vi = vi;
            const VIP_CQ_HANDLE old_cq = cq;
            const VIP_PROTECTION_HANDLE old_tag = tag;
            OK(VipCreateVi(nic, &objects.attributes, nullptr, nullptr, &vi));
            OK(VipCreateCQ(nic, 4, &cq));
            OK(VipCreatePtag(nic, &tag));
            for (const Call& call : calls_with_vi(objects)) expect_refused(call, old_vi);
            for (const Call& call : calls_with_cq(objects)) expect_refused(call, old_cq);
            EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyPtag(nic, old_tag));
        }
        OK(VipDestroyVi(vi));
        OK(VipDestroyCQ(cq));
        OK(VipDestroyPtag(nic, tag));
    });
}

VIPL_TEST(Vipl_1_11_objects_of_another_nic_handle_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects objects(me);
        Nic other(me.device_name());
        Memory memory(other, 4096);
        Cq cq(other, 4);
        VIP_PROTECTION_HANDLE tag = nullptr;
        OK(VipCreatePtag(other.handle(), &tag));
        const VIP_NIC_HANDLE nic = objects.nic.handle();
        Outs out;
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDestroyPtag(nic, tag));
        EXPECT_EQ(VIP_INVALID_PARAMETER, VipDeregisterMem(nic, memory.base(), memory.handle()));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipCreateVi(nic, &objects.attributes, cq.handle(), nullptr, &out.vi));
        EXPECT_EQ(VIP_INVALID_PARAMETER,
                  VipCreateVi(nic, &objects.attributes, nullptr, cq.handle(), &out.vi));
        VIP_VI_ATTRIBUTES attributes = vi_attributes();
        attributes.Ptag = tag;
        EXPECT_EQ(VIP_INVALID_PTAG, VipCreateVi(nic, &attributes, nullptr, nullptr, &out.vi));
        EXPECT_TRUE(out.intact());
        OK(VipDestroyPtag(other.handle(), tag));
    });
}

// NULL where something must be ------------------------------------------------------------------

VIPL_TEST(Vipl_2_null_pointers_are_refused, nothing) {
    test.role("only", [](Role& me) {
        Objects o(me);
        const VIP_NIC_HANDLE nic = o.nic.handle();
        const VIP_VI_HANDLE vi = o.vi;
        const VIP_CQ_HANDLE cq = o.cq.handle();
        const VIP_MEM_HANDLE memory = o.memory.handle();
        const std::string device = me.device_name();
        char name[64] = "localhost";
        VIP_ULONG length = sizeof name;
        Outs out;
        const auto refused = [](VIP_RETURN code, int line) {
            EXPECT_EQ(VIP_INVALID_PARAMETER, code) << "line " << line;
        };
        refused(VipOpenNic(nullptr, &out.nic), __LINE__);
        refused(VipOpenNic(device.c_str(), nullptr), __LINE__);
        refused(VipQueryNic(nic, nullptr), __LINE__);
        refused(VipCreatePtag(nic, nullptr), __LINE__);
        refused(VipRegisterMem(nic, o.memory.base(), 64, nullptr, nullptr), __LINE__);
        refused(VipQueryMem(nic, o.memory.base(), memory, nullptr), __LINE__);
        refused(VipCreateVi(nic, nullptr, nullptr, nullptr, &out.vi), __LINE__);
        refused(VipCreateVi(nic, &o.attributes, nullptr, nullptr, nullptr), __LINE__);
        refused(VipSetViAttributes(vi, nullptr), __LINE__);
        refused(VipQueryVi(vi, nullptr, &out.vi_attributes, &out.flag, &out.flag), __LINE__);
        refused(VipQueryVi(vi, &out.state, nullptr, &out.flag, &out.flag), __LINE__);
        refused(VipQueryVi(vi, &out.state, &out.vi_attributes, nullptr, &out.flag), __LINE__);
        refused(VipQueryVi(vi, &out.state, &out.vi_attributes, &out.flag, nullptr), __LINE__);
        VIP_NET_ADDRESS* address = o.address.net();
        refused(VipConnectWait(nic, nullptr, 100, out.net(), &out.vi_attributes, &out.connection),
                __LINE__);
        refused(VipConnectWait(nic, address, 100, nullptr, &out.vi_attributes, &out.connection),
                __LINE__);
        refused(VipConnectWait(nic, address, 100, out.net(), nullptr, &out.connection), __LINE__);
        refused(VipConnectWait(nic, address, 100, out.net(), &out.vi_attributes, nullptr),
                __LINE__);
        refused(VipConnectRequest(vi, nullptr, address, 100, &out.vi_attributes), __LINE__);
        refused(VipConnectRequest(vi, address, nullptr, 100, &out.vi_attributes), __LINE__);
        refused(VipConnectRequest(vi, address, address, 100, nullptr), __LINE__);
        refused(VipConnectPeerRequest(vi, nullptr, address, 100), __LINE__);
        refused(VipConnectPeerRequest(vi, address, nullptr, 100), __LINE__);
        refused(VipConnectPeerDone(vi, nullptr), __LINE__);
        refused(VipConnectPeerWait(vi, nullptr), __LINE__);
        refused(VipPostSend(vi, nullptr, memory), __LINE__);
        refused(VipSendDone(vi, nullptr), __LINE__);
        refused(VipSendWait(vi, 100, nullptr), __LINE__);
        refused(VipPostRecv(vi, nullptr, memory), __LINE__);
        refused(VipRecvDone(vi, nullptr), __LINE__);
        refused(VipRecvWait(vi, 100, nullptr), __LINE__);
        refused(VipCreateCQ(nic, 4, nullptr), __LINE__);
        refused(VipCQDone(cq, nullptr, &out.flag), __LINE__);
        refused(VipCQDone(cq, &out.vi, nullptr), __LINE__);
        refused(VipCQWait(cq, 100, nullptr, &out.flag), __LINE__);
        refused(VipCQWait(cq, 100, &out.vi, nullptr), __LINE__);
        refused(VipNSGetHostByName(nic, nullptr, out.net(), 0), __LINE__);
        refused(VipNSGetHostByName(nic, name, nullptr, 0), __LINE__);
        refused(VipNSGetHostByAddr(nic, nullptr, out.name, &length), __LINE__);
        refused(VipNSGetHostByAddr(nic, address, nullptr, &length), __LINE__);
        refused(VipNSGetHostByAddr(nic, address, out.name, nullptr), __LINE__);
        EXPECT_EQ(sizeof name, length);
        EXPECT_TRUE(out.intact());
    });
}

VIPL_TEST(Vipl_2_addresses_with_impossible_lengths_are_refused, nothing) {
    test.role("only", [](Role& me) {
        End end(me);
        const Address good = me.nic().address("good");
        Outs out;
        for (const unsigned length : {65U, 1000U, 0xFFFFU}) {
            Address bad = good;
            bad.net()->DiscriminatorLen = static_cast<VIP_UINT16>(length);
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipConnectWait(me.nic().handle(), bad.net(), 100, out.net(),
                                     &out.vi_attributes, &out.connection))
                << length;
            Address remote = good;
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipConnectRequest(end.vi(), remote.net(), bad.net(), 100, &out.vi_attributes))
                << length;
            EXPECT_EQ(VIP_INVALID_PARAMETER,
                      VipConnectRequest(end.vi(), bad.net(), remote.net(), 100, &out.vi_attributes))
                << length;
        }
        EXPECT_TRUE(out.intact());
        EXPECT_EQ(VIP_STATE_IDLE, end.state());
    });
}

}  // namespace
}  // namespace conformance::handles_test
