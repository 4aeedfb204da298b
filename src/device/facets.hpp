// What some devices can do besides (device.hpp). A device that can implements the class and answers
// with it when it is asked for the facet; the others implement nothing. Calls are made as those of
// Device are: by the holder of the NIC's turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/extent.hpp"
#include "base/shared_memory.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "device/types.hpp"

namespace via::device {

/// Of devices where frames arrive by themselves: a frame of a few words goes in one call, in place
/// of reserve(), filling and transmit(). Asked only while nothing is reserved. A frame has 16 bytes
/// of header, as two words, and a payload within capabilities().
class SmallSends {
public:
    static constexpr std::uint32_t not_sent = ~0U;
    /// `alone`: it is the turn's only one, and notify() is in it, too. Others are published, in
    /// their order, by the next transmit() on that path or by notify(), which must follow, at the
    /// latest. Returns the calls that notify() made; not_sent: nothing was done, it goes the way of
    /// others.
    virtual std::uint32_t send_small(PathId path, std::uint64_t low, std::uint64_t high,
                                     const std::byte* payload, std::uint32_t length,
                                     bool alone) = 0;
    struct Pieces {
        const std::byte* first;
        std::uint32_t first_length;
        const std::byte* second;
        std::uint32_t second_length;
    };
    /// The same for a payload of two pieces, `alone`.
    virtual std::uint32_t send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                                      const Pieces& payload) = 0;

protected:
    ~SmallSends() = default;
};

/// Of devices whose frames may be lost on the way: those that must arrive are done when reap() says
/// so, and a lost one must be emitted again.
class Retransmission {
public:
    /// Takes up to reaped.size() outcomes of frames. Returns how many. A frame may be reaped as
    /// lost more than once, and once as not lost; numbers of a path that is down mean nothing.
    virtual std::size_t reap(std::span<Reaped> reaped) = 0;
    /// False: reap() need not be asked.
    bool may_have_reaped() const { return may_have_reaped_; }

protected:
    ~Retransmission() = default;
    bool may_have_reaped_ = true;  ///< always, of those that do not keep it
};

/// Of devices whose peers can map memory of ours.
class SegmentSharing {
public:
    /// Lets the peer on `path` attach to our memory: it gets an attached event with `cookie`.
    /// `grant`: no_grant, and then the new one, for revoke(); or one that the peer has for this
    /// memory already. error_not_supported: not this memory; error_resource: not now. May make
    /// system calls.
    virtual Status offer(PathId path, const SharedMemory& memory, bool writable,
                         std::uint64_t cookie, GrantId& grant) = 0;
    /// The peer may not begin to use it any more. Its mapping stays until it lets go.
    virtual void revoke(PathId path, GrantId grant) = 0;
    /// `expects` says whether a question of ours stands that an offer with `cookie` would answer.
    /// What it says no to is not attached. Called from service(); until it is given, nothing is
    /// expected. For devices whose peers could offer what nobody asked for.
    using Expects = std::function<bool(PathId path, std::uint64_t cookie)>;
    virtual void expect_offers(const Expects& /*expects*/) {}

protected:
    ~SegmentSharing() = default;
};

/// Of devices where one side of a path can copy from the other's private memory.
class Pulling {
public:
    /// Shall the peer on `path` pull a message of that length, rather than get it in frames? If so,
    /// pulled() tells what came of it, unless its VI ends before. May be asked several times for
    /// the same message, where there was no room for the word.
    virtual bool prefers_pull(PathId path, std::uint64_t length) = 0;
    virtual void pulled(PathId /*path*/, bool /*done*/) {}
    /// Copies from the peer's private memory to ours, piece after piece in this order; both lists
    /// have the same bytes. At most wire's places and some. error_not_supported: it never works
    /// between the two; error_resource: not these bytes. A copy that failed may have begun. May
    /// make a system call.
    virtual Status pull(PathId path, std::span<const Extent> remote,
                        std::span<const Extent> local) = 0;

protected:
    ~Pulling() = default;
};

/// Of devices whose paths may take one way or another.
class WayReports {
public:
    /// Adds those of the paths that are up, one behind another, until there are `max`. Returns how
    /// many there are in all. For people: it may take as long as there are paths.
    virtual std::size_t report_ways(std::vector<Way>& to, std::size_t max) const = 0;

protected:
    ~WayReports() = default;
};

/// Of devices with an operating system below: peers elsewhere come, leave and wake us.
class Sleeping {
public:
    /// Does what needs system calls: new peers, departures, handshakes. Called by the progress
    /// thread with the turn whenever wait_handle() is readable, and once before it sleeps.
    virtual void service(Time now) = 0;
    /// Tells the peers how we sleep from now on (or that we are awake). After arming, the caller
    /// makes a full fence and looks once more with has_work() before it sleeps.
    virtual void arm(Sleep sleep) = 0;

    /// A descriptor for poll(2), readable when service() or a turn is due; -1: none needed.
    /// Stays the same for the device's life.
    virtual int wait_handle() const = 0;
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
    ~Sleeping() = default;
};

}  // namespace via::device
