// A host with an adapter that does VIA by itself, and a kernel for what is left: processes that
// sleep until an interrupt, and sockets over VIA by a driver that poses as a LAN.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "lab/host.hpp"
#include "lab/kernel/kernel.hpp"
#include "lab/station.hpp"

namespace via::lab::kernel {

class OverAdapter : public Station, public Bearer {
public:
    /// Everything given outlives it.
    OverAdapter(Host& host, Schedule& schedule, Ledger& ledger, const Costs& costs,
                const Setting& setting, const Without& without);

    void connect(ViId vi, NodeId peer) override { host_.connect(vi, peer); }
    Task<> post_send(ViId vi, Buffer buffer, MessageId message) override;
    Task<> post_receive(ViId vi, Buffer buffer) override;
    Task<MessageId> receive(ViId vi, std::int64_t queues) override;
    bool holds(ViId vi) const override { return host_.holds(vi); }
    Task<MessageId> sent(ViId vi, std::int64_t queues) override;
    ResourceId processor() const override { return host_.processor_id(); }
    AdapterCounts counts() const override { return host_.adapter().counts(); }
    // As a Bearer's, of VIA alone: where nobody calls receive() ---------------------------------
    void tell(Listener listener) override { host_.tell(std::move(listener)); }
    NodeId node() const override { return host_.node(); }
    Task<> send(PhysicalDescriptor descriptor, bool by_driver) override;
    void send_own(const PhysicalDescriptor& descriptor) override { host_.send_own(descriptor); }
    std::int64_t receives_waiting(ViId vi) override { return host_.receives_waiting(vi); }
    void take_back(ViId vi, std::int64_t receives) override { host_.take_back(vi, receives); }
    Task<> poll() override;
    Task<> wake(Duration waited) override { return wake(waited, no_message); }

private:
    Task<> wake(Duration waited, MessageId message);
    Task<> tcp_send(ViId vi, Buffer buffer, MessageId message);
    Task<MessageId> tcp_receive(ViId vi);
    std::int64_t packets_of(std::int64_t length) const {
        const std::int64_t most = setting_.mtu - costs_.tcp_header;
        return length == 0 ? 1 : (length + most - 1) / most;
    }

    Host& host_;
    Schedule& schedule_;
    const Costs& costs_;
    const Setting& setting_;
    Resource second_;
    Kernel kernel_;
    std::map<ViId, std::deque<std::int64_t>> reads_;  ///< sockets: how much each asks for
    std::map<ViId, std::deque<std::int64_t>> writes_;
};

}  // namespace via::lab::kernel
