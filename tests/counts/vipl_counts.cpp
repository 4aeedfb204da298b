// What one message of 8 bytes costs a program: the calls of vipl.h, two VIs of the NIC "loopback",
// all in one thread. Run under callgrind by counts.py.
#include <via/via.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "measured.hpp"

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::_Exit(1);
}
void must(VIP_RETURN code, const char* call) { require(code == VIP_SUCCESS, call); }
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
    explicit World(bool with_completion_queue) {
        OK(VipOpenNic("loopback", &nic_));
        OK(VipRegisterMem(nic_, &room, sizeof room, nullptr, &handle));
        if (with_completion_queue) OK(VipCreateCQ(nic_, 64, &completions));
        sender = make_vi();
        receiver = make_vi();
        connect();
        fill(room.send, room.out);
        fill(room.receive, room.in);
        if (!with_completion_queue) attach();
    }

    Room room{};
    VIP_MEM_HANDLE handle = 0;
    VIP_CQ_HANDLE completions = nullptr;
    VIP_VI_HANDLE sender = nullptr;
    VIP_VI_HANDLE receiver = nullptr;
    unsigned char* segment = nullptr;  ///< of our own, as a peer has it

private:
    VIP_VI_HANDLE make_vi() {
        VIP_VI_ATTRIBUTES attributes{};
        attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
        attributes.MaxTransferSize = 65536;
        attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_TRUE;
        VIP_VI_HANDLE vi = nullptr;
        OK(VipCreateVi(nic_, &attributes, completions, completions, &vi));
        return vi;
    }
    void connect() {
        VIP_NIC_ATTRIBUTES nic{};
        OK(VipQueryNic(nic_, &nic));
        Address address{};
        address.net.HostAddressLen = nic.NicAddressLen;
        address.net.DiscriminatorLen = 1;
        std::memcpy(address.bytes + offsetof(VIP_NET_ADDRESS, HostAddress), nic.LocalNicAddress,
                    nic.NicAddressLen);
        std::thread listener([&] {
            Address local = address;
            Address remote{};
            VIP_VI_ATTRIBUTES theirs{};
            VIP_CONN_HANDLE connection = nullptr;
            OK(VipConnectWait(nic_, &local.net, 60'000, &remote.net, &theirs, &connection));
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
        OK(ViaCreateSegment(nic_, 4096, &attributes, &at, &of_segment));
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
    void fill(VIP_DESCRIPTOR& descriptor, void* buffer) const {
        descriptor.CS.SegCount = 1;
        descriptor.CS.Length = length;
        descriptor.DS[0].Local.Data.Address = buffer;
        descriptor.DS[0].Local.Handle = handle;
        descriptor.DS[0].Local.Length = length;
    }

    VIP_NIC_HANDLE nic_ = nullptr;
};

}  // namespace

VIA_MEASURED VIP_RETURN measured_vipl_post_receive(World& world) {
    return VipPostRecv(world.receiver, &world.room.receive, world.handle);
}
VIA_MEASURED VIP_RETURN measured_vipl_post_send(World& world) {
    return VipPostSend(world.sender, &world.room.send, world.handle);
}
VIA_MEASURED VIP_RETURN measured_vipl_send_done(World& world, VIP_DESCRIPTOR** descriptor) {
    return VipSendDone(world.sender, descriptor);
}
VIA_MEASURED VIP_RETURN measured_vipl_receive_done(World& world, VIP_DESCRIPTOR** descriptor) {
    return VipRecvDone(world.receiver, descriptor);
}

/// An RDMA write into a segment of the peer: done when the post returns.
VIA_MEASURED VIP_RETURN measured_vipl_post_write_to_segment(World& world) {
    return VipPostSend(world.sender, &world.room.write, world.handle);
}

/// Now and then the NIC's own thread has the turn, and a call answers that nothing is done yet.
template <class Call>
bool succeeds(Call call) {
    VIP_RETURN code = call();
    while (code == VIP_NOT_DONE) code = call();
    return code == VIP_SUCCESS;
}

VIA_MEASURED bool measured_vipl_message(World& world) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    return VipPostRecv(world.receiver, &world.room.receive, world.handle) == VIP_SUCCESS &&
           VipPostSend(world.sender, &world.room.send, world.handle) == VIP_SUCCESS &&
           succeeds([&] { return VipSendDone(world.sender, &descriptor); }) &&
           succeeds([&] { return VipRecvDone(world.receiver, &descriptor); });
}

VIA_MEASURED bool measured_vipl_message_through_queue(World& world) {
    bool right = VipPostRecv(world.receiver, &world.room.receive, world.handle) == VIP_SUCCESS &&
                 VipPostSend(world.sender, &world.room.send, world.handle) == VIP_SUCCESS;
    for (int entries = 0; right && entries < 2; ++entries) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        VIP_DESCRIPTOR* descriptor = nullptr;
        right = succeeds([&] { return VipCQDone(world.completions, &vi, &receive); }) &&
                (receive == VIP_TRUE ? VipRecvDone(vi, &descriptor)
                                     : VipSendDone(vi, &descriptor)) == VIP_SUCCESS;
    }
    return right;
}

namespace {

void write_number(World& world, std::uint64_t number) {
    std::memcpy(world.room.out, &number, sizeof number);
}
void expect_number(const World& world, std::uint64_t number) {
    require(std::memcmp(world.room.in, &number, sizeof number) == 0, "the bytes arrive");
}

void pass_call_by_call(World& world, std::uint64_t number) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    write_number(world, number);
    OK(measured_vipl_post_receive(world));
    OK(measured_vipl_post_send(world));
    require(succeeds([&] { return measured_vipl_send_done(world, &descriptor); }), "it is sent");
    require(succeeds([&] { return measured_vipl_receive_done(world, &descriptor); }),
            "it is received");
    expect_number(world, number);
}

void pass_whole(World& world, std::uint64_t number) {
    write_number(world, number);
    require(measured_vipl_message(world), "the message passes");
    expect_number(world, number);
}

void pass_through_queue(World& world, std::uint64_t number) {
    write_number(world, number);
    require(measured_vipl_message_through_queue(world), "the message passes");
    expect_number(world, number);
}

void pass_to_segment(World& world, std::uint64_t number) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    write_number(world, number);
    OK(measured_vipl_post_write_to_segment(world));
    require(std::memcmp(world.segment, &number, sizeof number) == 0, "the bytes are there");
    OK(VipSendDone(world.sender, &descriptor));
}

using Pass = void (*)(World&, std::uint64_t);

}  // namespace

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass(world, from + n);
}

int main() {
    static World plain(false);
    static World with_queue(true);
    for (const Pass pass : {pass_call_by_call, pass_whole, pass_through_queue, pass_to_segment}) {
        World& world = pass == pass_through_queue ? with_queue : plain;
        warm_and_count(world, pass, counted_phase);
    }
    return 0;
}
