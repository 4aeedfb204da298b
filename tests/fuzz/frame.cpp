// A NIC with connected VIs, posted descriptors and exported memory, on a device whose peer sends
// whatever the input says, while the program goes on posting.
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "nic/nic.hpp"
#include "scene.hpp"
#include "wire/frame.hpp"

using namespace via;

namespace {

constexpr std::uint32_t payload_max = 1024;
constexpr unsigned vis = 4;
constexpr std::uint32_t transfer_max = 3000;

/// The peer's end of one path. What the NIC sends is looked at and thrown away.
class HostileDevice final : public device::Device {
public:
    struct Sent {
        std::unique_ptr<std::byte[]> header;
        std::unique_ptr<std::byte[]> payload;
        std::uint32_t header_length;
        std::uint32_t payload_length;
    };

    HostileDevice() : Device({payload_max, 64, payload_max, true, true}, {}) {}

    void resolve(const NetAddress&, std::uint64_t cookie) override {
        if (up_)
            events_.push_back({device::PathEventKind::resolved, 0, Status::success, cookie});
        else
            events_.push_back({device::PathEventKind::unresolved, 0, Status::no_match, cookie});
    }
    Status listen(const Discriminator&) override { return Status::success; }
    void unlisten(const Discriminator&) override {}
    HostAddress peer_address(device::PathId) const override { return address_; }

    bool reserve(device::PathId, std::uint32_t header_length, std::uint32_t payload_length,
                 device::FrameSlot& slot) override {
        fuzz::require(header_length <= capabilities_.header_max, "headers keep to the maximum");
        fuzz::require(payload_length <= payload_max, "payloads keep to the maximum");
        if (!up_ || room_ == 0) return false;
        --room_;
        // Of their exact sizes, so that the sanitizer sees every byte beyond.
        Sent sent{std::unique_ptr<std::byte[]>(new std::byte[header_length]()),
                  std::unique_ptr<std::byte[]>(new std::byte[payload_length]()), header_length,
                  payload_length};
        slot = {sent.header.get(), sent.payload.get(), false};
        reserved_.push_back(std::move(sent));
        return true;
    }
    void transmit(device::PathId) override {
        for (Sent& sent : reserved_) look_at(sent);
        reserved_.clear();
    }
    std::uint32_t notify() override { return 0; }

    std::size_t receive(std::span<device::Frame> frames) override {
        std::size_t count = 0;
        for (; count < frames.size() && !arriving_.empty() && up_; ++count) {
            frames[count] = arriving_.front().frame;
            lent_.push_back(std::move(arriving_.front().payload));
            arriving_.pop_front();
        }
        return count;
    }
    bool release() override {
        lent_.clear();
        return false;
    }
    void close_for_violation(device::PathId, const char* reason) override {
        fuzz::require(reason != nullptr && *reason != '\0', "there is a reason");
        go_down();
    }
    bool next_event(device::PathEvent& event) override {
        if (events_.empty()) return false;
        event = events_.front();
        events_.pop_front();
        return true;
    }
    void set_waiting_for_room(device::PathId) override {}
    bool has_work() override { return !arriving_.empty() || !events_.empty(); }

    // The peer
    void come_up() {
        if (up_) return;
        up_ = true;
        events_.push_back({device::PathEventKind::up, 0, Status::success, 0});
    }
    void go_down() {
        if (!up_) return;
        up_ = false;
        arriving_.clear();
        events_.push_back({device::PathEventKind::down, 0, Status::success, 0});
    }
    void give_room(unsigned frames) { room_ += frames; }
    void send(std::span<const std::byte> bytes, std::span<const std::byte> payload) {
        Arriving arriving;
        arriving.frame.length = static_cast<std::uint32_t>(bytes.size());
        copy(bytes, arriving.frame.bytes);
        if (!payload.empty()) {
            arriving.payload.reset(new std::byte[payload.size()]);
            copy(payload, arriving.payload.get());
            arriving.frame.payload = arriving.payload.get();
            arriving.frame.payload_length = static_cast<std::uint32_t>(payload.size());
        }
        arriving_.push_back(std::move(arriving));
    }
    /// VI numbers that the NIC told us in its requests and acceptances.
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }
    std::uint32_t last_read() const { return last_read_; }

private:
    struct Arriving {
        device::Frame frame;
        std::unique_ptr<std::byte[]> payload;
    };

    /// Nothing that arrives looks like the secret, so what looks like it does not come from here.
    static void copy(std::span<const std::byte> from, std::byte* to) {
        for (const std::byte value : from)
            *to++ = value == fuzz::Arena::secret_value ? std::byte{0} : value;
    }
    void look_at(const Sent& sent) {
        wire::Header header;
        fuzz::require(
            wire::parse(sent.header.get(), sent.header_length, header) == wire::ParseError::none,
            "what the NIC sends can be parsed");
        fuzz::require(!fuzz::betrays(sent.payload.get(), sent.payload_length),
                      "the secret stays where it is");
        if (header.kind == wire::FrameKind::read_request) last_read_ = header.read_number;
        if (header.kind != wire::FrameKind::request && header.kind != wire::FrameKind::accept)
            return;
        wire::ConnectMessage message;
        fuzz::require(sent.payload_length == sizeof message, "it describes the VI");
        std::memcpy(&message, sent.payload.get(), sizeof message);
        numbers_.push_back(message.vi);
    }

    bool up_ = false;
    unsigned room_ = 64;
    std::uint32_t last_read_ = 0;
    std::vector<Sent> reserved_;
    std::deque<Arriving> arriving_;
    std::vector<std::unique_ptr<std::byte[]>> lent_;
    std::deque<device::PathEvent> events_;
    std::vector<std::uint32_t> numbers_;
};

struct NobodyAttends final : nic::Attendant {
    void attend() override {}
    void report(const engine::ErrorEvent&) override {}
    Time now() override { return time; }
    Time time{};
};

class World {
public:
    World() : nic_("fuzz", limits(), counters_, nobody_) {
        auto device = std::make_unique<HostileDevice>();
        device_ = device.get();
        nic_.add_device(std::move(device));
        device_->come_up();
        descriptors_ = add(arena_->descriptors.data(), sizeof arena_->descriptors, false);
        buffer_ = add(arena_->buffer.data(), arena_->buffer.size(), false);
        open_ = add(arena_->open.data(), arena_->open.size(), true);
        nic_.allow_atomics(open_, fuzz::address_of(arena_->open.data()), true);
        secret_ = add(arena_->secret.data(), arena_->secret.size(), false);
        completions_ = nic_.completion_queue(*nic_.create_completion_queue(2));
        constexpr engine::Reliability levels[vis] = {
            engine::Reliability::delivery, engine::Reliability::reception,
            engine::Reliability::unreliable, engine::Reliability::delivery};
        for (const engine::Reliability level : levels) {
            engine::ViAttributes attributes;
            attributes.reliability = level;
            attributes.transfer_length_max = transfer_max;
            attributes.rdma_write = true;
            attributes.rdma_read = level != engine::Reliability::unreliable;
            // One of them completes into a queue that is soon full.
            queue::CompletionQueue* queue =
                level == engine::Reliability::reception ? completions_ : nullptr;
            vis_.push_back(
                nic_.with_turn([&] { return *nic_.engine().create_vi(attributes, queue, queue); }));
        }
        // The last one stays idle at first.
        for (unsigned vi = 0; vi + 1 < vis; ++vi) connect(vi);
    }
    ~World() {
        for (engine::Vi* vi : vis_)
            nic_.with_turn([&] {
                nic_.engine().disconnect(*vi);
                return 0;
            });
        take_all();
        fuzz::require(posted_ == taken_, "every descriptor comes back, once");
        for (engine::Vi* vi : vis_)
            fuzz::require(
                nic_.with_turn([&] { return nic_.engine().destroy_vi(*vi); }) == Status::success,
                "nothing is left on the VIs");
        arena_->check();
    }

    void step(fuzz::Input& input) {
        const std::uint8_t what = input.byte();
        if (what < 160)
            send_frame(input);
        else if (what < 170)
            send_bytes(input);
        else if (what < 185)
            post_receive(input);
        else if (what < 205)
            post_send(input);
        else if (what < 215)
            take_all();
        else if (what < 225)
            device_->give_room(input.byte() % 16);
        else
            control(input, what);
        nic_.poll();
        if (++steps_ % 16 == 0) arena_->check();
    }

private:
    static NicLimits limits() {
        NicLimits limits;
        limits.vis_max = 64;
        limits.regions_max = 64;
        limits.protection_tags_max = 8;
        limits.completion_queues_max = 8;
        limits.connections_waiting_max = 8;
        return limits;
    }
    memory::MemoryHandle add(void* at, std::size_t bytes, bool remote) {
        return *nic_.register_memory(fuzz::address_of(at), bytes, {memory::no_tag, remote, remote});
    }

    /// Asks for a connection and has the peer accept it.
    void connect(unsigned index) {
        engine::Vi& vi = *vis_[index];
        if (vi.state.load() != engine::ViState::idle) return;
        nic_.connect(vi, {}, {}, nobody_.time + seconds(1));
        device_->give_room(1);
        nic_.poll();
        wire::ConnectMessage message{};
        message.vi = 100 + index;
        message.transfer_length_max = vi.attributes.transfer_length_max;
        message.reliability = static_cast<std::uint16_t>(vi.attributes.reliability);
        wire::Header header;
        header.kind = wire::FrameKind::accept;
        header.vi = vi.number();
        send(header, std::as_bytes(std::span(&message, 1)));
        nic_.poll();
        expected_[index] = 0;
    }

    void send(const wire::Header& header, std::span<const std::byte> payload) {
        std::byte bytes[device::Frame::inline_max];
        const std::uint32_t length = wire::header_length(header.flags);
        wire::emit(header, bytes);
        const bool beside = length + payload.size() > sizeof bytes;
        if (!beside) std::memcpy(bytes + length, payload.data(), payload.size());
        device_->send({bytes, length + (beside ? 0 : payload.size())},
                      beside ? payload : std::span<const std::byte>{});
    }

    std::uint64_t pick_address(fuzz::Input& input) {
        const std::uint64_t offset = input.half();
        switch (input.byte() % 6) {
            case 0:
                return fuzz::address_of(arena_->secret.data()) + offset;
            case 1:
                return fuzz::address_of(arena_->buffer.data()) + offset;
            case 2:
                return input.wide();
            case 3:  // around the end
                return fuzz::address_of(arena_->open.data()) + arena_->open.size() - offset % 64;
            default:
                return fuzz::address_of(arena_->open.data()) + offset % 4096;
        }
    }
    memory::MemoryHandle pick_handle(fuzz::Input& input) {
        switch (input.byte() % 8) {
            case 0:
                return secret_;
            case 1:
                return buffer_;
            case 2:
                return input.word();
            case 3:
                return descriptors_;
            default:
                return open_;
        }
    }
    std::uint32_t pick_vi(fuzz::Input& input, unsigned& index) {
        const std::uint8_t choice = input.byte();
        index = choice % vis;
        if (choice < 224) return vis_[index]->number();
        const auto& numbers = device_->numbers();
        if (choice < 240 && !numbers.empty()) return numbers[choice % numbers.size()];
        return input.word();
    }

    void send_frame(fuzz::Input& input) {
        wire::Header header;
        unsigned index = 0;
        header.kind = static_cast<wire::FrameKind>(1 + input.byte() % wire::frame_kind_max);
        header.flags = input.byte() & wire::flag::all;
        if (header.has(wire::flag::placed)) header.flags |= wire::flag::remote;
        if (header.has(wire::flag::remote)) header.flags |= wire::flag::extent;
        header.vi = pick_vi(input, index);
        const std::uint8_t numbering = input.byte();
        header.message = numbering < 200 ? expected_[index] : expected_[index] + input.half() - 4;
        header.immediate_or_code = input.byte();
        std::uint32_t length = input.half() % (payload_max + 1);
        header.message_length = numbering % 4 == 0 ? input.half() : length;
        header.offset = numbering % 8 == 1 ? input.half() : 0;
        if (header.has(wire::flag::remote)) {
            header.remote_address = pick_address(input);
            header.remote_handle = pick_handle(input);
            header.read_number = input.byte() % 2 == 0 ? device_->last_read() : header.message;
        }
        std::byte payload[payload_max] = {};
        if (header.kind == wire::FrameKind::request || header.kind == wire::FrameKind::accept) {
            const wire::ConnectMessage message = connect_message(input, index);
            length = sizeof message;
            std::memcpy(payload, &message, length);
            for (unsigned changes = numbering % 8 == 3 ? 3 : 0; changes != 0; --changes)
                payload[input.byte() % length] = static_cast<std::byte>(input.byte());
            // A proper one has no flags; others are tried, too.
            if (numbering % 8 != 4) header.flags = 0;
        } else if (header.kind == wire::FrameKind::read_request ||
                   header.kind == wire::FrameKind::attach_request ||
                   header.has(wire::flag::placed)) {
            length = numbering % 16 == 2 ? length : 0;
        } else if (header.kind == wire::FrameKind::compare_swap ||
                   header.kind == wire::FrameKind::fetch_add) {
            length = numbering % 16 == 2 ? length : wire::operands_length(header.kind);
            std::memset(payload, input.byte(), length);
        } else {
            std::memset(payload, input.byte(), length);
        }
        send(header, std::span(payload, length));
        if (numbering < 200 &&
            (header.kind == wire::FrameKind::send || header.kind == wire::FrameKind::rdma_write ||
             header.kind == wire::FrameKind::read_request ||
             header.kind == wire::FrameKind::compare_swap ||
             header.kind == wire::FrameKind::fetch_add))
            if (header.has(wire::flag::last)) ++expected_[index];
    }
    /// One that fits VI `index`, or nearly so.
    wire::ConnectMessage connect_message(fuzz::Input& input, unsigned index) {
        const std::uint8_t shape = input.byte();
        const engine::ViAttributes& attributes = vis_[index]->attributes;
        wire::ConnectMessage message{};
        message.vi = input.byte();
        message.transfer_length_max =
            shape % 16 == 1 ? input.word() : attributes.transfer_length_max;
        message.reliability =
            shape % 16 == 2 ? input.half() : static_cast<std::uint16_t>(attributes.reliability);
        message.rdma_write_enabled = shape % 2;
        message.qos = shape % 16 == 3 ? input.wide() : 0;
        message.local_length = shape % 16 == 4 ? input.byte() : 0;
        message.remote_length = shape % 16 == 5 ? input.byte() : 0;
        return message;
    }
    void send_bytes(fuzz::Input& input) {
        const auto bytes = input.bytes(input.byte() % (device::Frame::inline_max + 1));
        const auto payload = input.bytes(input.byte());
        device_->send(std::as_bytes(bytes), std::as_bytes(payload));
    }

    /// A descriptor that is not posted now.
    queue::Descriptor* free_descriptor() {
        for (std::size_t tried = 0; tried < Arena::descriptors_max; ++tried) {
            Arena::Slot& slot = arena_->descriptors[next_++ % Arena::descriptors_max];
            if (!outstanding_[&slot.descriptor]) return &slot.descriptor;
        }
        return nullptr;
    }
    void post(fuzz::Input& input, bool receive) {
        queue::Descriptor* descriptor = free_descriptor();
        if (descriptor == nullptr) return take_all();
        engine::Vi& vi = *vis_[input.byte() % vis];
        const std::uint8_t shape = input.byte();
        *descriptor = {};
        queue::Segment* segments = descriptor->segments;
        std::uint32_t count = 0;
        if (!receive && shape % 4 != 0) {
            descriptor->control.control =
                shape % 4 == 1 ? queue::control::rdma_read : queue::control::rdma_write;
            segments[count++] = {input.wide(), input.word(), 0};
        }
        if (shape % 8 >= 4) descriptor->control.control |= queue::control::immediate;
        if (descriptor->control.control == queue::control::rdma_read && shape % 16 >= 8)
            descriptor->control.control |= queue::control::queue_fence;
        std::uint32_t total = 0;
        for (unsigned segment = 0; segment < shape / 64U + 1; ++segment) {
            const std::uint32_t length = input.half() % 1500;
            const std::uint64_t at = input.half() % (Arena::buffer_bytes - length);
            segments[count++] = {fuzz::address_of(arena_->buffer.data()) + at, buffer_, length};
            total += length;
        }
        descriptor->control.segment_count = static_cast<std::uint16_t>(count);
        descriptor->control.length = total;
        const Status status = receive ? nic_.post_receive(vi, descriptor, descriptors_)
                                      : nic_.post_send(vi, descriptor, descriptors_);
        if (status != Status::success) return;
        outstanding_[descriptor] = true;
        ++posted_;
    }
    void post_receive(fuzz::Input& input) { post(input, true); }
    void post_send(fuzz::Input& input) { post(input, false); }

    void take_all() {
        queue::Completion completion;
        while (nic_.completion_done(*completions_, completion) == Status::success)
            fuzz::require(completion.vi >> 16 == vis_[completion.vi & 0xFFFF]->generation.load(),
                          "completions name a VI that there is");
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

    void control(fuzz::Input& input, std::uint8_t what) {
        engine::Vi& vi = *vis_[what % vis];
        switch (what / 4 % 8) {
            case 0:
                nic_.with_turn([&] {
                    nic_.engine().disconnect(vi);
                    return 0;
                });
                break;
            case 1:
                connect(what % vis);
                break;
            case 2:
                device_->go_down();
                break;
            case 3:
                device_->come_up();
                nic_.poll();
                break;
            case 4: {  // the peer's rights end in the middle of whatever it does
                const Status status = nic_.deregister(open_, fuzz::address_of(arena_->open.data()));
                if (status == Status::success)
                    open_ = add(arena_->open.data(), arena_->open.size(), input.byte() % 4 != 0);
                break;
            }
            case 5:
                nobody_.time = nobody_.time + milliseconds(input.half());
                break;
            case 6:
                listen(vi);
                break;
            default:
                nic_.connect(vi, {}, {}, nobody_.time + milliseconds(input.byte()));
        }
    }
    void listen(engine::Vi& vi) {
        if (listening_) {
            if (nic_.unlisten(listener_) && listener_.given.load()) {
                const std::uint64_t offer = listener_.connection;
                const Status status =
                    nic_.with_turn([&] { return nic_.engine().accept(offer, vi); });
                if (status != Status::success)
                    nic_.with_turn([&] { return nic_.engine().reject(offer); });
            }
            listening_ = false;
            return;
        }
        listener_.given.store(false);
        listening_ = nic_.listen(listener_) == Status::success;
    }

    std::unique_ptr<fuzz::Arena> arena_ = std::make_unique<fuzz::Arena>();
    using Arena = fuzz::Arena;
    Counters counters_{};
    NobodyAttends nobody_;
    nic::Nic nic_;
    HostileDevice* device_ = nullptr;
    memory::MemoryHandle descriptors_ = 0, buffer_ = 0, open_ = 0, secret_ = 0;
    queue::CompletionQueue* completions_ = nullptr;
    std::vector<engine::Vi*> vis_;
    std::uint32_t expected_[vis] = {};
    std::map<const queue::Descriptor*, bool> outstanding_;
    std::size_t next_ = 0;
    std::uint64_t posted_ = 0, taken_ = 0, steps_ = 0;
    engine::Listener listener_;
    bool listening_ = false;

public:
    /// Nobody listens any more.
    void stop_listening() {
        if (listening_) nic_.unlisten(listener_);
        listening_ = false;
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    World world;
    for (int steps = 0; !input.empty() && steps < 500; ++steps) world.step(input);
    world.stop_listening();
    return 0;
}
