// The state of one VI (VIPL 3). The engine owns it and changes it under the turn; the fields that
// say so are read by any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/atomic.hpp"
#include "base/list.hpp"
#include "base/shared_memory.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "engine/region_use.hpp"
#include "memory/handle.hpp"
#include "queue/byte_walk.hpp"
#include "queue/completion_queue.hpp"
#include "queue/work_queue.hpp"
#include "wire/frame.hpp"

namespace via::engine {

/// In VIPL's order (1.6).
enum class ViState : std::uint32_t { idle = 0, connected, connect_pending, error };

/// VIPL's bits (1.7).
enum class Reliability : std::uint16_t { unreliable = 1, delivery = 2, reception = 4 };

/// A peer NIC, as the engine counts them; the NIC maps them to devices' paths.
using PathId = std::uint32_t;
constexpr PathId no_path = ~0U;

struct ViAttributes {
    Reliability reliability = Reliability::unreliable;
    std::uint32_t transfer_length_max = 0;  ///< bytes
    std::uint64_t qos = 0;                  ///< always 0
    memory::ProtectionTag tag = memory::no_tag;
    bool rdma_write = false;  ///< the peer may write by RDMA
    bool rdma_read = false;   ///< the peer may read by RDMA
};

/// What ConnectRequest and QueryVi tell of the other end; it has no tag for us.
using RemoteAttributes = ViAttributes;

/// In VIPL's order (1.6).
enum class ErrorCode : std::uint8_t {
    post_descriptor = 0,  ///< a post's own result tells
    connection_lost,
    receive_queue_empty,
    vi_overrun,
    rdma_write_protection,
    rdma_write_data,
    rdma_write_abort,
    rdma_read_protection,
    completion_protection,
    rdma_transport,
    catastrophic,
};

/// A message of the peer that we pull from its memory, piece by piece.
struct Pull {
    wire::PullHead head{};
    wire::PullPlace places[wire::pull_places_max];
    std::uint32_t count = 0;
    std::uint32_t place = 0;   ///< the one that is next
    std::uint64_t offset = 0;  ///< within it
    wire::Header header;       ///< of the frame that told of it
    queue::ByteWalk scatter;   ///< a send's: where its next bytes go
};

/// A segment of the peer that a VI reads and writes without the peer's processor.
struct Import {
    memory::MemoryHandle handle = 0;   ///< the peer's
    std::uint64_t remote_address = 0;  ///< where the peer has it
    Attachment attachment;
};

/// A question for a segment. Stays with the VI until it was taken.
struct Attach {
    Import wanted;
    std::uint32_t number = 0;
    Status status = Status::not_done;
};

/// Payload of the longest frame of connecting: every device carries it.
constexpr std::uint32_t connect_payload_max = wire::connect_payload_max;

/// What a program sends along when it connects, accepts or rejects.
struct PrivateData {
    std::uint32_t length = 0;
    std::array<std::byte, wire::private_length_max> bytes{};
};

/// A queue of a VI and where its completions go: in the room that the queue's last line leaves.
struct ViQueue {
    [[no_unique_address]] queue::WorkQueue work;
    queue::CompletionQueue* completions = nullptr;
    Atomic<bool> takes_shared{false};  ///< connected, with a shared receive queue behind it

    /// Neither is a descriptor there nor may one come without a post to this queue. Any thread.
    bool expects_nothing() const {
        // Once more behind the flag: what came from the shared queue before it fell is seen.
        return work.empty() && !takes_shared.load(std::memory_order_acquire) && work.empty();
    }
};

inline std::uint16_t operation_of(const queue::WorkEntry& entry) {
    return entry.control & queue::control::operation_mask;
}

inline bool is_atomic(const queue::WorkEntry& entry) {
    return operation_of(entry) == queue::control::atomic;
}

/// The two words that an atomic operation comes with.
inline const queue::Segment* words_of(const queue::Cursor& at) {
    queue::SegmentWalk walk(at, 1);
    walk.next();
    return &walk.next();
}

/// What the frame of an RDMA read or an atomic operation is.
inline wire::FrameKind kind_of_question(const queue::WorkEntry& entry) {
    return !is_atomic(entry)                             ? wire::FrameKind::read_request
           : (entry.control & queue::control::adds) != 0 ? wire::FrameKind::fetch_add
                                                         : wire::FrameKind::compare_swap;
}

/// Is the message done when the peer's answer is there: an RDMA read or an atomic operation?
inline bool is_answered(const queue::WorkEntry& entry) {
    return operation_of(entry) >= queue::control::rdma_read;
}

/// Does the message take a receive off the peer's queue?
inline bool consumes_receive(const queue::WorkEntry& entry) {
    return operation_of(entry) == queue::control::send_receive ||
           (operation_of(entry) == queue::control::rdma_write &&
            (entry.control & queue::control::immediate) != 0);
}

constexpr std::uint64_t no_fast_path = ~std::uint64_t{0};
constexpr std::uint64_t fast_path_of(PathId path, std::uint32_t number) {
    return std::uint64_t{path} << 32 | number;
}

struct SharedReceiveQueue;

struct ActiveLink : ListLink {};
struct EventLink : ListLink {};
struct PullLink : ListLink {};

/// Who serves many VIs waits for their lines: what every message needs comes first, close together.
struct Vi : ActiveLink, EventLink, PullLink {
    // Any thread --------------------------------------------------------------------------------
    Atomic<ViState> state{ViState::idle};
    std::uint32_t index = 0;                  ///< place in the NIC's table; constant
    Atomic<std::uint32_t> generation{0};      ///< of the VI handle; odd: exists
    Atomic<std::uint32_t> receive_faults{0};  ///< receives posted with a fault, ever
    Vi* next_rung = nullptr;                  ///< the doorbell list
    Atomic<bool> rung{false};                 ///< stands in the NIC's doorbell list
    Atomic<bool> credits_agreed{false};       ///< read by posters; changed under the turn
    Atomic<bool> peer_knows_atomics{false};   ///< of the last connection; as credits_agreed

    // The turn ----------------------------------------------------------------------------------
    /// Frames of the connection that may take the fast path (fast_path.hpp): path and number, or
    /// none.
    std::uint64_t fast_in = no_fast_path;
    bool fast_out = false;   ///< messages may take the fast path
    bool small_out = false;  ///< and are done when they are published
    // Outbound: what is due, and of the message being cut
    bool ack_due = false;
    bool credit_due = false;
    bool attach_due = false;
    bool begun = false;       ///< the current message's first frame is out, though nothing is cut
    bool pulling = false;     ///< the peer pulls it; nothing follows until it says how it went
    bool reply_next = false;  ///< frames of read replies and of own messages alternate
    std::uint32_t cut = 0;    ///< bytes of the current message emitted
    std::uint32_t reads_count = 0;  ///< what the peer asked for and is to be answered
    ViAttributes attributes;
    PathId path = no_path;
    std::uint32_t epoch = 0;  ///< counts connections, so that old frames miss; 0: none so far
    std::uint32_t remote_number = 0;
    std::uint32_t next_message = 0;
    std::uint32_t reads_in_flight = 0;

    /// Counts of this connection.
    struct CreditCounts {
        std::uint32_t granted = 0;  ///< receives the peer was told of
        std::uint32_t taken = 0;    ///< receives that the peer's messages consumed
        std::uint32_t limit = 0;    ///< receives that the peer told us of
        std::uint32_t used = 0;     ///< of these, consumed by our messages
    } credits;

    // Inbound
    std::uint32_t expected_message = 0;
    std::uint32_t receive_faults_completed = 0;
    /// The message being placed; of the peer's messages the inbound way alone touches it.
    struct Placing {
        bool active = false;    ///< between first and last frame
        bool discards = false;  ///< its rest is not wanted
        bool given_up =
            false;  ///< the peer skipped a frame: it ends the connection, and will say so
        wire::FrameKind kind{};
        std::uint32_t placed = 0;
        std::uint32_t length = 0;
        std::uint32_t target_handle = 0;
        std::uint64_t target_address = 0;
        queue::ByteWalk scatter;
    } placing;
    queue::ByteWalk gather;  ///< of the message being cut

    ViQueue send;
    ViQueue receive;
    SharedReceiveQueue* shared = nullptr;  ///< where receives come from when it has none of its own

    // What few messages need
    RemoteAttributes remote;
    Atomic<std::uint32_t> requests{0};        ///< begun so far, a former VI's too; any thread
    Status connect_status = Status::success;  ///< outcome of the last request
    static constexpr std::uint32_t nowhere = ~0U;
    Time connect_deadline = Time::never();
    std::uint32_t deadline_place = nowhere;  ///< among those that are pending (moments.hpp)
    NetAddress local_address;
    NetAddress remote_address;
    std::unique_ptr<PrivateData> own_data;     ///< goes with the request; nullptr: none
    std::unique_ptr<PrivateData> remote_data;  ///< came with the last request or its answer

    Vi* next_awaiting = nullptr;  ///< in the list of its shared queue, while:
    bool awaits_receive = false;  ///< of that, to tell its peer of
    bool wants_credits = false;
    /// Asks again while the name it asks for is held, but nobody takes requests just now.
    bool insists = false;
    /// So often it asks again where nobody takes requests, held or not, before that is the answer.
    std::uint32_t looks_left = 0;
    Time looks_until{};  ///< and no longer

    // Peer to peer (VIPL 4.22)
    bool peer = false;         ///< the last request was one
    bool asks = false;         ///< of the two VIs it is this one that asks
    bool listening = false;    ///< the devices let others find it
    bool unreachable = false;  ///< when it looked last there was no such host
    Time search_due = Time::never();
    std::uint32_t search_place = nowhere;  ///< among those that are pending
    Duration search_pause{};

    RegionUse send_use;
    RegionUse receive_use;

    Atomic<void*> user_data{nullptr};   ///< the program's, of no meaning here
    std::uint32_t receives_before = 0;  ///< receives completed before the connection
    std::uint32_t placed_message = 0;   ///< the peer has said that it placed every message below

    /// Our oldest RDMA read, as far as its answer has come.
    struct Reading {
        std::uint32_t placed = 0;
        queue::ByteWalk scatter;
    } reading;
    struct Read {
        std::uint64_t address;
        std::uint32_t handle;
        std::uint32_t length;
        std::uint32_t number;
        std::uint32_t done;
        enum class Answer : std::uint8_t {
            bytes,    ///< of the region
            word,     ///< of an atomic operation, as it was before
            refusal,  ///< of an atomic operation, behind what was asked before
        } answer = Answer::bytes;
        std::uint64_t word = 0;
    };
    static constexpr std::uint32_t reads_max = 8;
    /// What the peer asked for by RDMA reads and atomic operations; reads_count is how many.
    struct Answers {
        bool refused = false;  ///< of an answer that may be lost, the region is gone
        std::uint32_t first = 0;
        Read reads[reads_max];
    } answers;

    // Messages pulled from memory (pull.cpp): our own, being pulled; the peer's, that we pull
    Atomic<std::uint64_t> pull_proof{0};  ///< read by the peer: the bytes are still the message's
    std::unique_ptr<Pull> pull;           ///< storage stays once it was needed

    // Peers' segments (segments.cpp): the one being asked for, and those we may use
    std::unique_ptr<Attach> attach;
    std::uint32_t attaches = 0;                 ///< questions so far; tells them apart
    Atomic<std::uint32_t> attaches_decided{0};  ///< the last one that has its answer; any thread
    std::vector<Import> imports;
    /// The last RDMA write that went by frames, while nothing has shown that it was placed.
    std::optional<std::uint32_t> write_by_frames;
    bool has_grants = false;  ///< the peer may use segments of ours by this connection

    /// In `events`: the connection was lost with a message under way.
    static constexpr std::uint32_t lost_descriptors = 1U << 31;
    std::uint32_t events = 0;  ///< bit per ErrorCode, to be reported

    bool reliable() const { return attributes.reliability != Reliability::unreliable; }
    /// A connection begins, or a request for one. Never 0 again: the number of the first VI would
    /// be 0, by which frames say that they are of none.
    void begin_epoch() { epoch = epoch % 0xFFFF + 1; }
    /// The number by which frames name this VI now.
    std::uint32_t number() const { return (epoch << 16) | index; }
    ViState state_now() const { return state.load(std::memory_order_relaxed); }
};

}  // namespace via::engine
