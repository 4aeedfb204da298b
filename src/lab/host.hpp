// A host: its processor, its bus, its NIC, and the part of VIA's library and driver that a design
// puts there.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "lab/adapter.hpp"
#include "lab/parts.hpp"

namespace via::lab {

class Host {
public:
    /// Everything given outlives the host, but for the design, which it owns.
    Host(Schedule& schedule, Ledger& ledger, const Costs& costs, Design design, Network& network,
         const Without& without, NodeId number, std::uint64_t seed);

    void connect(ViId vi, NodeId peer) { adapter_.connect(vi, peer); }
    Task<> post_send(ViId vi, Buffer buffer, MessageId message);
    Task<> post_receive(ViId vi, Buffer buffer);
    /// Waits by polling until a message is there, and the program has seen it. `queues`: work
    /// queues that it polls.
    Task<MessageId> receive(ViId vi, std::int64_t queues);
    /// The same for a send.
    Task<MessageId> sent(ViId vi, std::int64_t queues);

    // For parts: time of the host ----------------------------------------------------------
    /// Words to the NIC, one by one: each takes the processor, and the bus for its part.
    Task<> write_words(std::int64_t words, const char* what, MessageId message);
    Task<> read_word(const char* what, MessageId message);
    Resource::Use spend(Duration span, const Work& work) { return processor_.use(span, work); }
    const Costs& costs() const { return costs_; }
    Schedule& schedule() { return schedule_; }
    Adapter& adapter() { return adapter_; }
    const Adapter& adapter() const { return adapter_; }
    Design& design() { return design_; }
    ResourceId processor_id() const { return processor_.id(); }
    std::int64_t bytes_received() const { return bytes_received_; }

private:
    Task<> enter(MessageId message, bool rings);
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
    Signal completed_;
    std::map<ViId, std::deque<MessageId>> received_;
    std::map<ViId, std::deque<MessageId>> sent_;
    std::deque<PhysicalDescriptor> waiting_sends_;
    std::map<ViId, std::deque<PhysicalDescriptor>> waiting_receives_;
    std::int64_t bytes_received_ = 0;
};

}  // namespace via::lab
