// The same messages as in vipl_counts.cpp, by the calls of via/via.hpp: what a C++ program pays
// beyond a C one. Run under callgrind by counts.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <via/via.hpp>

#include "measured.hpp"

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::_Exit(1);
}

template <class T>
T must(via::Expected<T> result) {
    if (!result) require(false, result.error().message().c_str());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

constexpr std::size_t length = 8;

struct alignas(64) Room {
    VIP_DESCRIPTOR send;
    VIP_DESCRIPTOR receive;
    unsigned char out[64];
    unsigned char in[64];
};

class World {
public:
    explicit World(bool with_completion_queue)
        : nic(must(via::Nic::open("loopback"))),
          region(must(via::MemoryRegion::of(nic, via::bytes_of(room)))) {
        if (with_completion_queue) completions = must(via::CompletionQueue::create(nic, 64));
        via::CompletionQueue* queue = completions ? &*completions : nullptr;
        sender = must(via::Vi::create(nic, {.sends = queue, .receives = queue}));
        receiver = must(via::Vi::create(nic, {.sends = queue, .receives = queue}));
        const via::Listener listener(nic, "x");
        std::thread listening([&] { must(listener.accept(*receiver, std::chrono::minutes(1))); });
        must(sender->connect(must(nic.address("x")), {.wait_for_listener = true}));
        listening.join();
        send.send(region.segment(via::bytes_of(room.out).first(length)));
        receive.receive(region.segment(via::bytes_of(room.in).first(length)));
    }

    Room room{};
    via::Nic nic;
    via::MemoryRegion region;
    std::optional<via::CompletionQueue> completions;
    std::optional<via::Vi> sender;
    std::optional<via::Vi> receiver;
    via::Descriptor send = region.descriptor(room.send);
    via::Descriptor receive = region.descriptor(room.receive);
};

/// Now and then the NIC's own thread has the turn, and a call answers that nothing is done yet.
template <class Poll>
bool completes(Poll poll) {
    auto done = poll();
    while (done && !*done) done = poll();
    return done.has_value();
}

}  // namespace

VIA_MEASURED bool measured_cpp_post_receive(World& world) {
    return world.receiver->post_receive(world.receive).has_value();
}
VIA_MEASURED bool measured_cpp_post_send(World& world) {
    return world.sender->post_send(world.send).has_value();
}
VIA_MEASURED bool measured_cpp_send_done(World& world) {
    const auto done = world.sender->send_done();
    return done && *done;
}
VIA_MEASURED bool measured_cpp_receive_done(World& world) {
    const auto done = world.receiver->receive_done();
    return done && *done;
}

VIA_MEASURED bool measured_cpp_message(World& world) {
    return world.receiver->post_receive(world.receive).has_value() &&
           world.sender->post_send(world.send).has_value() &&
           completes([&] { return world.sender->send_done(); }) &&
           completes([&] { return world.receiver->receive_done(); });
}

VIA_MEASURED bool measured_cpp_message_through_queue(World& world) {
    bool right = world.receiver->post_receive(world.receive).has_value() &&
                 world.sender->post_send(world.send).has_value();
    for (int entries = 0; right && entries < 2; ++entries)
        right = completes([&] { return world.completions->done(); });
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
    write_number(world, number);
    require(measured_cpp_post_receive(world), "a receive is posted");
    require(measured_cpp_post_send(world), "a send is posted");
    while (!measured_cpp_send_done(world)) {
    }
    while (!measured_cpp_receive_done(world)) {
    }
    expect_number(world, number);
}

void pass_whole(World& world, std::uint64_t number) {
    write_number(world, number);
    require(measured_cpp_message(world), "the message passes");
    expect_number(world, number);
}

void pass_through_queue(World& world, std::uint64_t number) {
    write_number(world, number);
    require(measured_cpp_message_through_queue(world), "the message passes");
    expect_number(world, number);
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
    for (const Pass pass : {pass_call_by_call, pass_whole, pass_through_queue}) {
        World& world = pass == pass_through_queue ? with_queue : plain;
        warm_and_count(world, pass, counted_phase);
    }
    return 0;
}
