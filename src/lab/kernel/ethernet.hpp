// A NIC that knows packets alone: rings of them in the host's memory, DMA, a store to tell it and
// an interrupt for each packet that came. Nothing is lost: who has no room stops the link.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lab/dma.hpp"
#include "lab/fifo.hpp"
#include "lab/kernel/setting.hpp"
#include "lab/packet.hpp"

namespace via::lab::kernel {

struct Frame {
    NodeId from = 0;
    NodeId to = 0;
    ViId vi = 0;
    MessageId message = no_message;
    std::int64_t offset = 0;  ///< of its payload, within the message
    std::int64_t length = 0;  ///< of payload
    std::int64_t header = 0;  ///< the protocol's
    bool last = false;
    bool acknowledges = false;
    Landing landing;
    std::vector<std::int64_t> pieces;  ///< of the host's memory: a DMA each
    std::function<void()> fetched;     ///< the NIC has it whole
};

class Nic;

/// A link for each NIC, or a switch between them.
class Wire {
public:
    Wire(Schedule& schedule, Ledger& ledger, const Costs& costs, const Setting& setting);
    NodeId join(Nic& nic);
    /// On the wire, with everything around it.
    std::int64_t bytes(const Frame& frame) const;
    /// Until its last bit is at the other NIC; `left` when it is out of the sending one.
    Task<> carry(NodeId from, Frame frame);
    std::uint64_t frames() const { return frames_; }
    std::int64_t payload_bytes() const { return payload_bytes_; }

private:
    struct Port {
        Nic* nic;
        std::unique_ptr<Resource> out;
        std::unique_ptr<Resource> in;
    };
    Schedule& schedule_;
    Ledger& ledger_;
    const Costs& costs_;
    const Setting& setting_;
    ResourceId switch_;
    std::vector<Port> ports_;
    std::uint64_t frames_ = 0;
    std::int64_t payload_bytes_ = 0;
};

class Nic {
public:
    /// `arrived`: a packet lies in the host's memory, and the NIC raises an interrupt.
    Nic(Schedule& schedule, Ledger& ledger, const Costs& costs, Resource& bus, Wire& wire,
        std::function<void(const Frame&)> arrived);

    NodeId node() const { return node_; }
    /// Waits for room in the ring.
    Fifo::Reserve room() { return send_ring_.reserve(1); }
    /// Into that room, and the NIC was told.
    void put(Frame frame);
    /// The host has taken a packet out of the receive ring.
    void taken() { receive_ring_.release(1); }

private:
    friend class Wire;
    Task<> send();
    Task<> receive();
    Task<> dma(DmaEngine& engine, bool to_host, std::int64_t bytes, Share share, const char* what,
               MessageId message);

    Schedule& schedule_;
    const Costs& costs_;
    Wire& wire_;
    std::function<void(const Frame&)> arrived_;
    NodeId node_;
    DmaEngine read_;
    DmaEngine write_;
    Resource sender_;
    Resource receiver_;
    Fifo send_ring_;
    Fifo receive_ring_;
    Fifo send_buffer_;
    Fifo receive_buffer_;
    std::deque<Frame> to_send_;
    std::deque<Frame> came_;
    Signal put_;
    Signal more_;
};

}  // namespace via::lab::kernel
