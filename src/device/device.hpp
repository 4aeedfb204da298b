// The seam: what a medium must offer so that VIs work over it. One folder per medium implements
// this class and nothing else knows it; compose picks it by name.
//
// Threads: every call is made by the one holder of the NIC's turn, except where said otherwise.
// Bursts: a device may be asked for work at any time and answers at once; nothing here blocks.
// Calls made on the polling path (receive, release, reserve, transmit, abandon, notify) make no
// system call, except notify when a peer sleeps and must be woken, and reserve where memory is
// touched for the first time since it was given back: there each page would be a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/address.hpp"
#include "base/atomic.hpp"
#include "base/extent.hpp"
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

/// Of lossless and retransmits one is true, and so is ordered: a NIC takes no other device.
struct Capabilities {
    std::uint32_t payload_max;       ///< payload bytes one frame can carry
    std::uint32_t header_max;        ///< header bytes one frame can carry
    std::uint32_t large_length_min;  ///< payloads at least this long are transmitted one by one
    bool lossless;                   ///< a transmitted frame arrives while the peer's NIC lives
    bool ordered;                    ///< frames that must arrive come in the order of reserving
    bool silent = false;             ///< nobody wakes us for frames: we sent them to ourselves
    /// Frames are done when reap() says so, and a lost one must be emitted again.
    bool retransmits = false;
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
    /// further on, and all have separate payloads of that length. Who calls receive() leaves 1
    /// here.
    std::uint32_t count = 1;
    const std::byte* const* payloads = nullptr;  ///< of all of them, when there are several
    alignas(8) std::byte bytes[inline_max];      ///< header, and behind it a small payload
};

/// Room for one frame, lent by reserve() until transmit() or abandon(). The last three matter to
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
    /// unresolved: no_match, not_reachable, error_resource; timeout: who listens does not answer;
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

class Device {
public:
    virtual ~Device() = default;

    virtual const Capabilities& capabilities() const = 0;
    virtual const HostAddress& address() const = 0;

    /// Begins to look for the NIC at `remote` where somebody listens to its discriminator.
    /// Exactly one resolved or unresolved event with `cookie` follows, at once or later.
    /// May make system calls: connecting is not the data path.
    virtual void resolve(const NetAddress& remote, std::uint64_t cookie) = 0;

    /// From now on requests for `discriminator` are ours to answer, until unlisten().
    /// Calls nest by count. May make system calls. error_resource: another process has it.
    virtual Status listen(const Discriminator& discriminator) = 0;
    virtual void unlisten(const Discriminator& discriminator) = 0;

    /// Address of the NIC at the other end, for ConnectWait's answer.
    virtual HostAddress peer_address(PathId path) const = 0;

    /// Room for one frame on `path`, or false when there is none now (back-pressure).
    /// header_length and payload_length within capabilities(). Several frames may be reserved
    /// before one transmit(); the order of reserving is the order of sending. Of frames that are
    /// sent again the oldest comes first: there may be room for that one only.
    virtual bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                         FrameSlot& slot) = 0;
    /// Publishes all reserved and filled frames of `path`.
    virtual void transmit(PathId path) = 0;
    /// Gives back all reserved frames of `path` unsent.
    virtual void abandon(PathId path) = 0;
    /// After transmit() and release(): wakes the peers that sleep and have something new to see
    /// (frames, or room they waited for). Returns how many calls it made.
    virtual std::uint32_t notify() = 0;

    /// reserve(), filling and transmit() of one frame in one: 16 bytes of header as two words, and
    /// a payload within capabilities(). `alone`: it is the turn's only one, and notify() is in it,
    /// too. Others are published, in their order, by the next transmit() on that path or by
    /// notify(), which must follow, at the latest. The calls that notify() made; not_sent: nothing
    /// was done, it goes the way of others. Only where frames arrive by themselves
    /// (Capabilities::retransmits).
    static constexpr std::uint32_t not_sent = ~0U;
    virtual std::uint32_t send_small(PathId /*path*/, std::uint64_t /*low*/, std::uint64_t /*high*/,
                                     const std::byte* /*payload*/, std::uint32_t /*length*/,
                                     bool /*alone*/) {
        return not_sent;
    }
    /// The same for a payload of two pieces, `alone`.
    struct Pieces {
        const std::byte* first;
        std::uint32_t first_length;
        const std::byte* second;
        std::uint32_t second_length;
    };
    virtual std::uint32_t send_pieces(PathId /*path*/, std::uint64_t /*low*/,
                                      std::uint64_t /*high*/, const Pieces& /*payload*/) {
        return not_sent;
    }

    /// Takes up to reaped.size() outcomes of frames. Returns how many. A frame may be reaped as
    /// lost more than once, and once as not lost; numbers of a path that is down mean nothing.
    virtual std::size_t reap(std::span<Reaped> /*reaped*/) { return 0; }
    /// False: reap() need not be asked.
    bool may_have_reaped() const { return may_have_reaped_; }

    /// Takes up to frames.size() frames from all paths, fairly. Returns how many of `frames` were
    /// filled: each may stand for several frames (Frame::count).
    virtual std::size_t receive(std::span<Frame> frames) = 0;
    /// Gives back the memory of all frames of the last receive(). True: peers were told of room, so
    /// that notify() is due.
    virtual bool release() = 0;
    /// Lets the peer on `path` attach to our memory: it gets an attached event with `cookie`.
    /// `grant`: no_grant, and then the new one, for revoke(); or one that the peer has for this
    /// memory already. error_not_supported: this device cannot; error_resource: not now. May make
    /// system calls.
    virtual Status offer(PathId /*path*/, const SharedMemory& /*memory*/, bool /*writable*/,
                         std::uint64_t /*cookie*/, GrantId& /*grant*/) {
        return Status::error_not_supported;
    }
    /// `expects` says whether a question of ours stands that an offer with `cookie` would answer.
    /// What it says no to is not attached. Called from service(); until it is given, nothing is
    /// expected. For devices whose peers could offer what nobody asked for.
    using Expects = std::function<bool(PathId path, std::uint64_t cookie)>;
    virtual void expect_offers(const Expects& /*expects*/) {}
    /// The peer may not begin to use it any more. Its mapping stays until it lets go.
    virtual void revoke(PathId /*path*/, GrantId /*grant*/) {}

    /// Shall the peer on `path` fetch a message of that length by transfer(), rather than get it in
    /// frames? If so, transferred() tells what came of it, unless its VI ends before. May be asked
    /// several times for the same message, where there was no room for the word.
    virtual bool prefers_transfer(PathId /*path*/, std::uint64_t /*length*/) { return false; }
    virtual void transferred(PathId /*path*/, bool /*fetched*/) {}
    /// Copies from the peer's private memory to ours, piece after piece in this order; both lists
    /// have the same bytes. At most wire's places and some. error_not_supported: it never works
    /// between the two; error_resource: not these bytes. A copy that failed may have begun.
    virtual Status transfer(PathId /*path*/, std::span<const Extent> /*remote*/,
                            std::span<const Extent> /*local*/) {
        return Status::error_not_supported;
    }

    /// The path broke the protocol: no more frames of it are delivered, a down event follows.
    virtual void condemn(PathId path, const char* reason) = 0;

    /// The next path event, if any. Events precede the frames that depend on them.
    virtual bool next_event(PathEvent& event) = 0;
    /// False: next_event() need not be asked.
    bool may_have_events() const { return may_have_events_; }
    /// The moment this device wants a turn even if nothing happens; never() if none.
    virtual Time next_deadline() const { return Time::never(); }
    /// False: none came since arm() that is earlier than those before.
    bool may_have_deadline() const { return may_have_deadline_; }

    /// Does what needs system calls: new peers, departures, handshakes. Called by the progress
    /// thread with the turn whenever wait_handle() is readable, and once before it sleeps.
    virtual void service(Time now) = 0;
    /// Datagrams that left past UDP and IP since the last call.
    virtual std::uint64_t take_own_frames() { return 0; }

    /// Tells the peers how we sleep from now on (or that we are awake). After arming, the caller
    /// makes a full fence and looks once more with has_work() before it sleeps.
    virtual void arm(Sleep sleep) = 0;
    /// The peer on `path` shall wake us when it has made room.
    virtual void set_waiting_for_room(PathId path) = 0;
    /// True when receive() would return something, or room came that was waited for.
    virtual bool has_work() = 0;

    /// A descriptor for poll(2), readable when service() or a turn is due; -1: none needed.
    /// Stays the same for the device's life.
    virtual int wait_handle() const { return -1; }
    /// Words to sleep on with futex_waitv after arm(on_words): fills up to words.size(), returns
    /// how many there are in all (more than words.size(): sleep on the handle instead).
    virtual std::size_t wake_words(std::span<WakeWord> words) = 0;
    /// It was this one that ended the sleep, changed or not; its peer may be gone by now.
    virtual void woken_by(const WakeWord& /*word*/) {}
    /// Media of descriptors: what to sleep on with poll(2) after arm(on_words), in place of words.
    /// Unlike wait_handle(), which says nothing then, so that one message wakes one thread.
    /// Fills up to descriptors.size(), returns how many there are in all.
    virtual std::size_t wake_descriptors(std::span<WakeDescriptor> /*descriptors*/) const {
        return 0;
    }

protected:
    // For those that keep them; to the others they are always true.
    bool may_have_events_ = true;
    bool may_have_reaped_ = true;
    bool may_have_deadline_ = true;
};

}  // namespace via::device
