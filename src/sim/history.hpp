// What happens in a world, as the checkers hear of it. Numbers name nodes, VIs, descriptors and
// messages for the whole run and are never used twice; places are offsets into a node's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/time.hpp"
#include "nic/nic.hpp"

namespace via::sim {

using NodeNumber = std::uint32_t;  ///< an open NIC; one that is opened again is another
using ViNumber = std::uint32_t;
using WorkNumber = std::uint32_t;     ///< a posted descriptor
using ChannelNumber = std::uint32_t;  ///< one direction of one connection
using WordNumber = std::uint32_t;     ///< a word of memory for atomic operations
using engine::Reliability;
using engine::ViState;

// Memory ------------------------------------------------------------------------------------------

/// A region was registered, or its attributes changed.
struct Granted {
    NodeNumber node;
    memory::MemoryHandle handle;
    std::uint64_t begin;
    std::uint64_t length;
    memory::MemoryAttributes attributes;
};
struct Revoked {
    NodeNumber node;
    memory::MemoryHandle handle;
};
/// From now on the node's NIC may write there: for work of its own program, or for an RDMA write
/// of a peer.
struct Opened {
    std::uint64_t id;
    NodeNumber node;
    std::uint64_t begin;
    std::uint64_t length;
    bool remote;
    bool atomic = false;  ///< remote: for atomic operations
};
struct Closed {
    std::uint64_t id;
};
/// These bytes of the node's memory changed, and not by its program.
struct Changed {
    NodeNumber node;
    std::uint64_t begin;
    std::uint64_t length;
};

// VIs ---------------------------------------------------------------------------------------------

struct ViMade {
    ViNumber vi;
    NodeNumber node;
    engine::ViAttributes attributes;
};
/// What could have changed a state.
enum class Cause : std::uint8_t {
    turn,  ///< the NIC, or a call that concerned another VI
    connect,
    accept,
    disconnect,
};
struct StateChanged {
    ViNumber vi;
    ViState from;
    ViState to;
    Cause cause;
};
/// The program was told CONN_LOST.
struct Lost {
    ViNumber vi;
};
/// A call answered; `expected` is what the specification says.
struct Called {
    const char* what;
    Status got;
    Status expected;
};

// Descriptors -------------------------------------------------------------------------------------

struct Posted {
    WorkNumber work;
    ViNumber vi;
    bool receive;
    std::uint32_t operation;  ///< bits of Status (VIPL 1.7)
    std::uint32_t fault;      ///< the error bit it must have if it is not flushed; 0: it is sound
    ViState state;            ///< of the VI before the post
    Reliability reliability;
};
/// Its Status says DONE.
struct Completed {
    WorkNumber work;
    std::uint32_t status;
    bool placed;  ///< of a send or RDMA write: the message lies in the remote memory by now
};
/// Done gave it back to the program.
struct Taken {
    WorkNumber work;
};

// Messages ----------------------------------------------------------------------------------------

/// A sound send or RDMA write was posted on a connected VI. `work` names the message too.
struct Sent {
    WorkNumber work;
    ChannelNumber channel;
    bool reliable;
    std::span<const std::byte> bytes;
    bool fenced = false;  ///< starts after earlier RDMA reads of its VI were completed
    bool silent = false;  ///< an RDMA write that consumes no receive
};
/// A message is there: its receive completed, or its bytes stand in the target.
struct Delivered {
    WorkNumber work;
    ChannelNumber channel;
    std::span<const std::byte> bytes;
    /// Of a silent one: straight to memory that both have, so it may have overtaken what consumes a
    /// receive.
    bool early = false;
};
/// An RDMA operation was posted; `vi` is the one at the target.
struct RdmaAsked {
    WorkNumber work;
    ViNumber vi;
    NodeNumber node;
    memory::MemoryHandle handle;
    std::uint64_t begin;
    std::uint64_t length;
    bool write;
    bool atomic = false;  ///< no write: a word is changed, and what it was is read
};
/// The bytes of an RDMA read are there, or what an atomic operation found. Its descriptor completes
/// behind those before it, which may wait for acknowledgements.
struct ReadLanded {
    WorkNumber work;
};
/// A word of a node's memory that from now on only atomic operations of peers change: by them it
/// grows.
struct WordMade {
    WordNumber word;
    std::uint64_t value;
};
/// An atomic operation was posted that adds to the word.
struct WordAsked {
    WorkNumber work;
    WordNumber word;
    ChannelNumber channel;
    std::uint64_t step;                     ///< that it adds
    std::optional<std::uint64_t> expected;  ///< only if the word is that: a compare-and-swap
};
/// It completed well, and brought the word as it was.
struct WordFound {
    WorkNumber work;
    std::uint64_t was;
};
/// Nobody may change it any more.
struct WordEnded {
    WordNumber word;
    std::uint64_t value;
};
/// The connection never broke and everything sent on it was waited for.
struct Quiet {
    ChannelNumber channel;
};

// The world ---------------------------------------------------------------------------------------

struct TurnDone {
    NodeNumber node;
    std::uint32_t frames;
    std::uint32_t frames_max;
    std::uint64_t bytes;
    std::uint64_t bytes_max;
};
/// The workload makes no new work; sends that are under way must end within `bound`.
struct Stopped {
    Duration bound;
};
/// Nothing will happen any more by itself.
struct Rested {};
/// Everything was disconnected; nothing may be left.
struct Emptied {};

using Happening =
    std::variant<Granted, Revoked, Opened, Closed, Changed, ViMade, StateChanged, Lost, Called,
                 Posted, Completed, Taken, Sent, Delivered, RdmaAsked, ReadLanded, WordMade,
                 WordAsked, WordFound, WordEnded, Quiet, TurnDone, Stopped, Rested, Emptied>;

struct Event {
    Time time;
    Happening what;
};

/// For the trace.
std::string to_text(const Happening& what);
const char* to_text(ViState state);

}  // namespace via::sim
