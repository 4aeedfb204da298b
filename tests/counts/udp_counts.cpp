// What one message of 8 bytes costs two programs on a network: the calls of vipl.h, a VI of each of
// two NICs "udp" at the interface lo, both in one thread, which answer each other. Run under
// callgrind by counts.py. What the kernel does is not in it. Looks are not counted: which calls
// they make depends on how datagrams came before.
#include "measured.hpp"
#include "vipl_world.hpp"

VIA_MEASURED VIP_RETURN measured_udp_post_send(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor,
                                               VIP_MEM_HANDLE handle) {
    return VipPostSend(vi, descriptor, handle);
}
VIA_MEASURED VIP_RETURN measured_udp_send_done(VIP_VI_HANDLE vi, VIP_DESCRIPTOR** descriptor) {
    return VipSendDone(vi, descriptor);
}
namespace {

struct End {
    VIP_VI_HANDLE vi;
    VIP_MEM_HANDLE handle;
    VIP_DESCRIPTOR* send;
    VIP_DESCRIPTOR* receive;
};

struct Both {
    Both(World& world, Many& many)
        : asks{world.sender, many.handle, &many.sends[0], &many.receives[0]},
          answers{world.receiver, many.receive_handle, &many.sends[1], &many.receives[1]} {
        world.fill(*asks.receive, &many.in[0], asks.handle);
        world.fill(*answers.send, &many.out[1], answers.handle);
    }
    End asks;
    End answers;
};

/// One message, which tells `to` besides that its own one before has come.
void pass(const End& from, const End& to, bool is_answer) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    require(VipRecvDone(to.vi, &descriptor) == VIP_NOT_DONE, "nothing came");
    OK(measured_udp_post_send(from.vi, from.send, from.handle));
    require(succeeds([&] { return VipRecvDone(to.vi, &descriptor); }), "it is received");
    OK(VipPostRecv(to.vi, to.receive, to.handle));
    if (is_answer)
        require(succeeds([&] { return measured_udp_send_done(to.vi, &descriptor); }), "it is sent");
}

void ask_and_answer(World& world, std::uint64_t number) {
    static Many many(world);
    static const Both both(world, many);
    if (number == 0) {
        OK(VipPostRecv(both.asks.vi, both.asks.receive, both.asks.handle));
        OK(VipPostRecv(both.answers.vi, both.answers.receive, both.answers.handle));
    }
    many.out[0] = many.out[1] = number;
    many.in[0] = many.in[1] = ~number;
    pass(both.asks, both.answers, number != 0);
    pass(both.answers, both.asks, true);
    require(many.in[0] == number && many.in[1] == number, "the bytes arrive");
}

}  // namespace

using Pass = void (*)(World&, std::uint64_t);

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass_one, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass_one(world, from + n);
}

int main() {
    static World world(World::OfTwo{"udp:lo", false});
    warm_and_count(world, Pass{ask_and_answer}, counted_phase);
    return 0;
}
