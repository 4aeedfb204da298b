// What further operations of vipl.h cost a program: empty polls, messages of other kinds, RDMA,
// things made and ended. Run under callgrind by counts.py.
#include "measured.hpp"
#include "vipl_world.hpp"

namespace {

constexpr VIP_UINT32 page = 4096;
constexpr VIP_UINT16 pieces = 8;

/// Room for a descriptor of so many segments.
struct alignas(64) LongDescriptor {
    VIP_DESCRIPTOR first;
    VIP_DATA_SEGMENT more[pieces - 2];
};

/// What larger and other messages need, beside the World's room. RDMA may go there.
struct alignas(page) Pages {
    unsigned char out[page];
    unsigned char in[page];
    unsigned char more[page];
    LongDescriptor send;
    LongDescriptor receive;
};
Pages pages{};
VIP_MEM_HANDLE handle_of_pages = 0;

/// A descriptor posted and done at the sender, and its message taken at the receiver.
bool exchange(World& world, VIP_DESCRIPTOR& send, VIP_DESCRIPTOR& receive, VIP_MEM_HANDLE handle) {
    VIP_DESCRIPTOR* done = nullptr;
    return VipPostRecv(world.receiver, &receive, handle) == VIP_SUCCESS &&
           VipPostSend(world.sender, &send, handle) == VIP_SUCCESS &&
           succeeds([&] { return VipSendDone(world.sender, &done); }) &&
           succeeds([&] { return VipRecvDone(world.receiver, &done); });
}

bool exchange(World& world) {
    return exchange(world, world.room.send, world.room.receive, world.handle);
}

/// RDMA that consumes no receive. The target's program looks once, as one that polls would: with a
/// receive posted, for who waits for nothing has nothing to look for.
bool remote(World& world, VIP_DESCRIPTOR& descriptor) {
    VIP_DESCRIPTOR* done = nullptr;
    const bool posted = VipPostSend(world.sender, &descriptor, world.handle) == VIP_SUCCESS;
    VipRecvDone(world.receiver, &done);
    return posted && succeeds([&] { return VipSendDone(world.sender, &done); });
}

}  // namespace

VIA_MEASURED VIP_RETURN measured_vipl_send_done_empty(World& world) {
    VIP_DESCRIPTOR* done = nullptr;
    return VipSendDone(world.sender, &done);
}
VIA_MEASURED VIP_RETURN measured_vipl_receive_done_empty(World& world) {
    VIP_DESCRIPTOR* done = nullptr;
    return VipRecvDone(world.receiver, &done);
}
VIA_MEASURED VIP_RETURN measured_vipl_cq_done_empty(World& world) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    return VipCQDone(world.completions, &vi, &receive);
}
VIA_MEASURED VIP_RETURN measured_vipl_cq_done(World& world, VIP_VI_HANDLE* vi,
                                              VIP_BOOLEAN* receive) {
    return VipCQDone(world.completions, vi, receive);
}

VIA_MEASURED bool measured_vipl_message_4k(World& world) { return exchange(world); }
VIA_MEASURED bool measured_vipl_message_8_segments(World& world) {
    return exchange(world, pages.send.first, pages.receive.first, handle_of_pages);
}
/// The copy that is made for it included.
VIA_MEASURED bool measured_vipl_message_inline(World& world) {
    ViaCopyInline(&pages.send.first, handle_of_pages, world.room.out, length);
    return exchange(world, pages.send.first, pages.receive.first, handle_of_pages);
}
VIA_MEASURED bool measured_vipl_message_immediate(World& world) { return exchange(world); }
VIA_MEASURED bool measured_vipl_message_unreliable(World& world) { return exchange(world); }
VIA_MEASURED bool measured_vipl_message_reception(World& world) { return exchange(world); }
VIA_MEASURED bool measured_vipl_rdma_write(World& world) { return remote(world, world.room.write); }
VIA_MEASURED bool measured_vipl_rdma_read(World& world) { return remote(world, world.room.write); }
VIA_MEASURED bool measured_vipl_rdma_write_immediate(World& world) {
    return exchange(world, world.room.write, world.room.receive, world.handle);
}

VIA_MEASURED VIP_RETURN measured_vipl_create_cq(World& world, VIP_CQ_HANDLE* queue) {
    return VipCreateCQ(world.nic, 64, queue);
}
VIA_MEASURED VIP_RETURN measured_vipl_destroy_cq(VIP_CQ_HANDLE queue) {
    return VipDestroyCQ(queue);
}
VIA_MEASURED VIP_RETURN measured_vipl_register_4k(World& world, VIP_MEM_HANDLE* handle) {
    return VipRegisterMem(world.nic, pages.more, page, nullptr, handle);
}
VIA_MEASURED VIP_RETURN measured_vipl_deregister_4k(World& world, VIP_MEM_HANDLE handle) {
    return VipDeregisterMem(world.nic, pages.more, handle);
}

/// Of a page, to which peers may write.
VIA_MEASURED VIP_RETURN measured_vipl_bind_window(World& world, VIP_MEM_HANDLE region,
                                                  VIP_MEM_HANDLE* window) {
    constexpr VIA_WINDOW_ATTRIBUTES writes{nullptr, VIP_TRUE, VIP_FALSE, VIP_FALSE};
    return ViaBindWindow(world.nic, pages.more, page, region, &writes, window);
}
VIA_MEASURED VIP_RETURN measured_vipl_revoke_window(World& world, VIP_MEM_HANDLE window) {
    return ViaRevokeWindow(world.nic, window);
}

namespace {

using Pass = void (*)(World&, std::uint64_t);

void look_at_nothing(World& world, std::uint64_t) {
    VIP_DESCRIPTOR* done = nullptr;
    require(measured_vipl_send_done_empty(world) == VIP_DESCRIPTOR_ERROR, "nothing is posted");
    OK(VipPostRecv(world.receiver, &world.room.receive, world.handle));
    require(measured_vipl_receive_done_empty(world) == VIP_NOT_DONE, "nothing came");
    OK(VipPostSend(world.sender, &world.room.send, world.handle));
    require(succeeds([&] { return VipSendDone(world.sender, &done); }), "it is sent");
    require(succeeds([&] { return VipRecvDone(world.receiver, &done); }), "it is received");
}

void look_at_queue(World& world, std::uint64_t) {
    require(measured_vipl_cq_done_empty(world) == VIP_NOT_DONE, "nothing is done");
    OK(VipPostRecv(world.receiver, &world.room.receive, world.handle));
    OK(VipPostSend(world.sender, &world.room.send, world.handle));
    for (int entries = 0; entries < 2; ++entries) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        VIP_DESCRIPTOR* done = nullptr;
        require(succeeds([&] { return measured_vipl_cq_done(world, &vi, &receive); }),
                "it is done");
        OK(receive == VIP_TRUE ? VipRecvDone(vi, &done) : VipSendDone(vi, &done));
    }
}

template <bool (*Measured)(World&)>
void pass(World& world, std::uint64_t) {
    require(Measured(world), "the message passes");
}

void make_and_end(World& world, std::uint64_t) {
    VIP_CQ_HANDLE queue = nullptr;
    VIP_MEM_HANDLE handle = 0;
    OK(measured_vipl_create_cq(world, &queue));
    OK(measured_vipl_destroy_cq(queue));
    OK(measured_vipl_register_4k(world, &handle));
    VIP_MEM_HANDLE window = 0;
    OK(measured_vipl_bind_window(world, handle, &window));
    OK(measured_vipl_revoke_window(world, window));
    OK(measured_vipl_deregister_4k(world, handle));
}

/// So that it shows if one more took longer where there are many.
void bind_many_windows(World& world) {
    constexpr unsigned many = 10'000;
    constexpr VIA_WINDOW_ATTRIBUTES reads{nullptr, VIP_FALSE, VIP_TRUE, VIP_FALSE};
    VIP_MEM_HANDLE window = 0;
    for (unsigned n = 0; n < many; ++n)
        OK(ViaBindWindow(world.nic, world.room.in, length, world.handle, &reads, &window));
}

VIP_DATA_SEGMENT segment(VIP_MEM_HANDLE handle, void* at, VIP_UINT32 bytes) {
    VIP_DATA_SEGMENT of{};
    of.Data.Address = at;
    of.Handle = handle;
    of.Length = bytes;
    return of;
}

void set_size(World& world, VIP_UINT32 bytes) {
    world.room.send.CS.Length = bytes;
    world.room.receive.CS.Length = bytes;
    world.room.send.DS[0].Local = segment(handle_of_pages, pages.out, bytes);
    world.room.receive.DS[0].Local = segment(handle_of_pages, pages.in, bytes);
}

/// A page in pieces of as many bytes.
void set_pieces(LongDescriptor& descriptor, unsigned char* at) {
    descriptor.first.CS.SegCount = pieces;
    descriptor.first.CS.Length = page;
    auto* segments = reinterpret_cast<unsigned char*>(&descriptor) + offsetof(VIP_DESCRIPTOR, DS);
    for (std::size_t n = 0; n < pieces; ++n) {
        const auto piece = segment(handle_of_pages, at + n * page / pieces, page / pieces);
        std::memcpy(segments + n * sizeof piece, &piece, sizeof piece);
    }
}

/// Short messages from behind their descriptor.
void set_inline() {
    pages.send.first.CS = {};
    pages.receive.first.CS.SegCount = 1;
    pages.receive.first.CS.Length = length;
    pages.receive.first.DS[0].Local = segment(handle_of_pages, pages.in, length);
}

/// RDMA from one page to another, or back.
void set_remote(World& world, VIP_UINT16 control) {
    VIP_DESCRIPTOR& descriptor = world.room.write;
    descriptor.CS.Control = control;
    descriptor.CS.SegCount = 2;
    descriptor.CS.Length = length;
    descriptor.DS[0].Remote.Data.Address = pages.in;
    descriptor.DS[0].Remote.Handle = handle_of_pages;
    descriptor.DS[1].Local = segment(handle_of_pages, pages.out, length);
}

/// The receive that is posted gets a message.
void end_waiting(World& world) {
    VIP_DESCRIPTOR* done = nullptr;
    OK(VipPostSend(world.sender, &world.room.send, world.handle));
    require(succeeds([&] { return VipSendDone(world.sender, &done); }), "it is sent");
    require(succeeds([&] { return VipRecvDone(world.receiver, &done); }), "it is received");
}

}  // namespace

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass(world, from + n);
}

int main() {
    static World plain(false);
    static World with_queue(true);
    static World unreliable(false, VIP_SERVICE_UNRELIABLE);
    static World reception(false, VIP_SERVICE_RELIABLE_RECEPTION);
    const auto count = [](World& world, Pass pass) { warm_and_count(world, pass, counted_phase); };

    count(plain, look_at_nothing);
    count(with_queue, look_at_queue);
    bind_many_windows(plain);
    count(plain, make_and_end);
    count(unreliable, pass<measured_vipl_message_unreliable>);
    count(reception, pass<measured_vipl_message_reception>);
    VIP_MEM_ATTRIBUTES rights{nullptr, VIP_TRUE, VIP_TRUE};
    OK(VipRegisterMem(plain.nic, &pages, sizeof pages, &rights, &handle_of_pages));
    set_size(plain, page);
    count(plain, pass<measured_vipl_message_4k>);
    set_pieces(pages.send, pages.out);
    set_pieces(pages.receive, pages.in);
    count(plain, pass<measured_vipl_message_8_segments>);
    set_inline();
    count(plain, pass<measured_vipl_message_inline>);
    set_size(plain, length);
    plain.room.send.CS.Control = VIP_CONTROL_IMMEDIATE;
    count(plain, pass<measured_vipl_message_immediate>);
    set_remote(plain, VIP_CONTROL_OP_RDMAWRITE);
    OK(VipPostRecv(plain.receiver, &plain.room.receive, plain.handle));
    count(plain, pass<measured_vipl_rdma_write>);
    end_waiting(plain);
    set_remote(plain, VIP_CONTROL_OP_RDMAREAD);
    count(plain, pass<measured_vipl_rdma_read>);
    set_remote(plain, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE);
    count(plain, pass<measured_vipl_rdma_write_immediate>);
    return 0;
}
