// A NIC with a processor that runs firmware in one loop: sends, arrivals, housekeeping. What it is
// asked for are descriptors; what it tells are completions. Which design it has is in its parts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "lab/dma.hpp"
#include "lab/fifo.hpp"
#include "lab/machine.hpp"
#include "lab/network.hpp"
#include "lab/packet.hpp"
#include "lab/parts.hpp"
#include "lab/resource.hpp"

namespace via::lab {

struct AdapterCounts {
    std::uint64_t first_looks_missed = 0;  ///< at the counter of a DMA
    std::uint64_t refill_interrupts = 0;
    std::uint64_t stalls = 0;        ///< an arrived packet found no receive descriptor
    std::uint64_t fifo_waits = 0;    ///< a packet found no room in a FIFO
    std::uint64_t translations = 0;  ///< that the NIC made
    std::uint64_t misses = 0;        ///< of these, from the host's memory
    std::int64_t bytes_sent = 0;
    std::int64_t bytes_received = 0;
};

/// A packet of the message that is being sent, until it leaves the Send-FIFO.
struct Outgoing {
    Packet packet;
    SharedTransfer dma;  ///< nullptr: its bytes are there
    bool header = false;
    bool looked = false;
};
/// The message that the firmware sends.
struct Sending {
    PhysicalDescriptor descriptor;
    std::vector<Buffer> pieces;
    std::size_t started = 0;
    std::int64_t page = -1;  ///< of which the address is known
    std::int64_t offset = 0;
    std::deque<Outgoing> outgoing;
    SharedTransfer last;  ///< the last packet that leaves
    std::size_t left = 0;
};
/// A message of which packets have arrived.
struct Receiving {
    PhysicalDescriptor descriptor;
    MessageId message = no_message;
    std::int64_t length = 0;
    std::int64_t page = -1;
};

class Adapter {
public:
    /// What a host is told, at the moment at which it could see it in its memory.
    struct Events {
        std::function<void(ViId, MessageId)> sent;
        std::function<void(ViId, MessageId, std::int64_t length)> received;
        std::function<void(bool receive, ViId)> refill;  ///< an interrupt: there is room again
    };
    /// All but the events outlive the adapter. It begins to run at once. The seed decides how the
    /// firmware's steps differ.
    Adapter(Schedule& schedule, Ledger& ledger, const Costs& costs, Design& design,
            Network& network, Resource& bus, const Without& without, std::uint64_t seed,
            Events events);

    NodeId node() const { return node_; }
    void connect(ViId vi, NodeId peer) { peers_[vi] = peer; }

    // The host's side; its time is the host's affair ------------------------------------------
    /// Descriptors of a queue on the NIC: of all send queues, or of a VI's receive queue.
    struct Queue {
        std::deque<PhysicalDescriptor> on_nic;
        std::int64_t coming = 0;    ///< descriptors that are being written
        bool more_in_host = false;  ///< the flag that the host sets
        bool refilling = false;     ///< the host was asked for more
        bool writing = false;       ///< the host writes descriptors, in order
    };
    Queue& sends() { return sends_; }
    Queue& receives(ViId vi) { return receives_[vi]; }
    const Queue* receives_if_any(ViId vi) const {
        const auto found = receives_.find(vi);
        return found == receives_.end() ? nullptr : &found->second;
    }

    // For parts: time of the firmware ----------------------------------------------------------
    /// A step that touches so many words that its processor cannot cache.
    Resource::Use step(std::int64_t words, const char* what, MessageId message = no_message);
    Resource::Use spend(Duration span, const Work& work);
    /// A look for work, or (of a message) whether something of it is done: no work by itself.
    Resource::Use look(Duration span, const char* what, MessageId message = no_message);
    Resource::Use look_for_work(const char* what);
    Resource::Use look_at_dma(const char* what, MessageId message);
    /// Bytes from the host's memory; the firmware waits for them.
    Task<> fetch(std::int64_t bytes, Share share, const char* what, MessageId message);
    /// Bytes to the host's memory, behind what was asked for before.
    Task<> deliver(std::int64_t bytes, const char* what, MessageId message,
                   std::function<void()> landed);
    const Costs& costs() const { return costs_; }
    AdapterCounts& counts() { return counts_; }
    const AdapterCounts& counts() const { return counts_; }
    const Fifo& send_fifo() const { return send_fifo_; }
    const Fifo& receive_fifo() const { return receive_fifo_; }
    ResourceId firmware_id() const { return firmware_.id(); }

private:
    Task<> run();
    // firmware_send.cpp
    Task<> send_step();
    Task<> begin_send(ViId vi);
    Task<> start_dmas(Sending& sending);
    Task<bool> send_packets(Sending& sending);
    Task<> complete_send(Sending& sending);
    Task<> leave(Packet packet, SharedTransfer transfer);
    // firmware_receive.cpp
    Task<> receive_step();
    Task<> take_packet(Packet packet);
    Task<bool> begin_receive(const Packet& packet);
    Task<> start_pieces(const Packet& packet, Receiving& receiving);
    Task<> arrive(Packet packet, SharedTransfer transfer);
    Task<bool> end_packet();
    Task<> housekeeping();
    void look_at(Queue& queue, bool receive, ViId vi);
    Task<> locate(std::int64_t address, std::int64_t& page, MessageId message);

    Schedule& schedule_;
    const Costs& costs_;
    Design& design_;
    Network& network_;
    Without without_;
    Events events_;
    NodeId node_;
    Resource firmware_;
    Resource rhs_;
    Fifo send_fifo_;
    Fifo receive_fifo_;
    DmaEngine lhs_;
    std::map<ViId, NodeId> peers_;
    Queue sends_;
    std::map<ViId, Queue> receives_;
    std::optional<Sending> sending_;
    std::deque<Packet> arrived_;
    std::map<ViId, Receiving> receiving_;  ///< messages of which a packet came, and not the last
    std::optional<Packet> entering_;       ///< on its way from the interface to the FIFO
    SharedTransfer entering_transfer_;
    std::optional<std::pair<bool, ViId>> refill_;  ///< to be asked for in housekeeping
    AdapterCounts counts_;
    Random random_;  ///< how much longer or shorter a step is than another
};

}  // namespace via::lab
