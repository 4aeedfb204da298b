// A host whose kernel does all the work of VIA, or of TCP, over a NIC that knows packets alone.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/bearer.hpp"
#include "lab/kernel/ethernet.hpp"
#include "lab/kernel/kernel.hpp"
#include "lab/station.hpp"

namespace via::lab::kernel {

class Computer : public Station, public Bearer {
public:
    /// Everything given outlives it.
    Computer(Schedule& schedule, Ledger& ledger, const Costs& costs, const Setting& setting,
             const Without& without, Wire& wire, NodeId number);

    void connect(ViId vi, NodeId peer) override { peers_[vi] = peer; }
    Task<> post_send(ViId vi, Buffer buffer, MessageId message) override;
    Task<> post_receive(ViId vi, Buffer buffer) override;
    Task<MessageId> receive(ViId vi, std::int64_t queues) override;
    bool holds(ViId vi) const override {
        const auto found = inboxes_.find(vi);
        return found != inboxes_.end() && !found->second.whole.empty();
    }
    Task<MessageId> sent(ViId vi, std::int64_t queues) override;
    ResourceId processor() const override { return program_.id(); }
    // As a Bearer's, where nobody calls receive() ---------------------------------------------
    void tell(Listener listener) override { listener_ = std::move(listener); }
    NodeId node() const override { return nic_.node(); }
    Task<> send(PhysicalDescriptor descriptor, bool by_driver) override;
    void send_own(const PhysicalDescriptor& descriptor) override;
    std::int64_t receives_waiting(ViId vi) override { return inboxes_[vi].posted; }
    void take_back(ViId vi, std::int64_t receives) override;
    Task<> poll() override { return poll(1, no_message); }
    Task<> wake(Duration waited) override;
    std::uint64_t interrupts() const { return interrupts_; }
    std::int64_t bytes_received() const { return bytes_received_; }

private:
    /// What has come for a VI, or for the socket in its place.
    struct Inbox {
        std::deque<MessageId> whole;  ///< VIA: copied to where they belong
        std::deque<Frame> segments;   ///< TCP: in the kernel's memory
        std::int64_t unacknowledged = 0;
        std::int64_t posted = 0;
        std::deque<Frame> early;   ///< VIA: before a receive was posted
        std::set<MessageId> lost;  ///< VIA: no receive was posted, nor will be
        bool sleeps = false;
        bool is_read = false;  ///< TCP: by a task of its own
    };

    Task<> arrivals();
    PhysicalDescriptor to_peer(ViId vi, Buffer buffer, MessageId message) const;
    std::vector<Frame> packets_of(const PhysicalDescriptor& descriptor, std::int64_t header) const;
    Task<> put(Frame frame, Resource& on);
    Task<> poll(std::int64_t queues, MessageId message);
    // via.cpp
    Task<> via_post(PhysicalDescriptor descriptor);
    Task<> via_send_by_kernel(PhysicalDescriptor descriptor, Resource& on);
    Task<> via_send(PhysicalDescriptor descriptor, Resource& on);  ///< with the lock
    Task<> via_take(Frame frame);
    Task<> via_place(Frame frame);
    Task<> via_take_early(ViId vi);
    Task<MessageId> via_receive(ViId vi, std::int64_t queues);
    // tcp.cpp
    Task<> tcp_send(PhysicalDescriptor descriptor);
    Task<> tcp_read(ViId vi);
    Task<> tcp_take(Frame frame);
    Task<> tcp_acknowledge(const Frame& frame);
    Task<MessageId> tcp_receive(ViId vi);

    Schedule& schedule_;
    const Costs& costs_;
    const Setting& setting_;
    Resource program_;
    Resource handler_;
    Resource bus_;
    Kernel kernel_;
    Nic nic_;
    Signal changed_;
    Signal raised_;
    std::optional<Listener> listener_;
    std::map<ViId, NodeId> peers_;
    std::map<ViId, Inbox> inboxes_;
    std::map<ViId, std::deque<MessageId>> sent_;
    std::deque<Frame> pending_;  ///< of which the handler has not been told yet
    std::uint64_t interrupts_ = 0;
    std::int64_t bytes_received_ = 0;
};

}  // namespace via::lab::kernel
