// What the world knows of its programs: their memory, VIs, descriptors and connections. All records
// live until the run ends; pointers between them stay good.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "device/sim/sim_port.hpp"
#include "device/sim/virtual_clock.hpp"
#include "sim/arena.hpp"
#include "sim/history.hpp"
#include "sim/parameters.hpp"
#include "sim/posted_receives.hpp"

namespace via::sim {

struct Connection;
struct Node;
struct Vi;
struct Work;

/// A registered region and which of its bytes are used by somebody.
struct Region {
    memory::MemoryHandle handle;
    std::uint64_t begin;
    std::uint64_t length;
    memory::MemoryAttributes attributes;
    Blocks blocks;
    bool live = true;
    bool shared = false;        ///< a segment that peers may attach to
    std::uint32_t changes = 0;  ///< of its rights, and its end
};

/// A memory window, until its program ends it.
struct Window {
    memory::MemoryHandle handle;
    const Region* region;  ///< nullptr: it is gone, and the window's rights with it
    std::uint64_t begin;
    std::uint64_t length;
};

/// Part of a message in the program's memory.
struct Piece {
    Region* region;
    std::uint64_t block;   ///< to be given back
    std::uint64_t offset;  ///< in the arena
    std::uint32_t length;
    bool named = true;                ///< the descriptor names the region's handle
    const Region* instead = nullptr;  ///< whose handle it names otherwise, if any region's
};

/// Memory of another node that an RDMA operation goes to, ours alone while it is under way.
struct Target {
    Work* work;
    Vi* vi;  ///< at the target
    Region* region;
    std::uint64_t block;
    std::uint64_t offset;
    std::uint32_t length;
    Opened opened{};
    const Window* window = nullptr;  ///< by which it goes there; nullptr: by the region's handle
};

enum class WorkKind : std::uint8_t {
    receive,
    send,
    rdma_write,
    rdma_read,
    compare_swap,
    fetch_add
};

constexpr std::uint64_t word_length = 8;
constexpr std::uint64_t no_word = ~std::uint64_t{0};  ///< what no word ever is

/// A word of a region that only atomic operations of peers change, until the region goes.
struct Word {
    WordNumber number;
    Region* region;
    std::uint64_t block;
    std::uint64_t offset;
    std::uint64_t guess;  ///< what somebody found there last
    Opened opened{};
    bool live = true;
};

/// A posted descriptor.
struct Work {
    WorkNumber number;
    Vi* vi;
    WorkKind kind;
    Piece descriptor;
    std::vector<Piece> pieces;
    /// Of the message; of a read, what it will find; of a receive, what its buffers held before.
    std::vector<std::byte> bytes;
    bool immediate = false;
    bool fenced = false;
    Connection* connection = nullptr;  ///< on which it was posted
    int side = 0;                      ///< of the poster
    std::unique_ptr<Target> read_from;
    Word* word = nullptr;  ///< of an atomic operation
    std::vector<Opened> opened;
    bool completed = false;
    bool taken = false;
    bool delivered = false;
    bool landed = false;  ///< of a read: its bytes are there

    bool is_atomic() const { return kind == WorkKind::compare_swap || kind == WorkKind::fetch_add; }
    bool consumes_receive() const {
        return kind == WorkKind::send || (kind == WorkKind::rdma_write && immediate);
    }
    std::uint64_t length() const;
};

/// Of the two ends, 0 asked and 1 accepted. It may be one VI that accepts what itself has
/// withdrawn.
struct Connection {
    std::uint32_t number;
    Vi* ends[2];
    std::vector<Work*> sent[2];  ///< by each end, those that consume a receive
    WorkNumber arrived[2] = {};  ///< the last one of each end that arrived, RDMA writes included
    bool joined[2] = {false, true};
    bool left[2] = {false, false};
    bool trouble = false;  ///< something was done that may break it

    ChannelNumber channel_from(int side) const {
        return number * 2 + static_cast<ChannelNumber>(side);
    }
    /// Messages wait at their senders until there are receives.
    bool has_credits() const;
};

struct Queue {
    std::deque<Work*> works;        ///< posted, not taken; in order
    std::uint64_t completions = 0;  ///< name of its completion queue, or 0
};

/// A question for a segment of the VI's peer, and what there was to be said.
struct SegmentQuestion {
    std::uint32_t number;
    const Connection* connection;
    memory::MemoryHandle handle;
    std::uint32_t changes;
    bool writable;
    bool allowed;
};

struct Vi {
    ViNumber number;
    Node* node;
    engine::Vi* vi;
    std::uint32_t generation;
    engine::ViAttributes attributes;
    ViState state = ViState::idle;
    std::uint32_t attempt = 0;  ///< counts its requests
    /// Whom it asks for, peer to peer, by which attempt of its own, and by which of the other one.
    Vi* partner = nullptr;
    std::uint32_t partner_since = 0;
    std::uint32_t partner_attempt = 0;
    Connection* connection = nullptr;
    int side = 0;  ///< its end of the connection
    Queue send;
    Queue receive;
    bool trouble = false;  ///< a receive was posted that cannot take every message
    bool wants_credits = false;
    bool takes_shared = false;   ///< from its node's shared receive queue
    queue::Cursor next_receive;  ///< then: the first in its receive queue that was not looked at
    bool alive = true;
    std::optional<SegmentQuestion> question;
    /// Segments that it ever asked for to write to, on this connection, and their addresses: what
    /// it writes there may be there before what it sent.
    std::map<memory::MemoryHandle, std::uint64_t> shared;
};

/// A request that was given to the program and is not answered yet.
struct Offer {
    std::uint64_t connection;
    ViNumber vi;
    std::uint32_t attempt;
    engine::RemoteAttributes attributes;
    Time given{};
};

/// A shared receive queue. What no VI has taken stands with the holder, which is no VI.
struct SharedQueue {
    std::uint64_t name;
    engine::SharedShape shape;
    Vi* holder;
    WorkNumber newest_taken;  ///< of all receives that VIs took
    std::uint32_t limit;      ///< armed; 0: none
    bool reached;             ///< it was, and nobody has asked since
};

struct Waiting {
    std::unique_ptr<engine::Listener> listener;
    Time until;
};

/// The agent's side of a NIC's small table. Now and then it wants a line back, as one does that may
/// lock only so much.
class Lines final : public memory::LineLoader {
public:
    Lines(nic::Nic& nic, std::uint64_t seed) : nic_(nic), random_(seed) {}
    bool load(const memory::Line& line) override;
    void evicted(const memory::LineName& line) override;
    void forget(memory::MemoryHandle handle) override;

private:
    nic::Nic& nic_;
    Random random_;
    std::set<memory::LineName> present_;
};

/// An open NIC and its program.
struct Node final : nic::Attendant {
    Node(NodeNumber its_number, std::uint32_t its_host, const Parameters& parameters,
         std::uint64_t seed, const device::sim::VirtualClock& its_clock);

    void attend() override {}
    void report(const engine::ErrorEvent& event) override { errors.push_back(event); }
    void refused(const char* why) override { refusal = why; }
    Time now() override { return clock.now(); }

    NodeNumber number;
    std::uint32_t host;  ///< its address; another NIC may have it after this one
    const device::sim::VirtualClock& clock;
    Counters counters{};
    std::vector<Waiting> waiting;  ///< outlive the NIC, which knows them
    PostedReceives receives{nic};  ///< for who carries its frames
    nic::Nic nic;
    Lines lines;
    Arena arena;
    Random random;
    std::vector<std::unique_ptr<Region>> regions;
    memory::MemoryHandle gone = 0;  ///< of the region that went last; 0: none did
    std::vector<memory::ProtectionTag> tags;
    std::vector<std::uint64_t> completion_queues;
    std::vector<Vi*> vis;
    std::unique_ptr<SharedQueue> shared;
    std::vector<Offer> offers;
    std::vector<std::byte*> imports;  ///< of peers' segments, not let go of
    std::vector<engine::ErrorEvent> errors;
    std::vector<std::unique_ptr<Target>> targets;  ///< RDMA writes that come here
    std::vector<Work*> asked_here;  ///< reads and atomic operations that do; some are taken
    std::deque<Word> words;         ///< those that are gone, too
    std::vector<std::unique_ptr<Window>> windows;  ///< bound and not ended, in that order
    memory::MemoryHandle window_gone = 0;          ///< that was ended last; 0: none was
    std::map<std::uint64_t, Work*> by_descriptor;  ///< not taken
    Time not_before{};                             ///< earliest moment of the next turn
    bool unasked = false;                          ///< its NIC will be asked when it wants that
    bool alive = true;
    const char* refusal = nullptr;  ///< why a frame of a peer was refused last
    // Of worlds of datagrams
    Time stood_still_from{};  ///< last; until:
    Time stood_still_until{};
    std::vector<device::sim::SimPort*> ports;    ///< the device's, by interface, while that lives
    std::vector<device::sim::SocketId> sockets;  ///< by which the network knows them, for ever
    std::uint64_t instance = 0;
    std::uint16_t data_port = 0;  ///< where it shall be, or its successor; 0: anywhere
};

/// Its first interface's is that of its NICs.
HostAddress address_of_host(std::uint32_t host, std::uint32_t interface = 0);
/// Of any of its interfaces?
bool is_address_of_host(const HostAddress& address, std::uint32_t host);
/// At random; nullptr: it has none.
Vi* any_vi(Node& node);

class Model {
public:
    Vi& add_vi(Node& node, engine::Vi& vi, const engine::ViAttributes& attributes);
    /// None of the node's VIs: it only has attributes and descriptors.
    Vi& add_holder(Node& node, const engine::ViAttributes& attributes);
    Work& add_work(Vi& vi, WorkKind kind);
    Connection& add_connection(Vi& asked, Vi& accepted);
    std::uint64_t next_opening() { return ++openings_; }
    WordNumber next_word() { return ++words_; }

    /// The connection that the VI's present request was accepted to, or nullptr.
    /// `vi` was found by the one it asks for, peer to peer, and is connected first. nullptr: it
    /// asks for none.
    Connection* met(Vi& vi);
    Connection* accepted(const Vi& vi) const;
    Vi* vi(ViNumber number) { return number < vis_.size() ? &vis_[number] : nullptr; }
    std::deque<Connection>& connections() { return connections_; }

    std::vector<std::unique_ptr<Node>> nodes;
    bool shares = false;  ///< nodes write to others' memory without a frame

private:
    std::deque<Vi> vis_;
    std::deque<Work> works_;
    std::deque<Connection> connections_;
    std::map<std::pair<ViNumber, std::uint32_t>, Connection*> accepted_;
    std::uint64_t openings_ = 0;
    WordNumber words_ = 0;
};

}  // namespace via::sim
