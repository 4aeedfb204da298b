// What engine and NIC say to each other of frames: what the next one needs of the device, the
// device's memory that it goes to, what came in, and what the engine says of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/extent.hpp"
#include "wire/frame.hpp"

namespace via::engine {

/// What the next frame of a path needs of the device. No header: no frame, the engine carries the
/// message out itself.
struct FrameShape {
    std::uint32_t header_length = 0;
    std::uint32_t payload_length = 0;
    /// A message that begins and may be pulled instead: its length; else 0.
    std::uint32_t pullable = 0;
    // Not side by side: two bytes stored one by one and loaded together make the load wait for all
    // stores before it, those of the last payload too.
    bool must_arrive = true;  ///< false: of an unreliable VI, may be lost
    std::uint32_t number = 0;
    bool again = false;  ///< the lost frame `number`
    /// So many frames follow each other that differ only in where their payloads lie in the
    /// message, one behind the other.
    std::uint32_t count = 1;
};

/// A piece of a peer's message to be copied from its memory to ours; both lists have the same
/// bytes. The last of each is the proof that the others are still the message's.
struct PullPiece {
    static constexpr std::uint32_t pieces_max = wire::pull_places_max + 2;
    Extent remote[pieces_max];
    Extent local[pieces_max];
    std::uint32_t remote_count = 0;
    std::uint32_t local_count = 0;
    std::uint64_t bytes = 0;  ///< of the message
    std::uint64_t proof = 0;
    std::uint64_t tail = 0;  ///< last bytes of an RDMA write, placed when all the others are
    std::uint32_t tail_length = 0;
};

/// Memory of the device that the next frame goes to.
struct FrameRoom {
    std::byte* header = nullptr;
    std::byte* payload = nullptr;
    bool stream = false;       ///< store the payload past the cache
    std::uint32_t number = 0;  ///< of a frame that must arrive, on a path that retransmits
    const std::byte** reference = nullptr;  ///< FrameSlot::reference
    std::uint32_t count = 1;                ///< frames of FrameShape::count; more than 1: see there
    std::uint32_t stride = 0;               ///< bytes from one header to the next
};

/// A received frame; the header is private memory, the payload may change under our hands.
struct ReceivedFrame {
    const std::byte* header = nullptr;
    std::size_t header_length = 0;       ///< bytes there; payload may follow the header in them
    const std::byte* payload = nullptr;  ///< separate payload, or nullptr
    std::size_t payload_length = 0;
    /// So many frames of a message that goes on, which differ only in their place in it, each
    /// further on by payload_length. Then all have separate payloads.
    std::uint32_t count = 1;
    const std::byte* const* payloads = nullptr;  ///< of all of them, when there are several

    const std::byte* payload_of(std::uint32_t n) const { return n == 0 ? payload : payloads[n]; }
};

/// Why a frame was refused, for the counters and for closing a path.
enum class FrameVerdict : std::uint8_t {
    taken,
    stale,       ///< of a connection that is over: ignored, honest peers send such
    pulled,      ///< taken; the peer has pulled our message
    not_pulled,  ///< taken; it could not, and gets it in frames
    refused,     ///< broke a rule of its VI: that connection ends
    hostile,     ///< no honest NIC sends this: the path ends
};

/// Shorter messages are not worth a system call of the receiver; of longer ones two processors copy
/// faster than one (docs/diary/2026-11-22.md).
constexpr std::uint32_t pull_length_min = 65536;
constexpr std::uint32_t pull_length_end = 1U << 20;

}  // namespace via::engine
