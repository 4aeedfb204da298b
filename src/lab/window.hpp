// A window into other hosts' memory, as SCI has it: what the processor stores into imported pages
// goes on the bus, in bursts, to the card, which makes packets of it; the other card writes them to
// its host's memory and answers. The processor goes on meanwhile. A load waits for its answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "lab/fifo.hpp"
#include "lab/machine.hpp"
#include "lab/network.hpp"
#include "lab/packet.hpp"
#include "lab/parts.hpp"
#include "lab/resource.hpp"

namespace via::lab {

struct WindowCounts {
    std::uint64_t bursts = 0;   ///< on the bus, of stores
    std::uint64_t packets = 0;  ///< of stores
    std::uint64_t loads = 0;
    std::int64_t bytes_stored = 0;
    std::int64_t bytes_landed = 0;  ///< of others' stores, in this host's memory
};

class Window {
public:
    /// Who has one, by node: the cards of all hosts that can reach each other.
    using Cards = std::vector<Window*>;

    /// Everything given outlives it. Its card is that of the node's adapter.
    Window(Schedule& schedule, Ledger& ledger, const Costs& costs, const Without& without,
           Resource& processor, Resource& bus, Network& network, NodeId node, Cards& cards);

    /// A copy of that many bytes to imported memory of `to`, which begins at `where`. Over when the
    /// processor's buffers have taken the last byte; they go on by themselves. `landed` is called
    /// when it is in the other host's memory.
    Task<> store(NodeId to, Buffer where, MessageId message, std::function<void()> landed = {});
    /// Until all that was stored has landed, and was answered: packets are in no order.
    Task<> barrier(MessageId message);
    /// Words from there, one after the other: the processor stands still.
    Task<> load(NodeId from, std::int64_t bytes, MessageId message);

    const WindowCounts& counts() const { return counts_; }

private:
    /// What goes on the bus in one piece.
    struct Burst {
        NodeId to = 0;
        std::int64_t bytes = 0;
        bool ends_packet = false;
        MessageId message = no_message;
        std::function<void()> landed;
    };

    Task<> bursts();
    Task<> leave(Packet packet);
    void take(const Packet& packet);
    Task<> enter(const Packet& packet);
    Task<> land(Packet packet);
    Task<> serve(Packet packet);
    void end(const Packet& answer);
    std::int64_t number(std::function<void()> then);
    Resource::Use bus(std::int64_t bytes, std::int64_t rate, const char* what, MessageId message);
    void account(Time begin, const char* what, MessageId message);

    Schedule& schedule_;
    Ledger& ledger_;
    const Costs& costs_;
    const Without& without_;
    Resource& processor_;
    Resource& bus_;
    Network& network_;
    NodeId node_;
    ResourceId card_;  ///< passes several packets at once
    Cards& cards_;
    Fifo combining_;
    Fifo streams_;
    Signal burst_came_;
    Signal answered_;
    std::deque<Burst> waiting_;
    std::int64_t under_way_ = 0;  ///< bursts and packets that no answer has come for
    std::int64_t next_ = 0;
    std::map<std::int64_t, std::function<void()>> landings_;  ///< of packets, by number
    WindowCounts counts_;
};

}  // namespace via::lab
