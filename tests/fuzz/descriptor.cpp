// Descriptors of arbitrary bytes, posted to two connected VIs of a NIC on the loopback device. The
// program may write what it likes; the NIC touches only what the descriptor's VI may use.
#include <map>
#include <memory>
#include <vector>

#include "device/loopback/loopback_device.hpp"
#include "nic/nic.hpp"
#include "scene.hpp"

using namespace via;

namespace {

struct NobodyAttends final : nic::Attendant {
    void attend() override {}
    void report(const engine::ErrorEvent&) override {}
    Time now() override { return {}; }
};

class World {
public:
    explicit World(fuzz::Input& input) : nic_("fuzz", limits(), counters_, nobody_) {
        HostAddress address;
        address.length = 6;
        nic_.add_device(std::make_unique<device::loopback::LoopbackDevice>(
            address, device::loopback::LoopbackOptions{512, 8}));
        const memory::ProtectionTag tag = *nic_.memory().create_tag();
        other_tag_ = *nic_.memory().create_tag();
        descriptors_ = add(arena_->descriptors.data(), sizeof arena_->descriptors, tag, false);
        buffer_ = add(arena_->buffer.data(), arena_->buffer.size(), tag, true);
        open_ = add(arena_->open.data(), arena_->open.size(), tag, true);
        secret_ = add(arena_->secret.data(), arena_->secret.size(), other_tag_, true);
        constexpr engine::Reliability levels[] = {engine::Reliability::delivery,
                                                  engine::Reliability::reception,
                                                  engine::Reliability::unreliable};
        engine::ViAttributes attributes;
        attributes.reliability = levels[input.byte() % 3];
        attributes.transfer_length_max = 4000;
        attributes.tag = tag;
        attributes.rdma_write = true;
        attributes.rdma_read = attributes.reliability != engine::Reliability::unreliable;
        for (engine::Vi*& vi : vis_)
            vi = nic_.with_turn(
                [&] { return *nic_.engine().create_vi(attributes, nullptr, nullptr); });
        connect();
    }
    ~World() {
        for (engine::Vi* vi : vis_)
            nic_.with_turn([&] {
                nic_.engine().disconnect(*vi);
                return 0;
            });
        take_all();
        fuzz::require(posted_ == taken_, "every descriptor comes back, once");
        arena_->check();
    }

    void step(fuzz::Input& input) {
        const std::uint8_t what = input.byte();
        if (what < 200)
            post(input, what);
        else if (what < 240)
            take_all();
        else if (what < 248)
            nic_.poll();
        else
            connect();
        arena_->check();
    }

private:
    using Arena = fuzz::Arena;

    static NicLimits limits() {
        NicLimits limits;
        limits.vis_max = 64;
        limits.regions_max = 64;
        limits.protection_tags_max = 8;
        limits.completion_queues_max = 8;
        limits.descriptors_per_queue_max = 16;
        return limits;
    }
    memory::MemoryHandle add(void* at, std::size_t bytes, memory::ProtectionTag tag, bool remote) {
        return *nic_.register_memory(fuzz::address_of(at), bytes, {tag, remote, remote});
    }
    void connect() {
        for (engine::Vi* vi : vis_)
            nic_.with_turn([&] {
                nic_.engine().disconnect(*vi);
                return 0;
            });
        take_all();
        engine::Listener listener;
        listener.discriminator.length = 1;
        nic_.listen(listener);
        HostAddress address;
        address.length = 6;
        const NetAddress remote{address, listener.discriminator};
        nic_.connect(*vis_[0], remote, remote, Time::never());
        for (int polls = 0; polls < 8 && !listener.given.load(); ++polls) nic_.poll();
        fuzz::require(nic_.unlisten(listener), "the request arrives");
        nic_.with_turn([&] { return nic_.engine().accept(listener.connection, *vis_[1]); });
        for (int polls = 0; polls < 8; ++polls) nic_.poll();
    }

    std::uint64_t pick_address(fuzz::Input& input) {
        const std::uint64_t offset = input.half();
        switch (input.byte() % 8) {
            case 0:
                return fuzz::address_of(arena_->secret.data()) + offset % 4096;
            case 1:
                return fuzz::address_of(arena_->open.data()) + offset % 5000;
            case 2:
                return input.wide();
            case 3:
                return fuzz::address_of(arena_.get()) + offset;
            default:
                return fuzz::address_of(arena_->buffer.data()) + offset % 20500;
        }
    }
    memory::MemoryHandle pick_handle(fuzz::Input& input) {
        switch (input.byte() % 8) {
            case 0:
                return secret_;
            case 1:
                return open_;
            case 2:
                return input.word();
            default:
                return buffer_;  // not the descriptors' own: what is received would change them
        }
    }

    void post(fuzz::Input& input, std::uint8_t what) {
        Arena::Slot* slot = nullptr;
        for (std::size_t tried = 0; tried < Arena::descriptors_max && slot == nullptr; ++tried) {
            Arena::Slot& at = arena_->descriptors[next_++ % Arena::descriptors_max];
            if (!outstanding_[&at.descriptor]) slot = &at;
        }
        if (slot == nullptr) return take_all();
        std::memset(static_cast<void*>(slot), 0, sizeof *slot);
        queue::Descriptor& descriptor = slot->descriptor;
        const bool raw = what % 8 == 7;
        std::uint64_t total = 0;
        if (raw) {
            const auto bytes = input.bytes(sizeof *slot);
            std::memcpy(static_cast<void*>(slot), bytes.data(), bytes.size());
        } else {
            descriptor.control.segment_count = input.byte() % 7;
            descriptor.control.control = input.byte() % 16;
            if (what % 16 == 6) descriptor.control.reserved = input.byte();
            for (unsigned n = 0; n < descriptor.control.segment_count; ++n) {
                descriptor.segments[n] = {pick_address(input), pick_handle(input),
                                          input.half() % 3000U};
                if (n != 0 || descriptor.control.control % 4 == 0)
                    total += descriptor.segments[n].length;
            }
            descriptor.control.length =
                what % 16 == 5 ? input.word() : static_cast<std::uint32_t>(total);
        }
        descriptor.control.status = input.byte();
        descriptor.control.next = ~0ULL;
        void* at = &descriptor;
        memory::MemoryHandle handle = descriptors_;
        // Somewhere else, but not at a descriptor that may be posted already.
        if (what % 32 == 3) at = arena_->open.data() + input.byte();
        if (what % 32 == 9) at = reinterpret_cast<void*>(input.wide() | 1U << 31);
        if (what % 32 == 4) handle = pick_handle(input);
        engine::Vi& vi = *vis_[what / 2 % 2];
        const Status status =
            what % 2 == 0 ? nic_.post_receive(vi, at, handle) : nic_.post_send(vi, at, handle);
        if (status != Status::success) return;
        outstanding_[static_cast<queue::Descriptor*>(at)] = true;
        ++posted_;
    }

    void take_all() {
        for (engine::Vi* vi : vis_)
            for (engine::ViQueue* queue : {&vi->send, &vi->receive}) take_from(*queue);
    }
    void take_from(engine::ViQueue& queue) {
        for (;;) {
            void* taken = nullptr;
            const Status status = nic_.done(queue, taken);
            if (status == Status::not_done || taken == nullptr) return;
            auto* descriptor = static_cast<queue::Descriptor*>(taken);
            fuzz::require(outstanding_[descriptor], "only what was posted comes back");
            fuzz::require((descriptor->control.status & queue::status::done) != 0,
                          "its status says done");
            outstanding_[descriptor] = false;
            ++taken_;
        }
    }

    std::unique_ptr<Arena> arena_ = std::make_unique<Arena>();
    Counters counters_{};
    NobodyAttends nobody_;
    nic::Nic nic_;
    memory::ProtectionTag other_tag_ = 0;
    memory::MemoryHandle descriptors_ = 0, buffer_ = 0, open_ = 0, secret_ = 0;
    engine::Vi* vis_[2] = {};
    std::map<const queue::Descriptor*, bool> outstanding_;
    std::size_t next_ = 0;
    std::uint64_t posted_ = 0, taken_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    World world(input);
    for (int steps = 0; !input.empty() && steps < 300; ++steps) world.step(input);
    return 0;
}
