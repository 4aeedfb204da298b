// What one message of 8 bytes, RDMA read or atomic operation costs two programs that share memory:
// the calls of vipl.h, a VI of each of two NICs "shm", all in one thread. Run under callgrind by
// counts.py. What processors pay for lines that go from one to the other is not in it.
#include "measured.hpp"
#include "vipl_world.hpp"

VIA_MEASURED VIP_RETURN measured_shm_post_receive(World& world) {
    return VipPostRecv(world.receiver, &world.room.receive, world.receive_handle);
}
VIA_MEASURED VIP_RETURN measured_shm_post_send(World& world) {
    return VipPostSend(world.sender, &world.room.send, world.handle);
}
VIA_MEASURED VIP_RETURN measured_shm_send_done(World& world, VIP_DESCRIPTOR** descriptor) {
    return VipSendDone(world.sender, descriptor);
}
VIA_MEASURED VIP_RETURN measured_shm_receive_done(World& world, VIP_DESCRIPTOR** descriptor) {
    return VipRecvDone(world.receiver, descriptor);
}
VIA_MEASURED VIP_RETURN measured_shm_receive_done_empty(World& world, VIP_DESCRIPTOR** descriptor) {
    return VipRecvDone(world.receiver, descriptor);
}

VIA_MEASURED bool measured_shm_message_through_queue(World& world) {
    if (VipPostRecv(world.receiver, &world.room.receive, world.receive_handle) != VIP_SUCCESS ||
        VipPostSend(world.sender, &world.room.send, world.handle) != VIP_SUCCESS)
        return false;
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    VIP_DESCRIPTOR* descriptor = nullptr;
    return succeeds([&] { return VipCQDone(world.completions, &vi, &receive); }) &&
           VipSendDone(vi, &descriptor) == VIP_SUCCESS &&
           succeeds([&] { return VipCQDone(world.receive_completions, &vi, &receive); }) &&
           VipRecvDone(vi, &descriptor) == VIP_SUCCESS;
}

VIA_MEASURED bool measured_shm_16_messages_at_once(World& world, Many& many) {
    VIP_UINT32 count = 0;
    const auto all = [&](VIP_RETURN code) { return code == VIP_SUCCESS && count == at_once; };
    if (!all(ViaPostRecvMany(world.receiver, many.receive_list, many.receive_handles, at_once,
                             &count)) ||
        !all(ViaPostSendMany(world.sender, many.send_list, many.handles, at_once, &count)))
        return false;
    return takes_all(ViaSendDoneMany, world.sender, many) &&
           takes_all(ViaRecvDoneMany, world.receiver, many);
}

namespace {

/// What the sender reads and changes in the receiver's memory.
struct alignas(64) Target {
    std::uint64_t word = 0;
    VIP_MEM_HANDLE handle = 0;
};
Target target;

/// The target's program looks once, as one that polls would. It has a receive posted: who waits for
/// nothing has nothing to look for.
bool is_answered(World& world, VIP_RETURN posted) {
    VIP_DESCRIPTOR* done = nullptr;
    VipRecvDone(world.receiver, &done);
    return posted == VIP_SUCCESS && succeeds([&] { return VipSendDone(world.sender, &done); });
}

}  // namespace

VIA_MEASURED bool measured_shm_rdma_read(World& world) {
    return is_answered(world, VipPostSend(world.sender, &world.room.write, world.handle));
}
VIA_MEASURED bool measured_shm_fetch_add(World& world) {
    return is_answered(world, ViaPostFetchAdd(world.sender, &world.room.write, world.handle, 1));
}
VIA_MEASURED bool measured_shm_compare_swap(World& world) {
    return is_answered(world, ViaPostCompareSwap(world.sender, &world.room.write, world.handle,
                                                 target.word, target.word + 1));
}

namespace {

void pass_call_by_call(World& world, std::uint64_t number) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    std::memcpy(world.room.out, &number, sizeof number);
    OK(measured_shm_post_receive(world));
    // Else the NIC's own thread, which sees that nobody looks, takes each message before we do.
    require(VipRecvDone(world.receiver, &descriptor) == VIP_NOT_DONE, "nothing came");
    OK(measured_shm_post_send(world));
    require(succeeds([&] { return measured_shm_send_done(world, &descriptor); }), "it is sent");
    require(succeeds([&] { return measured_shm_receive_done(world, &descriptor); }),
            "it is received");
    require(std::memcmp(world.room.in, &number, sizeof number) == 0, "the bytes arrive");
}

void look_at_nothing(World& world, std::uint64_t number) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    if (number == 0) OK(VipPostRecv(world.receiver, &world.room.receive, world.receive_handle));
    require(measured_shm_receive_done_empty(world, &descriptor) == VIP_NOT_DONE, "nothing came");
}

void pass_through_queue(World& world, std::uint64_t number) {
    std::memcpy(world.room.out, &number, sizeof number);
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    require(VipCQDone(world.receive_completions, &vi, &receive) == VIP_NOT_DONE, "nothing came");
    require(measured_shm_message_through_queue(world), "the message passes");
    require(std::memcmp(world.room.in, &number, sizeof number) == 0, "the bytes arrive");
}

void pass_many(World& world, std::uint64_t number) {
    static Many many(world);
    for (std::uint64_t& word : many.out) word = number++;
    require(measured_shm_16_messages_at_once(world, many), "the messages pass");
    require(std::memcmp(many.in, many.out, sizeof many.in) == 0, "the bytes arrive");
}

/// One behind the other: each brings what the one before it left.
template <bool (*Measured)(World&)>
void pass_answered(World& world, std::uint64_t) {
    const std::uint64_t before = target.word;
    require(Measured(world), "it is answered");
    require(std::memcmp(world.room.out, &before, sizeof before) == 0, "it is what was there");
}

using Pass = void (*)(World&, std::uint64_t);

void offer_target(World& world) {
    VIP_MEM_ATTRIBUTES rights{nullptr, VIP_TRUE, VIP_TRUE};
    OK(VipRegisterMem(world.receiver_nic, &target, sizeof target, &rights, &target.handle));
    OK(ViaSetMemAtomics(world.receiver_nic, &target, target.handle, VIP_TRUE));
    VIP_DESCRIPTOR& descriptor = world.room.write;
    descriptor.CS.SegCount = 2;
    descriptor.CS.Length = length;
    descriptor.DS[0].Remote.Data.Address = &target.word;
    descriptor.DS[0].Remote.Handle = target.handle;
    descriptor.DS[1].Local.Data.Address = world.room.out;
    descriptor.DS[1].Local.Handle = world.handle;
    descriptor.DS[1].Local.Length = length;
}

}  // namespace

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass(world, from + n);
}

int main() {
    static World plain(World::OverShm{false});
    static World with_queue(World::OverShm{true});
    // The empty polls last: they leave a receive posted.
    for (const Pass pass : {pass_call_by_call, pass_through_queue, pass_many, look_at_nothing}) {
        World& world = pass == pass_through_queue ? with_queue : plain;
        warm_and_count(world, pass, counted_phase);
    }
    offer_target(plain);
    plain.room.write.CS.Control = VIP_CONTROL_OP_RDMAREAD;
    warm_and_count(plain, pass_answered<measured_shm_rdma_read>, counted_phase);
    plain.room.write.CS.Control = 0;
    warm_and_count(plain, pass_answered<measured_shm_fetch_add>, counted_phase);
    warm_and_count(plain, pass_answered<measured_shm_compare_swap>, counted_phase);
    return 0;
}
