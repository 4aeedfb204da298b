// What processes under this library share: see docs/design/sockets.md.
#pragma once

#include <via/store_ring.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace via::sockets {

/// Held for the length of a copy. The number of the thread that has it, or 0.
struct Lock {
    std::atomic<std::uint32_t> owner;

    /// false: the calling thread has it already, in what a signal of its interrupted.
    bool take();
    void let_go() { owner.store(0, std::memory_order_release); }
};

/// An address and a port. IPv4 in IPv6's form.
struct Address {
    std::array<std::uint8_t, 16> host{};
    std::uint16_t port = 0;
    bool operator==(const Address&) const = default;
};

/// The two ends of a connection as one of them sees it.
struct Ends {
    Address local, remote;
    std::uint64_t network = 0;  ///< cookie of the network namespace
    bool operator==(const Ends&) const = default;
    Ends reversed() const { return {remote, local, network}; }
};

/// State of the two directions; returning: nobody stores any more, and both have still to send
/// again what the other has not read. And how many calls are in the kernel with bytes.
enum State : std::uint64_t { before = 0, stored = 1, returned = 2, returning = 3, state_mask = 3 };
constexpr std::uint64_t ready_bit(int side) { return 4ull << side; }
constexpr std::uint64_t one_send(int side) { return 1ull << (8 + 12 * side); }
constexpr std::uint64_t one_receive(int side) { return 1ull << (32 + 12 * side); }
constexpr std::uint64_t left_bit(int side) { return 1ull << (56 + side); }
constexpr std::uint64_t sends_mask = 0xFFFFFFull << 8;
constexpr std::uint64_t receives_of(std::uint64_t word, int side) {
    return word >> (32 + 12 * side) & 0xFFF;
}

/// What the sender of a direction writes: in the first line seldom, since the receiver looks at it
/// whenever it finds nothing, and behind that with each message.
struct alignas(64) SendEnd {
    std::atomic<std::uint64_t> from;  ///< bytes that went through the kernel, plus 1; 0: not known
    std::atomic<std::uint32_t> fin;   ///< said before the kernel's FIN
    alignas(64) Lock lock;
    std::atomic<std::uint64_t> place;
    std::uint64_t ring;  ///< offset in the arena
    std::uint32_t lines;
    std::uint32_t had_blocks;         ///< of this ring: see PipeEnd::store_block()
    std::atomic<std::uint32_t> full;  ///< how often a call found no room
    std::atomic<std::uint64_t> bytes;
};

/// What the receiver of a direction writes.
struct alignas(64) ReadEnd {
    Lock lock;
    std::uint32_t offset;  ///< bytes read of the message at `place`
    std::uint64_t place;
    std::uint64_t ring;
    std::uint32_t lines;
    std::atomic<std::uint32_t> kernel_done;  ///< all that went through the kernel has been read
    bool left_known;
    std::uint64_t left;        ///< bytes in the kernel that are in front of those in memory
    std::uint64_t given_back;  ///< lines
};

enum Asleep : std::uint32_t { for_data = 1, for_room = 2 };

struct alignas(64) Side {
    std::atomic<std::uint32_t> asleep;  ///< Asleep; who clears it sends a byte
    std::atomic<std::uint64_t> mark;    ///< see Mark: where the peer tells what it stored, or 0
    alignas(64) std::atomic<std::uint32_t> closed;
    std::atomic<std::uint32_t> wants_kernel;  ///< the peer shall hand back
    std::atomic<std::uint32_t> handed_back;   ///< its part, as the peer wanted
    std::atomic<std::uint32_t> leaves;  ///< it hands back as soon as none of it sleeps for room
    std::atomic<std::int32_t> sleepers;
    std::atomic<std::uint32_t> wakes_sent;
    std::atomic<std::uint32_t> wakes_drained;
    std::atomic<std::uint32_t> at_end;  ///< the kernel said so, 1: end of stream; 2: it is over
    std::atomic<std::int32_t> error;    ///< the kernel said so, and says it once
};

/// A connection whose bytes go through memory. Side 0 connected, side 1 accepted. Direction d is
/// what side d sends.
struct Pipe {
    static constexpr std::uint64_t right_magic = 0x7669612d70697066;
    alignas(64) std::atomic<std::uint64_t> word;
    std::uint64_t magic;
    Ends ends;                ///< as side 0 sees them
    std::uint64_t arenas[2];  ///< of the sides' processes
    /// By hand_back(): what the receiver had not read from the kernel when bytes in memory, or some
    /// that wake, came behind it. The sender sends it again, or the receiver reads it here.
    struct Again {
        static constexpr std::uint64_t most = 8 << 20;
        std::uint64_t offset, room, bytes, used;
        std::uint64_t left() const {
            const std::uint64_t all = bytes;
            const std::uint64_t gone = used;
            return gone < all ? std::min(all - gone, most) : 0;
        }
    } again[2];
    SendEnd send[2];
    ReadEnd read[2];
    Side side[2];

    State state() const {
        return static_cast<State>(word.load(std::memory_order_acquire) & state_mask);
    }
};

enum class Reason : std::uint32_t {
    none,
    peer_absent,
    shared,
    asked_for,
    options,
    memory,
    counters,
    exec,
    stdio,
    uring,
    nested,
    descriptor_passed,
    half_closed,
    unusual_call,
    closing,
    own_calls,
    shared_set
};
const char* text_of(Reason reason);

/// An end of a connection, for all processes that have it from one by fork().
struct Stream {
    std::uint64_t next;  ///< in its bucket
    Ends ends;
    std::atomic<std::int32_t> holders;  ///< descriptors
    std::atomic<std::uint32_t> reason;  ///< Reason for staying with the kernel
    std::uint32_t side;
    std::uint32_t process, descriptor;
    std::atomic<std::uint32_t> nonblocking, no_delay, registered;
    std::atomic<std::uint64_t> pipe;  ///< offset; 0: none
    std::atomic<std::uint64_t> pipe_arena;
    std::atomic<std::uint64_t> offer;        ///< the other side's: offset of a Pipe ...
    std::atomic<std::uint64_t> offer_arena;  ///< ... and, written last, where
};

}  // namespace via::sockets
