// A NIC with a processor that runs firmware in one loop: sends, arrivals, housekeeping. What it is
// asked for are descriptors; what it tells are completions. Which design it has is in its parts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
    std::uint64_t ahead_most = 0;    ///< packets of a message in the Send-FIFO at once
    std::uint64_t translations = 0;  ///< that the NIC made
    std::uint64_t misses = 0;        ///< of these, from the host's memory
    std::uint64_t nowhere = 0;       ///< messages for which no receive was posted
    std::uint64_t refused = 0;       ///< messages to or from pages with another tag
    // Of dynamic look-up
    std::uint64_t cold_misses = 0;    ///< of misses: of lines that were never there
    std::uint64_t send_misses = 0;    ///< of misses: of what was to be sent
    std::uint64_t handle_misses = 0;  ///< of buffers and processes
    std::uint64_t miss_interrupts = 0;
    std::uint64_t dropped = 0;    ///< packets that missed
    std::uint64_t discarded = 0;  ///< packets behind them, or that were there already
    std::uint64_t retransmissions = 0;
    std::uint64_t pinned = 0;  ///< pages, by the host's thread; and let go again
    std::uint64_t unpinned = 0;
    std::int64_t serving_ns = 0;  ///< of the thread: all misses, and the longest
    std::int64_t serving_most_ns = 0;
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
    std::int64_t page = -1;         ///< of which the address is known
    std::int64_t import_page = -1;  ///< the same of imported memory
    std::int64_t offset = 0;
    std::deque<Outgoing> outgoing;
    SharedTransfer last;  ///< the last packet that leaves
    std::size_t left = 0;
    NodeId to = 0;
    std::int64_t sequence = -1;  ///< -1: nobody acknowledges it
    bool process_known = false;
    bool blocked = false;  ///< until the host has written a line of handles
};
/// A message of which packets have arrived.
struct Receiving {
    PhysicalDescriptor descriptor;
    MessageId message = no_message;
    std::int64_t length = 0;
    std::int64_t page = -1;
    bool placed = true;  ///< its bytes go to the host's memory
};

class Adapter {
public:
    /// What a host is told, at the moment at which it could see it in its memory.
    struct Events {
        std::function<void(ViId, MessageId)> sent;
        /// `copies`: its bytes are in the kernel's memory, and the host brings them to their place.
        std::function<void(ViId, MessageId, std::int64_t length, bool copies)> received;
        std::function<void(bool receive, ViId)> refill;  ///< an interrupt: there is room again
        std::function<void(MessageId)> took;             ///< a receive descriptor, for that message
        /// A packet finds no receive descriptor of its VI on the NIC: will one come?
        std::function<bool(ViId)> expects;
        std::function<void(MissingLine)> miss;  ///< an interrupt: a cache of handles has it not
    };
    /// All but the events outlive the adapter. It begins to run at once. The seed decides how the
    /// firmware's steps differ.
    Adapter(Schedule& schedule, Ledger& ledger, const Costs& costs, Design& design,
            Network& network, Resource& bus, const Without& without, std::uint64_t seed,
            Events events);

    NodeId node() const { return node_; }
    void connect(ViId vi, NodeId peer, std::uint32_t process = 0) {
        peers_[vi] = peer;
        owners_[vi] = process;
    }
    /// Whose VI it is.
    std::uint32_t process_of(ViId vi) const {
        const auto found = owners_.find(vi);
        return found == owners_.end() ? 0 : found->second;
    }

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
    /// A message that the firmware makes itself, as an answer to one.
    void send_own(const PhysicalDescriptor& descriptor) {
        wake();
        own_.push_back(descriptor);
    }
    /// Around the ring of a doorbell: the firmware is not parked between the two.
    void begin_ring() {
        wake();
        ++rings_;
    }
    void end_ring() { --rings_; }
    Queue& receives(ViId vi) { return receives_[vi]; }

    // For parts: time of the firmware ----------------------------------------------------------
    /// A step that touches so many words that its processor cannot cache.
    Resource::Use step(std::int64_t words, const char* what, MessageId message = no_message);
    Resource::Use spend(Duration span, const Work& work);
    /// Passes at once while the firmware makes up for the time that it was parked.
    struct Look {
        Adapter& adapter;
        Resource::Use use;
        bool await_ready();
        void await_suspend(std::coroutine_handle<> waiting) { use.await_suspend(waiting); }
        void await_resume() const noexcept {}
    };
    /// A look for work, or (of a message) whether something of it is done: no work by itself.
    Look look(Duration span, const char* what, MessageId message = no_message);
    Look look_for_work(const char* what);
    Look look_at_dma(const char* what, MessageId message);
    /// Bytes from the host's memory; the firmware waits for them.
    Task<> fetch(std::int64_t bytes, Share share, const char* what, MessageId message);
    /// Some words from there that nobody waits for.
    void fetch_ahead(std::function<void()> landed);
    /// Bytes to the host's memory, behind what was asked for before.
    Task<> deliver(std::int64_t bytes, const char* what, MessageId message,
                   std::function<void()> landed);
    /// Until it is known where something else than payload lies: a descriptor.
    Task<> translate(std::int64_t address, MessageId message);
    /// Asks the host for a line of handles.
    void miss(MissingLine line);
    /// The same of a page that no descriptor names: the NIC's tables tell, or one of the host's.
    Task<> translate_named(std::int64_t address, MessageId message);
    const Without& without() const { return without_; }
    const Costs& costs() const { return costs_; }
    AdapterCounts& counts() { return counts_; }
    const AdapterCounts& counts() const { return counts_; }
    const Fifo& send_fifo() const { return send_fifo_; }
    const Fifo& receive_fifo() const { return receive_fifo_; }

private:
    struct Park {
        Adapter& adapter;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> firmware) {
            adapter.parked_ = firmware;
            adapter.parked_at_ = adapter.schedule_.now();
        }
        void await_resume() const noexcept {}
    };

    Task<> run();
    bool may_park(std::uint64_t changes) const;
    void wake();
    // firmware_send.cpp
    Task<> send_step(std::optional<ViId> rung);
    Task<> begin_next_again();
    Task<> begin_send(ViId vi);
    Task<> begin_own();
    bool may_send(const PhysicalDescriptor& descriptor) const;
    Task<> refuse();
    Task<> locate_import(Sending& sending);
    void cut_up(Sending& sending) const;
    Packet packet_of(const Sending& sending, std::int64_t length) const;
    Task<> start_dmas(Sending& sending);
    Task<bool> send_packets(Sending& sending);
    Task<> complete_send(Sending& sending);
    Task<> leave(Packet packet, SharedTransfer transfer);
    /// RHS serves both ways in turn: what waits to leave goes before another packet comes in.
    bool leaving_is_next() const { return leaving_waits_ && came_in_last_; }
    // firmware_receive.cpp
    Task<> receive_step();
    Task<> take_packet(Packet packet);
    Task<bool> begin_receive(const Packet& packet);
    Task<> start_pieces(const Packet& packet, Receiving& receiving);
    Task<> locate_named(std::int64_t address, std::int64_t& page, MessageId message);
    Task<> arrive(Packet packet, SharedTransfer transfer);
    Task<bool> end_packet();
    void tell_of(const Packet& last, std::int64_t length);
    Task<> raise_refill();
    void look_at(Queue& queue, bool receive, ViId vi);
    // firmware_dynamic.cpp
    /// Of a NIC: what came from it, as far as it was taken.
    struct Inbound {
        std::int64_t expected = 0;  ///< the message that is next
        std::int64_t progress = 0;  ///< of it, bytes
        bool begun = false;         ///< its receive descriptor was taken
        bool process_known = false;
        bool buffer_known = false;
        std::vector<std::int64_t> pages;  ///< of its next packet, those that were found
    };
    struct Unacknowledged {
        PhysicalDescriptor descriptor;
        std::int64_t sequence = 0;
        std::uint32_t sent = 0;  ///< how often it was to be sent again
        bool again = false;      ///< it is about to be
    };
    struct Outbound {
        std::int64_t next = 0;
        std::deque<Unacknowledged> unacknowledged;
    };
    bool numbered() const { return dynamic_ && !design_.holds; }
    Task<bool> find_for_send(Sending& sending, std::int64_t address);
    Task<bool> admit(const Packet& packet);
    Task<bool> find_for_receive(const Packet& packet, Inbound& inbound);
    void discard(const Packet& packet);
    Task<> let_go(Packet packet);
    void acknowledge(NodeId from);
    void number(Sending& sending);
    Task<> take_acknowledgement(Packet packet);
    Task<> retransmit_later(NodeId to, std::int64_t sequence, std::uint32_t sent);
    bool begin_again();
    void leave_unacknowledged(const Sending& sending);
    bool staged() const { return design_.staged && !without_.staging; }
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
    bool dynamic_;
    std::map<NodeId, Inbound> inbound_;
    std::map<NodeId, Outbound> outbound_;
    std::deque<std::pair<NodeId, std::int64_t>> again_;  ///< messages, by number
    std::map<ViId, NodeId> peers_;
    std::map<ViId, std::uint32_t> owners_;
    Queue sends_;
    std::deque<PhysicalDescriptor> own_;
    bool own_went_last_ = false;  ///< so a program's message is next, if there is one
    std::map<ViId, Queue> receives_;
    std::optional<Sending> sending_;
    std::deque<Packet> arrived_;
    std::map<NodeId, Receiving> receiving_;  ///< by sender, who sends one after the other
    std::optional<Packet> entering_;         ///< on its way from the interface to the FIFO
    SharedTransfer entering_transfer_;
    bool leaving_waits_ = false;  ///< a packet found RHS busy
    bool came_in_last_ = false;   ///< what RHS was given last was a packet that came in
    std::optional<std::pair<bool, ViId>> refill_;  ///< to be asked for in housekeeping
    // Idle firmware looks at the same things again and again, and finds nothing until something
    // changes. So it is parked, and before the change it makes up for the time since: it runs
    // through its looks without events, up to the one that the change finds it at.
    std::coroutine_handle<> parked_;  ///< nullptr: it runs
    Time parked_at_{};
    Duration round_{};   ///< of its loop, when it was parked
    Duration behind_{};  ///< that it has still to make up for
    bool making_up_ = false;
    std::uint32_t rings_ = 0;    ///< that have begun
    std::uint64_t changes_ = 0;  ///< that its looks may find
    AdapterCounts counts_;
    Random random_;  ///< how much longer or shorter a step is than another
};

}  // namespace via::lab
