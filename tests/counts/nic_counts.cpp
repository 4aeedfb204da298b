// What one message of 8 bytes costs in the library without its C API: two VIs of a NIC on the
// loopback device, all in one thread. Run under callgrind by counts.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "device/loopback/loopback_device.hpp"
#include "measured.hpp"
#include "nic/nic.hpp"

using namespace via;

namespace {

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::exit(1);
}

void require(bool holds, const char* what) {
    if (!holds) fail(what);
}

struct NobodyAttends final : nic::Attendant {
    void attend() override {}
    void report(const engine::ErrorEvent&) override { fail("no error is reported"); }
    Time now() override { return {}; }
};

constexpr std::uint32_t length = 8;

struct alignas(64) Room {
    queue::Descriptor send;
    queue::Descriptor receive;
    queue::Descriptor write;
    std::byte out[64];
    std::byte in[64];
    std::byte target[64];
};

class World {
public:
    World(bool with_completion_queue)
        : nic_("counts", NicLimits{}, counters_, nobody_),
          with_completion_queue_(with_completion_queue) {
        HostAddress address;
        address.length = 6;
        nic_.add_device(std::make_unique<device::loopback::LoopbackDevice>(address));
        const auto handle = nic_.register_memory(reinterpret_cast<std::uint64_t>(&room_),
                                                 sizeof room_, {memory::no_tag, true, true});
        require(handle.has_value(), "memory can be registered");
        handle_ = *handle;
        if (with_completion_queue_) {
            const auto name = nic_.create_completion_queue(64);
            require(name.has_value(), "a completion queue can be made");
            completions_ = nic_.completion_queue(*name);
        }
        sender_ = make_vi();
        receiver_ = make_vi();
        connect(address);
        fill(room_.send, queue::control::send_receive, room_.out);
        fill(room_.receive, queue::control::send_receive, room_.in);
        fill(room_.write, queue::control::rdma_write, room_.out);
        room_.write.control.segment_count = 2;
        room_.write.segments[1] = room_.write.segments[0];
        room_.write.segments[0] = {reinterpret_cast<std::uint64_t>(room_.target), handle_, 0};
    }

    nic::Nic& nic() { return nic_; }
    engine::Vi& sender() { return *sender_; }
    engine::Vi& receiver() { return *receiver_; }
    queue::CompletionQueue& completions() { return *completions_; }
    Room& room() { return room_; }
    memory::MemoryHandle handle() const { return handle_; }

    /// The message's number goes out and must come in.
    void write_number(std::uint64_t number) { std::memcpy(room_.out, &number, sizeof number); }
    void expect_number(const std::byte* at, std::uint64_t number) const {
        require(std::memcmp(at, &number, sizeof number) == 0, "the bytes arrive");
    }
    const Room& room() const { return room_; }

private:
    engine::Vi* make_vi() {
        engine::ViAttributes attributes;
        attributes.reliability = engine::Reliability::delivery;
        attributes.transfer_length_max = 65536;
        attributes.rdma_write = attributes.rdma_read = true;
        return nic_.with_turn([&] {
            const auto vi = nic_.engine().create_vi(attributes, completions_, completions_);
            require(vi.has_value(), "a VI can be made");
            return *vi;
        });
    }
    void connect(const HostAddress& address) {
        engine::Listener listener;
        listener.discriminator.length = 1;
        require(nic_.listen(listener) == Status::success, "one can listen");
        const NetAddress remote{address, listener.discriminator};
        require(nic_.connect(*sender_, remote, remote, Time::never()) == Status::success,
                "one can ask for a connection");
        while (!listener.given.load()) nic_.poll();
        require(nic_.unlisten(listener), "the request is there");
        const Status accepted =
            nic_.with_turn([&] { return nic_.engine().accept(listener.connection, *receiver_); });
        require(accepted == Status::success, "it is accepted");
        while (sender_->state.load() == engine::ViState::connect_pending) nic_.poll();
        require(sender_->state.load() == engine::ViState::connected, "both are connected");
    }
    void fill(queue::Descriptor& descriptor, std::uint16_t operation, std::byte* buffer) const {
        descriptor = {};
        descriptor.control.segment_count = 1;
        descriptor.control.control = operation;
        descriptor.control.length = length;
        descriptor.segments[0] = {reinterpret_cast<std::uint64_t>(buffer), handle_, length};
    }

    Counters counters_{};
    NobodyAttends nobody_;
    Room room_{};
    nic::Nic nic_;
    bool with_completion_queue_;
    memory::MemoryHandle handle_ = 0;
    queue::CompletionQueue* completions_ = nullptr;
    engine::Vi* sender_ = nullptr;
    engine::Vi* receiver_ = nullptr;
};

}  // namespace

// The single calls
// -----------------------------------------------------------------------------------

VIA_MEASURED Status measured_nic_post_receive(World& world) {
    return world.nic().post_receive(world.receiver(), &world.room().receive, world.handle());
}
VIA_MEASURED Status measured_nic_post_send(World& world) {
    return world.nic().post_send(world.sender(), &world.room().send, world.handle());
}
VIA_MEASURED Status measured_nic_send_done(World& world, void*& descriptor) {
    return world.nic().done(world.sender().send, descriptor);
}
VIA_MEASURED Status measured_nic_receive_done(World& world, void*& descriptor) {
    return world.nic().done(world.receiver().receive, descriptor);
}
VIA_MEASURED Status measured_nic_nothing_done(World& world, void*& descriptor) {
    return world.nic().done(world.receiver().receive, descriptor);
}
VIA_MEASURED Status measured_nic_nothing_completed(World& world, queue::Completion& completion) {
    return world.nic().completion_done(world.completions(), completion);
}

// A whole message: both ends, all calls
// --------------------------------------------------------------

VIA_MEASURED bool measured_nic_message(World& world) {
    void* descriptor = nullptr;
    return world.nic().post_receive(world.receiver(), &world.room().receive, world.handle()) ==
               Status::success &&
           world.nic().post_send(world.sender(), &world.room().send, world.handle()) ==
               Status::success &&
           world.nic().done(world.sender().send, descriptor) == Status::success &&
           world.nic().done(world.receiver().receive, descriptor) == Status::success;
}

/// The write is done when the target's turn has placed it; its program makes no call.
VIA_MEASURED bool measured_nic_rdma_write(World& world) {
    void* descriptor = nullptr;
    const bool posted = world.nic().post_send(world.sender(), &world.room().write,
                                              world.handle()) == Status::success;
    world.nic().poll();
    return posted && world.nic().done(world.sender().send, descriptor) == Status::success;
}

VIA_MEASURED bool measured_nic_message_through_queue(World& world) {
    bool right = world.nic().post_receive(world.receiver(), &world.room().receive,
                                          world.handle()) == Status::success &&
                 world.nic().post_send(world.sender(), &world.room().send, world.handle()) ==
                     Status::success;
    for (int entries = 0; right && entries < 2; ++entries) {
        queue::Completion completion;
        void* descriptor = nullptr;
        right = world.nic().completion_done(world.completions(), completion) == Status::success;
        engine::ViQueue& queue =
            completion.receive ? world.receiver().receive : world.sender().send;
        right = right && world.nic().done(queue, descriptor) == Status::success;
    }
    return right;
}

namespace {

void pass_call_by_call(World& world, std::uint64_t number) {
    void* descriptor = nullptr;
    world.write_number(number);
    require(measured_nic_post_receive(world) == Status::success, "a receive is posted");
    require(measured_nic_nothing_done(world, descriptor) == Status::not_done, "nothing came yet");
    require(measured_nic_post_send(world) == Status::success, "a send is posted");
    require(measured_nic_send_done(world, descriptor) == Status::success, "it is sent");
    require(measured_nic_receive_done(world, descriptor) == Status::success, "it is received");
    world.expect_number(world.room().in, number);
}

void pass_whole(World& world, std::uint64_t number) {
    world.write_number(number);
    require(measured_nic_message(world), "the message passes");
    world.expect_number(world.room().in, number);
}

void pass_write(World& world, std::uint64_t number) {
    world.write_number(number);
    require(measured_nic_rdma_write(world), "the write passes");
    world.expect_number(world.room().target, number);
}

void pass_through_queue(World& world, std::uint64_t number) {
    queue::Completion completion;
    require(measured_nic_nothing_completed(world, completion) == Status::not_done,
            "nothing is completed");
    world.write_number(number);
    require(measured_nic_message_through_queue(world), "the message passes");
    world.expect_number(world.room().in, number);
}

using Pass = void (*)(World&, std::uint64_t);

}  // namespace

/// callgrind counts only within this function.
VIA_MEASURED void counted_phase(World& world, Pass pass, std::uint64_t from) {
    for (unsigned n = 0; n < messages_counted; ++n) pass(world, from + n);
}

int main() {
    // As the agent has it, so that locks and the turn come to be owned; there is one thread here.
    set_heavy_fence(FenceReach::process, [] { atomic_fence(std::memory_order_seq_cst); });
    World plain(false);
    World with_queue(true);
    for (const Pass pass : {pass_call_by_call, pass_whole, pass_write, pass_through_queue}) {
        World& world = pass == pass_through_queue ? with_queue : plain;
        warm_and_count(world, pass, counted_phase);
    }
    return 0;
}
