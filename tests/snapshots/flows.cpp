#include "flows.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/datagram/datagram_device.hpp"
#include "nic/nic.hpp"

namespace via::snapshots {

namespace {

constexpr std::uint32_t message_length = 64 * 1024;
constexpr std::uint32_t messages = 256;  ///< posted at once; beyond every window of the tables

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "it does not hold that %s\n", what);
    std::exit(1);
}

HostAddress host(std::uint8_t last) {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, last, 0x26, 0x0D};
    return address;
}

device::datagram::DatagramOptions options_of(std::uint64_t instance) {
    device::datagram::DatagramOptions options;
    Random random(instance);
    options.instance = instance;
    options.cookie_key = {random.next(), random.next()};
    options.identifier_key = {random.next(), random.next()};
    return options;
}

}  // namespace

/// One end of a flow: a NIC with one VI that posts the same messages again and again.
class End final : public nic::Attendant {
public:
    End(device::sim::DatagramNetwork& network, bool sends, std::uint32_t flow, const Setup& setup)
        : clock_(network.clock()), sends_(sends), nic_("flow", NicLimits{}, counters_, *this) {
        listener_.discriminator.length = 1;
        listener_.discriminator.bytes[0] = static_cast<std::uint8_t>(flow);
        device::sim::SimPortOptions port;
        port.receive_room = setup.receive_room;
        const std::uint64_t instance = 1 + 2 * std::uint64_t{flow} + (sends ? 1 : 0);
        nic_.add_device(std::make_unique<device::datagram::DatagramDevice>(
            std::make_unique<device::sim::SimPort>(network, host(sends ? 1 : 2), instance, port),
            options_of(instance)));
        make_vi();
        if (sends)
            starts_ = clock_.now() + setup.between_starts * flow;
        else
            require(nic_.listen(listener_) == Status::success, "one can listen");
    }

    std::uint64_t received() const { return counters_.get(Counter::bytes_received); }

    Time due() {
        const Time start = sends_ && stage_ == Stage::waiting ? starts_ : Time::never();
        return nic_.has_work() ? clock_.now() : earlier(start, nic_.next_deadline());
    }
    void turn() {
        nic_.take_turn();
        nic_.service(clock_.now());
        nic_.turn(clock_.now());
        nic_.end_turn();
        if (stage_ != Stage::running) return sends_ ? ask() : answer();
        engine::ViQueue& queue = sends_ ? vi_->send : vi_->receive;
        for (void* done = nullptr; nic_.done(queue, done) == Status::success && done != nullptr;)
            post(*static_cast<queue::Descriptor*>(done));
    }

private:
    void attend() override {}
    void report(const engine::ErrorEvent& /*event*/) override {
        require(false, "no error is reported");
    }
    Time now() override { return clock_.now(); }
    void make_vi() {
        memory_.resize(message_length + 64);
        descriptors_ = std::make_unique<Descriptors>();
        const auto register_memory = [&](void* at, std::size_t length) {
            const auto handle =
                nic_.register_memory(reinterpret_cast<std::uint64_t>(at), length, {});
            require(handle.has_value(), "memory can be registered");
            return *handle;
        };
        buffer_ = register_memory(memory_.data(), memory_.size());
        control_ = register_memory(descriptors_->all, sizeof descriptors_->all);
        engine::ViAttributes attributes;
        attributes.reliability = engine::Reliability::delivery;
        attributes.transfer_length_max = message_length;
        vi_ = nic_.with_turn(
            [&] { return nic_.engine().create_vi(attributes, nullptr, nullptr).value(); });
        if (sends_) return;
        for (queue::Descriptor& descriptor : descriptors_->all) post(descriptor);
    }

    void ask() {
        if (stage_ == Stage::waiting) {
            if (clock_.now() < starts_) return;
            const NetAddress local{host(1), listener_.discriminator};
            const NetAddress remote{host(2), listener_.discriminator};
            require(nic_.connect(*vi_, local, remote, Time::never()) == Status::success,
                    "one can ask for a connection");
            stage_ = Stage::asking;
        } else if (vi_->state.load() != engine::ViState::connect_pending) {
            require(vi_->state.load() == engine::ViState::connected, "both are connected");
            for (queue::Descriptor& descriptor : descriptors_->all) post(descriptor);
            stage_ = Stage::running;
        }
    }
    void answer() {
        if (!listener_.given.load()) return;
        require(nic_.unlisten(listener_), "the request is there");
        const Status accepted =
            nic_.with_turn([&] { return nic_.engine().accept(listener_.connection, *vi_); });
        require(accepted == Status::success, "it is accepted");
        stage_ = Stage::running;
    }

    void post(queue::Descriptor& descriptor) {
        descriptor = {};
        descriptor.control.segment_count = 1;
        descriptor.control.control = queue::control::send_receive;
        descriptor.control.length = message_length;
        descriptor.segments[0] = {reinterpret_cast<std::uint64_t>(memory_.data()), buffer_,
                                  message_length};
        const Status status = sends_ ? nic_.post_send(*vi_, &descriptor, control_)
                                     : nic_.post_receive(*vi_, &descriptor, control_);
        require(status == Status::success, "a descriptor can be posted");
    }

    struct alignas(64) Descriptors {
        queue::Descriptor all[messages];
    };
    device::sim::VirtualClock& clock_;
    bool sends_;
    enum class Stage : std::uint8_t { waiting, asking, running };
    Stage stage_ = Stage::waiting;
    Time starts_{};
    Counters counters_{};
    engine::Listener listener_;
    nic::Nic nic_;
    std::vector<std::byte> memory_;
    std::unique_ptr<Descriptors> descriptors_;
    memory::MemoryHandle buffer_ = 0;
    memory::MemoryHandle control_ = 0;
    engine::Vi* vi_ = nullptr;
};

Flows::Flows(const Setup& setup)
    : weather_(1, {setup.link, false, {}, Time::never()}), network_(clock_, weather_) {
    for (std::uint32_t flow = 0; flow < setup.flows; ++flow) {
        receivers_.push_back(std::make_unique<End>(network_, false, flow, setup));
        senders_.push_back(std::make_unique<End>(network_, true, flow, setup));
    }
}

Flows::~Flows() = default;

/// Whoever is due first.
End* Flows::next(Time& moment) {
    End* first = nullptr;
    moment = Time::never();
    for (auto* ends : {&receivers_, &senders_})
        for (auto& end : *ends)
            if (const Time due = end->due(); due < moment) {
                first = end.get();
                moment = due;
            }
    return first;
}

void Flows::run(Duration time) {
    const Time until = clock_.now() + time;
    std::uint64_t turns_at_once = 0;
    for (Time moment; End* end = next(moment);) {
        if (moment > until) break;
        turns_at_once = moment > clock_.now() ? 0 : turns_at_once + 1;
        require(turns_at_once < 1'000'000, "time goes on");
        if (moment > clock_.now()) clock_.advance_to(moment);
        end->turn();
    }
    clock_.advance_to(until);
}

std::uint64_t Flows::received(std::uint32_t flow) const { return receivers_[flow]->received(); }

}  // namespace via::snapshots
