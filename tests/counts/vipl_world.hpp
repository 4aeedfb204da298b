// Two connected VIs, of the NIC "loopback" or of two NICs "shm", and memory for their messages, all
// in one thread, for the programs that count what calls of vipl.h cost.
#pragma once

#include <via/via.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::_Exit(1);
}
inline void must(VIP_RETURN code, const char* call) { require(code == VIP_SUCCESS, call); }
#define OK(call) must((call), #call)

constexpr VIP_UINT32 length = 8;
struct alignas(64) Room {
    VIP_DESCRIPTOR send;
    VIP_DESCRIPTOR receive;
    VIP_DESCRIPTOR write;
    unsigned char out[64];
    unsigned char in[64];
};

union Address {
    VIP_NET_ADDRESS net;
    unsigned char bytes[128];
};

class World {
public:
    explicit World(bool with_completion_queue,
                   VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY,
                   bool shares_receives = false)
        : level_(level), shares_receives_(shares_receives) {
        OK(VipOpenNic("loopback", &nic));
        OK(VipRegisterMem(nic, &room, sizeof room, nullptr, &handle));
        if (with_completion_queue) OK(VipCreateCQ(nic, 64, &completions));
        receiver_nic = nic;
        receive_handle = handle;
        receive_completions = completions;
        begin();
        if (!with_completion_queue && level != VIP_SERVICE_UNRELIABLE) attach();
    }
    /// Of two NICs of shared memory: the other end's work is the other one's.
    struct OverShm {
        bool with_completion_queue;
    };
    explicit World(OverShm over) : level_(VIP_SERVICE_RELIABLE_DELIVERY) {
        OK(VipOpenNic("shm", &nic));
        OK(VipOpenNic("shm", &receiver_nic));
        OK(VipRegisterMem(nic, &room, sizeof room, nullptr, &handle));
        OK(VipRegisterMem(receiver_nic, &room, sizeof room, nullptr, &receive_handle));
        if (over.with_completion_queue) {
            OK(VipCreateCQ(nic, 64, &completions));
            OK(VipCreateCQ(receiver_nic, 64, &receive_completions));
        }
        begin();
    }
    void fill(VIP_DESCRIPTOR& descriptor, void* buffer, VIP_MEM_HANDLE of) const {
        descriptor.CS.SegCount = 1;
        descriptor.CS.Length = length;
        descriptor.DS[0].Local.Data.Address = buffer;
        descriptor.DS[0].Local.Handle = of;
        descriptor.DS[0].Local.Length = length;
    }

    Room room{};
    VIP_NIC_HANDLE nic = nullptr;
    VIP_MEM_HANDLE handle = 0;
    VIP_CQ_HANDLE completions = nullptr;
    VIP_NIC_HANDLE receiver_nic = nullptr;  ///< over loopback the same as the sender's
    VIP_MEM_HANDLE receive_handle = 0;
    VIP_CQ_HANDLE receive_completions = nullptr;
    VIP_VI_HANDLE sender = nullptr;
    VIP_VI_HANDLE receiver = nullptr;
    VIA_SHARED_RECV_HANDLE shared = nullptr;  ///< where the receiver's receives come from, if so
    unsigned char* segment = nullptr;         ///< of our own, as a peer has it

private:
    void begin() {
        sender = make_vi(nic, completions);
        receiver = make_vi(receiver_nic, receive_completions);
        if (shares_receives_) {
            const VIA_SHARED_RECV_ATTRIBUTES attributes{nullptr, 64, 0};
            OK(ViaCreateSharedRecv(receiver_nic, &attributes, &shared));
            OK(ViaSetSharedRecv(receiver, shared));
        }
        connect();
        fill(room.send, room.out, handle);
        fill(room.receive, room.in, receive_handle);
    }
    VIP_VI_HANDLE make_vi(VIP_NIC_HANDLE of, VIP_CQ_HANDLE queue) const {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = level_;
        attributes.MaxTransferSize = 65536;
        attributes.EnableRdmaWrite = VIP_TRUE;
        attributes.EnableRdmaRead = level_ == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(of, &attributes, queue, queue, &vi));
        return vi;
    }
    void connect() {
        VIP_NIC_ATTRIBUTES attributes{};
        OK(VipQueryNic(receiver_nic, &attributes));
        Address address{};
        address.net.HostAddressLen = attributes.NicAddressLen;
        address.net.DiscriminatorLen = 1;
        std::memcpy(address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress),
                    attributes.LocalNicAddress, attributes.NicAddressLen);
        std::thread listener([&] {
            Address local = address;
            Address remote{};
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE connection = nullptr;
            OK(VipConnectWait(receiver_nic, &local.net, 60'000, &remote.net, &theirs, &connection));
            OK(VipConnectAccept(connection, receiver));
        });
        VIP_RETURN code = VIP_NO_MATCH;
        VIP_VI_ATTRIBUTES theirs{};
        while (code == VIP_NO_MATCH)
            code = VipConnectRequest(sender, &address.net, &address.net, 60'000, &theirs);
        must(code, "VipConnectRequest");
        listener.join();
    }
    void attach() {
        VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_TRUE};
        VIP_PVOID at = nullptr;
        VIP_MEM_HANDLE of_segment = 0;
        VIP_ULONG bytes = 0;
        OK(ViaCreateSegment(nic, 4096, &attributes, &at, &of_segment));
        segment = static_cast<unsigned char*>(at);
        OK(ViaImportSegment(sender, reinterpret_cast<VIP_UINT64>(at), of_segment, VIP_TRUE, 60'000,
                            &at, &bytes));
        room.write.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
        room.write.CS.SegCount = 2;
        room.write.CS.Length = length;
        room.write.DS[0].Remote.Data.Address = segment;
        room.write.DS[0].Remote.Handle = of_segment;
        room.write.DS[1].Local.Data.Address = room.out;
        room.write.DS[1].Local.Handle = handle;
        room.write.DS[1].Local.Length = length;
    }
    VIP_RELIABILITY_LEVEL level_;
    bool shares_receives_ = false;
};

/// So many messages posted and taken at once, by the calls of via.h.
constexpr VIP_UINT32 at_once = 16;
struct alignas(64) Many {
    explicit Many(World& world) {
        OK(VipRegisterMem(world.nic, this, sizeof *this, nullptr, &handle));
        if (world.receiver_nic != world.nic)
            OK(VipRegisterMem(world.receiver_nic, this, sizeof *this, nullptr, &receive_handle));
        else
            receive_handle = handle;
        for (VIP_UINT32 n = 0; n < at_once; ++n) {
            world.fill(*(send_list[n] = &sends[n]), &out[n], handle);
            world.fill(*(receive_list[n] = &receives[n]), &in[n], receive_handle);
            handles[n] = handle;
            receive_handles[n] = receive_handle;
        }
    }
    VIP_DESCRIPTOR sends[at_once]{};
    VIP_DESCRIPTOR receives[at_once]{};
    std::uint64_t out[at_once]{};
    std::uint64_t in[at_once]{};
    VIP_DESCRIPTOR* send_list[at_once]{};
    VIP_DESCRIPTOR* receive_list[at_once]{};
    VIP_DESCRIPTOR* done[at_once]{};
    VIP_MEM_HANDLE handle = 0;
    VIP_MEM_HANDLE receive_handle = 0;
    VIP_MEM_HANDLE handles[at_once]{};
    VIP_MEM_HANDLE receive_handles[at_once]{};
};

/// A call may answer that nothing is done yet: an acknowledgement is still to be taken, or the
/// NIC's own thread has the turn. That goes on when valgrind, which runs one thread at a time, lets
/// it.
template <class Call>
bool succeeds(Call call) {
    constexpr unsigned looks_of_ones_own = 100;
    for (unsigned looks = 1;; ++looks) {
        const VIP_RETURN code = call();
        if (code != VIP_NOT_DONE) return code == VIP_SUCCESS;
        if (looks > looks_of_ones_own) std::this_thread::yield();
    }
}

/// All of `many`, by one call or, where that thread came between, by several.
template <class DoneMany>
bool takes_all(DoneMany done_many, VIP_VI_HANDLE vi, Many& many) {
    VIP_UINT32 count = 0;
    for (VIP_UINT32 taken = 0; taken < at_once; taken += count)
        if (!succeeds([&] { return done_many(vi, many.done, at_once, &count); })) return false;
    return true;
}
