// The device interface: what a medium must offer so that VIs work over it. One folder per medium
// implements this class and nothing else knows it; compose picks it by name. What only some media
// can do is a facet (facets.hpp), asked for by pointer; the answer never changes.
//
// Threads: every call is made by the one holder of the NIC's turn, except where said otherwise.
// Bursts: a device may be asked for work at any time and answers at once; nothing here blocks.
// System calls: where a medium is memory (shm, sim, loopback), what is called to move frames
// (reserve, transmit, send_small, receive, release, has_work) makes none, but for
// reserve where memory is touched for the first time since it was given back: there each page
// would be a fault. notify makes one to wake a peer that sleeps. Where it is the kernel (udp), one
// call sends a burst, from notify at the latest, and receive and has_work make one to look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/facets.hpp"
#include "device/types.hpp"

namespace via::device {

class Device {
public:
    virtual ~Device() = default;

    /// Both are the same for the device's life.
    const Capabilities& capabilities() const { return capabilities_; }
    const HostAddress& address() const { return address_; }

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
    /// After transmit() and release(): wakes the peers that sleep and have something new to see
    /// (frames, or room they waited for). Returns how many calls it made.
    virtual std::uint32_t notify() = 0;

    /// Takes up to frames.size() frames from all paths, fairly. Returns how many of `frames` were
    /// filled: each may stand for several frames (Frame::count).
    virtual std::size_t receive(std::span<Frame> frames) = 0;
    /// Gives back the memory of all frames of the last receive(). True: peers were told of room, so
    /// that notify() is due.
    virtual bool release() = 0;
    /// The path broke the protocol: no more frames of it are delivered, a down event follows.
    virtual void close_for_violation(PathId path, const char* reason) = 0;

    /// The next path event, if any. Events precede the frames that depend on them.
    virtual bool next_event(PathEvent& event) = 0;
    /// False: next_event() need not be asked.
    bool may_have_events() const { return may_have_events_; }
    /// The moment this device wants a turn even if nothing happens; never() if none.
    virtual Time next_deadline() const { return Time::never(); }
    /// False: none came since arm() that is earlier than those before.
    bool may_have_deadline() const { return may_have_deadline_; }

    /// The peer on `path` shall wake us when it has made room.
    virtual void set_waiting_for_room(PathId path) = 0;
    /// True when receive() would return something, or room came that was waited for.
    virtual bool has_work() = 0;

    // Facets: nullptr, or what the device can do besides. The answer stands for its life.
    virtual SmallSends* small_sends() { return nullptr; }
    virtual Retransmission* retransmission() { return nullptr; }
    virtual SegmentSharing* sharing() { return nullptr; }
    virtual Pulling* pulling() { return nullptr; }
    virtual WayReports* way_reports() { return nullptr; }
    virtual Sleeping* sleeping() { return nullptr; }

protected:
    Device(const Capabilities& capabilities, const HostAddress& address)
        : capabilities_(capabilities), address_(address) {}

    // For those that keep them; to the others they are always true.
    bool may_have_events_ = true;
    bool may_have_deadline_ = true;
    Capabilities capabilities_;
    HostAddress address_;
};

}  // namespace via::device
