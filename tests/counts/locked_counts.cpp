// Locked instructions, full fences and system calls of one message of 8 bytes: none, once the
// program's thread owns the locks and the turn. Where membarrier is missing this is skipped.
#include <chrono>
#include <cstdint>

#include "step_alone.hpp"
#include "vipl_world.hpp"

namespace {

constexpr int skipped = 77;
/// Messages before each that is looked at, so that the thread owns all.
constexpr unsigned messages_between = 300;

bool pass(World& world) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    if (VipPostRecv(world.receiver, &world.room.receive, world.receive_handle) != VIP_SUCCESS ||
        VipPostSend(world.sender, &world.room.send, world.handle) != VIP_SUCCESS)
        return false;
    if (world.completions != nullptr) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        if (!succeeds([&] { return VipCQDone(world.completions, &vi, &receive); }) ||
            !succeeds([&] { return VipCQDone(world.receive_completions, &vi, &receive); }))
            return false;
    }
    return succeeds([&] { return VipSendDone(world.sender, &descriptor); }) &&
           succeeds([&] { return VipRecvDone(world.receiver, &descriptor); });
}

/// The library's threads see that the program polls.
void pass_for_a_while(World& world) {
    const auto over = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < over) require(pass(world), "a message passes");
}

unsigned faults = 0;

template <class Try>
void look_at(const char* nic, const char* what, unsigned least, unsigned allowed, Try try_once) {
    const Fewest found = step_again_and_again(least, allowed, try_once);
    require(found.best.instructions != 0, "it was carried out in full");
    const bool right = found.is_at_most(allowed);
    std::printf("%-10s%-22s%4u wait, %zu always, of %u instructions%s\n", nic, what,
                found.best.waits, found.always.size(), found.best.instructions,
                right ? "" : "  TOO MUCH");
    faults += right ? 0 : 1;
}

/// What a message takes, one after the other. Of each message one part is stepped through.
enum class Part : std::uint8_t {
    post_receive,
    empty_poll,
    post_send,
    queue_done,
    receive_done,
    send_done,
};
struct PartEntry {
    Part part;
    const char* name;
    unsigned least;
};
constexpr PartEntry all_parts[] = {
    {Part::post_receive, "post receive", 100},
    {Part::empty_poll, "receive done, nothing there", 150},
    {Part::post_send, "post send", 300},
    {Part::queue_done, "queue done", 100},
    {Part::receive_done, "receive done", 300},
    {Part::send_done, "send done", 50},
};

class Message {
public:
    Message(World& world, Part stepped) : world_(world), stepped_(stepped) {}

    /// Passes one, and looks at its part.
    Steps pass_one() {
        VIP_DESCRIPTOR* descriptor = nullptr;
        OK(carry_out(Part::post_receive, [&] {
            return VipPostRecv(world_.receiver, &world_.room.receive, world_.receive_handle);
        }));
        const auto receive_done = [&] { return VipRecvDone(world_.receiver, &descriptor); };
        if (world_.completions == nullptr)
            require(carry_out(Part::empty_poll, receive_done) == VIP_NOT_DONE, "nothing came");
        OK(carry_out(Part::post_send,
                     [&] { return VipPostSend(world_.sender, &world_.room.send, world_.handle); }));
        if (world_.completions != nullptr) {
            // The send's, which is there when its post returns; then the receive's.
            take_from(world_.completions, Part::queue_done);
            take_from(world_.receive_completions, Part::empty_poll);
        }
        complete(Part::receive_done, receive_done);
        complete(Part::send_done, [&] { return VipSendDone(world_.sender, &descriptor); });
        return found_;
    }

private:
    template <class Call>
    VIP_RETURN carry_out(Part part, Call call) {
        if (part != stepped_) return call();
        VIP_RETURN code = VIP_NOT_DONE;
        step_through([&] { code = call(); });
        found_ = steps;
        return code;
    }
    template <class Call>
    void complete(Part part, Call call) {
        const VIP_RETURN code = carry_out(part, call);
        require(code == VIP_SUCCESS || (code == VIP_NOT_DONE && succeeds(call)), "it is done");
    }
    void take_from(VIP_CQ_HANDLE queue, Part part) {
        VIP_VI_HANDLE vi = nullptr;
        VIP_BOOLEAN receive = VIP_FALSE;
        complete(part, [&] { return VipCQDone(queue, &vi, &receive); });
    }

    World& world_;
    Part stepped_;
    Steps found_;
};

/// Over loopback a post leaves the same NIC something to receive, and asks whether a call waits for
/// it: a mutex, and a look at whether the NIC's own thread sleeps.
constexpr unsigned of_post_over_loopback = 3;

void look_at_message(const char* nic, World& world) {
    const bool one_nic = world.nic == world.receiver_nic;
    for (const auto& [part, what, least] : all_parts) {
        if ((part == Part::queue_done) != (world.completions != nullptr)) continue;
        const unsigned allowed = one_nic && part == Part::post_send ? of_post_over_loopback : 0;
        look_at(nic, what, least, allowed, [&, of = part] {
            for (unsigned m = 0; m < messages_between; ++m)
                require(pass(world), "a message passes");
            return Message(world, of).pass_one();
        });
    }
}

void look_at_write(World& world) {
    VIP_DESCRIPTOR* descriptor = nullptr;
    const auto write = [&] { return VipPostSend(world.sender, &world.room.write, world.handle); };
    const auto done = [&] {
        return succeeds([&] { return VipSendDone(world.sender, &descriptor); });
    };
    look_at("segment", "post write", 300, 0, [&] {
        for (unsigned m = 0; m < messages_between; ++m)
            require(write() == VIP_SUCCESS && done(), "it is written");
        VIP_RETURN code = VIP_NOT_DONE;
        step_through([&] { code = write(); });
        const Steps found = steps;
        OK(code);
        require(done(), "it is written");
        return found;
    });
}

/// By the thread that owns the turn, as it binds one for each request that it makes.
void look_at_windows(World& world) {
    constexpr VIA_WINDOW_ATTRIBUTES writes{nullptr, VIP_TRUE, VIP_FALSE, VIP_FALSE};
    VIP_MEM_HANDLE window = 0;
    const auto bind = [&] {
        return ViaBindWindow(world.nic, world.room.in, sizeof world.room.in, world.handle, &writes,
                             &window);
    };
    const auto revoke = [&] { return ViaRevokeWindow(world.nic, window); };
    const auto step = [&](auto call) {
        VIP_RETURN code = VIP_NOT_DONE;
        step_through([&] { code = call(); });
        OK(code);
        return steps;
    };
    const auto after_messages = [&](bool looks_at_bind) {
        for (unsigned m = 0; m < messages_between; ++m) require(pass(world), "a message passes");
        Steps found;
        if (looks_at_bind) {
            found = step(bind);
            OK(revoke());
        } else {
            OK(bind());
            found = step(revoke);
        }
        return found;
    };
    look_at("shm", "bind window", 100, 0, [&] { return after_messages(true); });
    look_at("shm", "revoke window", 100, 0, [&] { return after_messages(false); });
}

}  // namespace

int main() {
    if (!has_membarrier()) {
        std::puts("skipped: the kernel has no membarrier");
        return skipped;
    }
    begin_to_step();
    World plain(false);
    World with_queue(true);
    World shm{World::OverShm{false}};
    World shm_with_queue{World::OverShm{true}};
    for (World* world : {&plain, &with_queue, &shm, &shm_with_queue}) pass_for_a_while(*world);
    const OthersHeldStill others;
    require(others.all(), "the library's threads run when nobody else does");
    look_at_message("loopback", plain);
    look_at_message("shm", shm);
    look_at_message("loopback", with_queue);
    look_at_message("shm", shm_with_queue);
    look_at_write(plain);
    look_at_windows(shm);
    return faults == 0 ? 0 : 1;
}
