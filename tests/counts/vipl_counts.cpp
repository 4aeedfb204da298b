// What one message of 8 bytes costs a program: the calls of vipl.h, two VIs of the NIC "loopback",
// all in one thread. Run under callgrind by counts.py.
#include "measured.hpp"
#include "vipl_world.hpp"

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

static inline bool pass_message(World& world) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    return VipPostRecv(world.receiver, &world.room.receive, world.handle) == VIP_SUCCESS &&
           VipPostSend(world.sender, &world.room.send, world.handle) == VIP_SUCCESS &&
           succeeds([&] { return VipSendDone(world.sender, &descriptor); }) &&
           succeeds([&] { return VipRecvDone(world.receiver, &descriptor); });
}
VIA_MEASURED bool measured_vipl_message(World& world) { return pass_message(world); }
/// The buffers in other regions than the descriptors, as libraries above VIA have them.
VIA_MEASURED bool measured_vipl_message_buffers_apart(World& world) { return pass_message(world); }

/// The receive comes from a shared receive queue.
VIA_MEASURED bool measured_vipl_message_shared(World& world) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    return ViaPostSharedRecv(world.shared, &world.room.receive, world.handle) == VIP_SUCCESS &&
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

VIA_MEASURED bool measured_vipl_16_messages_at_once(World& world, Many& many) {
    VIP_UINT32 count = 0;
    const auto all = [&](VIP_RETURN code) { return code == VIP_SUCCESS && count == at_once; };
    return all(ViaPostRecvMany(world.receiver, many.receive_list, many.handles, at_once, &count)) &&
           all(ViaPostSendMany(world.sender, many.send_list, many.handles, at_once, &count)) &&
           takes_all(ViaSendDoneMany, world.sender, many) &&
           takes_all(ViaRecvDoneMany, world.receiver, many);
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

struct Buffers {
    std::uint64_t out;
    std::uint64_t in;
};
Buffers buffers{};

void set_apart(World& world) {
    VIP_MEM_HANDLE handle = 0;
    OK(VipRegisterMem(world.nic, &buffers, sizeof buffers, nullptr, &handle));
    world.fill(world.room.send, &buffers.out, handle);
    world.fill(world.room.receive, &buffers.in, handle);
}

void pass_apart(World& world, std::uint64_t number) {
    buffers.out = number;
    require(measured_vipl_message_buffers_apart(world), "the message passes");
    require(buffers.in == number, "the bytes arrive");
}

void pass_shared(World& world, std::uint64_t number) {
    write_number(world, number);
    require(measured_vipl_message_shared(world), "the message passes");
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

void pass_many(World& world, std::uint64_t number) {
    static Many many(world);
    for (std::uint64_t& word : many.out) word = number++;
    require(measured_vipl_16_messages_at_once(world, many), "the messages pass");
    require(std::memcmp(many.in, many.out, sizeof many.in) == 0, "the bytes arrive");
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
    static World apart(false);
    static World sharing(false, VIP_SERVICE_RELIABLE_DELIVERY, true);
    set_apart(apart);
    for (const Pass pass : {pass_call_by_call, pass_whole, pass_apart, pass_shared,
                            pass_through_queue, pass_to_segment, pass_many}) {
        World& world = pass == pass_through_queue ? with_queue
                       : pass == pass_apart       ? apart
                       : pass == pass_shared      ? sharing
                                                  : plain;
        warm_and_count(world, pass, counted_phase);
    }
    return 0;
}
