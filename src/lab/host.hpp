// A host: its processor, its bus, its NIC, and the part of VIA's library and driver that a design
// puts there.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "lab/adapter.hpp"
#include "lab/bearer.hpp"
#include "lab/miss_thread.hpp"
#include "lab/parts.hpp"

namespace via::lab {

class Host : public Bearer {
public:
    /// Everything given outlives the host, but for the design, which it owns.
    Host(Schedule& schedule, Ledger& ledger, const Costs& costs, Design design, Network& network,
         const Without& without, NodeId number, std::uint64_t seed);

    void connect(ViId vi, NodeId peer, std::uint32_t process = 0) {
        adapter_.connect(vi, peer, process);
    }
    /// `place`: where the program's descriptor lies. Nowhere: in a page of the VI's own.
    Task<> post_send(ViId vi, Buffer buffer, MessageId message, std::int64_t place = nowhere);
    Task<> post_receive(ViId vi, Buffer buffer, std::int64_t place);
    static constexpr std::int64_t nowhere = -1;
    Task<> post_receive(ViId vi, Buffer buffer) override {
        return post_receive(vi, buffer, nowhere);
    }
    // As a Bearer's, where nobody calls receive() ---------------------------------------------
    void tell(Listener listener) override { listener_ = std::move(listener); }
    NodeId node() const override { return adapter_.node(); }
    Task<> send(PhysicalDescriptor descriptor, bool by_driver) override;
    void send_own(const PhysicalDescriptor& descriptor) override { adapter_.send_own(descriptor); }
    std::int64_t receives_waiting(ViId vi) override;
    void take_back(ViId vi, std::int64_t receives) override;
    Task<> poll() override;
    /// An interrupt, whose handler wakes the process, and the way back out of the kernel.
    Task<> wake(Duration waited) override;

    /// Waits by polling until a message is there, and the program has seen it. `queues`: work
    /// queues that it polls.
    Task<MessageId> receive(ViId vi, std::int64_t queues);
    /// A message is there that no receive() has taken.
    bool holds(ViId vi) const {
        const auto found = received_.find(vi);
        return found != received_.end() && !found->second.empty();
    }
    /// The same for a send.
    Task<MessageId> sent(ViId vi, std::int64_t queues);

    // For parts: time of the host ----------------------------------------------------------
    /// Words to the NIC, one by one: each takes the processor, and the bus for its part.
    Task<> write_words(std::int64_t words, const char* what, MessageId message);
    /// Into the NIC: the control words, and the payload inside or the pieces where it lies.
    Task<> write_descriptor(const PhysicalDescriptor& descriptor);
    Task<> read_word(const char* what, MessageId message);
    Resource::Use spend(Duration span, const Work& work) { return processor_.use(span, work); }
    const Costs& costs() const { return costs_; }
    Schedule& schedule() { return schedule_; }
    Adapter& adapter() { return adapter_; }
    const Adapter& adapter() const { return adapter_; }
    Design& design() { return design_; }
    ResourceId processor_id() const { return processor_.id(); }
    Resource& processor() { return processor_; }
    Resource& bus() { return bus_; }
    std::int64_t bytes_received() const { return bytes_received_; }

private:
    void hear(ViId vi, MessageId message);
    Task<> copy_rdma(ViId vi, MessageId message, std::int64_t length);
    Task<> enter(MessageId message, bool rings);
    std::int64_t placed(std::int64_t place, ViId vi) const;
    Task<> hand_over(PhysicalDescriptor descriptor, bool receive);
    Task<> write_waiting(bool receive, ViId vi);
    Task<> write(PhysicalDescriptor descriptor, bool receive);
    Task<> refill(bool receive, ViId vi);
    Task<> word(std::int64_t cost, const char* what, MessageId message);
    Adapter::Queue& queue(bool receive, ViId vi) {
        return receive ? adapter_.receives(vi) : adapter_.sends();
    }
    std::deque<PhysicalDescriptor>& overflow(bool receive, ViId vi) {
        return receive ? waiting_receives_[vi] : waiting_sends_;
    }

    Schedule& schedule_;
    const Costs& costs_;
    Design design_;
    Resource processor_;
    Resource bus_;
    Adapter adapter_;
    MissThread miss_thread_;
    Signal completed_;
    std::optional<Listener> listener_;
    std::map<ViId, std::deque<MessageId>> received_;
    std::map<ViId, std::deque<MessageId>> sent_;
    std::deque<PhysicalDescriptor> waiting_sends_;
    std::map<ViId, std::deque<PhysicalDescriptor>> waiting_receives_;
    std::int64_t bytes_received_ = 0;
};

}  // namespace via::lab
