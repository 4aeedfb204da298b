// The values in which a NIC and its devices speak.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/address.hpp"
#include "base/shared_memory.hpp"
#include "base/status.hpp"
#include "base/time.hpp"

namespace via::device {

/// A path is this device's way to one peer NIC instance. Small numbers, reused only after the
/// event that ended the former path was taken with next_event().
using PathId = std::uint32_t;
/// Memory that a peer may use, per path; reused after revoke().
using GrantId = std::uint32_t;
constexpr GrantId no_grant = ~0U;

/// What a device says of itself. A NIC takes one that is ordered, and either lossless or able to
/// say what it lost (Device::retransmission()); no other.
struct Capabilities {
    std::uint32_t payload_max;       ///< payload bytes one frame can carry
    std::uint32_t header_max;        ///< header bytes one frame can carry
    std::uint32_t large_length_min;  ///< payloads at least this long are transmitted one by one
    bool lossless;                   ///< a transmitted frame arrives while the peer's NIC lives
    bool ordered;                    ///< frames that must arrive come in the order of reserving
    bool silent = false;             ///< nobody wakes us for frames: we sent them to ourselves
};

enum class WayState : std::uint8_t {
    answers,    ///
    doubtful,   ///< what left last is not acknowledged in time
    mute,       ///< nothing is heard by it; the path goes by its others
    passed_on,  ///< for others, by a relay: from `own` to `peer`
};

/// How packets of a path go to its peer now; of a path over several networks, in one of them.
struct Way {
    PathId path = 0;
    WayState state = WayState::answers;
    HostAddress own;          ///< where we take packets there
    HostAddress peer;         ///< where the peer does
    HostAddress over;         ///< the first relay; of no length: there is none
    Duration round_trip{};    ///< smoothed; 0: not known
    std::uint64_t packets{};  ///< sent
    std::uint64_t bytes{};    ///< of those that want an acknowledgement
};

/// A received frame. `header` is private memory that nobody else can change, and holds every byte
/// up to `payload_length` behind the header when `payload` points there. Otherwise `payload` lies
/// in memory that a hostile peer can change at any moment: read each byte once.
/// Valid until release().
struct Frame {
    static constexpr std::size_t inline_max = 64;
    PathId path = 0;
    std::uint32_t length = 0;            ///< bytes in `bytes` that the peer sent (header first)
    const std::byte* payload = nullptr;  ///< separate payload, or nullptr: it follows the header
    std::uint32_t payload_length = 0;    ///< of the separate payload
    /// So many frames, in order: their headers differ only in the offset, each payload_length
    /// further on, and all have separate payloads of that length. The caller of receive() leaves
    /// 1 here.
    std::uint32_t count = 1;
    const std::byte* const* payloads = nullptr;  ///< of all of them, when there are several
    alignas(8) std::byte bytes[inline_max];      ///< header, and behind it a small payload
};

/// Room for one frame, lent by reserve() until transmit(). The last three matter to
/// devices that retransmit; the caller sets them, but for the number of a new frame.
struct FrameSlot {
    std::byte* header = nullptr;   ///< header_length bytes to fill
    std::byte* payload = nullptr;  ///< payload_length bytes to fill
    bool stream = false;           ///< the payload is best stored past the cache
    /// Of a frame that must arrive. Not null: instead of filling `payload`, say here where all of
    /// it lies. It is read until the end of the turn.
    const std::byte** reference = nullptr;
    bool must_arrive = true;   ///< false: once or never, and reap() is silent about it
    bool again = false;        ///< the lost frame `number`, with the same bytes or a skip
    std::uint32_t number = 0;  ///< of a frame that must arrive: counts them, per path, from 0
    /// So many frames of these lengths follow each other, and their payloads lie one behind the
    /// other. A device that takes a run of them at once says how many in `count`: the n-th header
    /// is n * `stride` bytes behind the first, its number n higher, and `reference` is set for all.
    std::uint32_t wanted = 1;
    std::uint32_t count = 1;
    std::uint32_t stride = 0;
};

/// What came of a frame that must arrive.
struct Reaped {
    PathId path = 0;
    std::uint32_t number = 0;
    bool lost = false;  ///< to be emitted again; else the peer's NIC has it
};

enum class PathEventKind : std::uint8_t {
    resolved,    ///< answer to resolve(): `path` leads to the address
    unresolved,  ///< answer to resolve(): `status` says why there is none
    up,          ///< a peer came to us; frames may follow
    down,        ///< the peer left or died; every frame it sent before has been received
    attached,    ///< the peer offered us memory of its own; `cookie` is what it said with it
    changed,     ///< frames of the path carry `payload_max` bytes from now on
};

struct PathEvent {
    PathEventKind kind;
    PathId path = 0;
    /// unresolved: no_match, not_reachable, error_resource; timeout: the listener does not answer;
    /// not_done: nobody has answered for as long as we are patient with silence
    Status status = Status::success;
    std::uint64_t cookie = 0;  ///< resolve()'s, or offer()'s
    Attachment attachment{};   ///< attached
    /// resolved, up, changed: of this path; 0: what the device's capabilities say.
    std::uint32_t payload_max = 0;
};

/// How a sleeper wants to be woken; peers read it (the channel's wake word).
enum class Sleep : std::uint32_t {
    awake = 0,  ///< polling; peers make no call
    on_handle,  ///< asleep on wait_handle()
    on_words,   ///< asleep on wake_words()
};

/// A futex word that changes when somebody wakes us; `expected` was read before the last check.
struct WakeWord {
    const void* address;
    std::uint32_t expected;
    std::uint32_t number = 0;  ///< the device's own
};

/// A descriptor for poll(2) that is readable when somebody wakes us, or writable when there is
/// room.
struct WakeDescriptor {
    int descriptor;
    bool for_room;
};

}  // namespace via::device
