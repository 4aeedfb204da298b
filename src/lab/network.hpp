// Links and one switch. A packet goes through the switch as soon as its header is known; what
// cannot go on is kept in the switch's shared buffer, and when that is full, the link stands still.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "lab/fifo.hpp"
#include "lab/machine.hpp"
#include "lab/packet.hpp"
#include "lab/resource.hpp"

namespace via::lab {

class Network {
public:
    /// Schedule, ledger and costs outlive the network.
    Network(Schedule& schedule, Ledger& ledger, const Costs& costs);

    /// `arrive` is called when a packet's headers are there; its tail is said in it.
    NodeId join(std::function<void(const Packet&)> arrive);
    /// The same for packets of windows, which that node takes from now on.
    void open_window(NodeId node, std::function<void(const Packet&)> arrive) {
        ports_[node]->window = std::move(arrive);
    }

    /// Room in the interface of `node` for a packet to be sent. False: not now.
    bool try_reserve(NodeId node, const Packet& packet);
    /// The same, waiting for it.
    Fifo::Reserve reserve(NodeId node, const Packet& packet) {
        return ports_[node]->sending->reserve(wire_bytes(packet));
    }
    /// Its first word is in the interface, its last one will be at packet.tail.
    void transmit(const Packet& packet);
    /// A packet that arrived has left the receiving interface.
    void taken(const Packet& packet);

    /// On the wire, with all headers.
    std::int64_t wire_bytes(const Packet& packet) const { return packet.length + headers(packet); }
    std::uint64_t packets() const { return packets_; }
    std::int64_t payload_bytes() const { return payload_bytes_; }

private:
    struct Port {
        std::function<void(const Packet&)> arrive;
        std::function<void(const Packet&)> window;
        std::unique_ptr<Resource> out;  ///< from the host to the switch
        std::unique_ptr<Resource> in;   ///< from the switch to the host
        std::unique_ptr<Fifo> sending;
        std::unique_ptr<Fifo> receiving;
        std::deque<Packet> queue;
        std::unique_ptr<Signal> queued;
    };
    /// A window's packets have no header of VIA's.
    std::int64_t headers(const Packet& packet) const {
        const bool of_vi = packet.kind == PacketKind::message;
        return costs_.switch_header + (of_vi ? costs_.message_header : 0);
    }
    Task<> transmitter(NodeId node);
    Task<> pass(Packet packet, Time begin);

    Schedule& schedule_;
    Ledger& ledger_;
    const Costs& costs_;
    ResourceId switch_;
    Fifo buffer_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::uint64_t packets_ = 0;
    std::int64_t payload_bytes_ = 0;
};

}  // namespace via::lab
