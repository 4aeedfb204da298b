// What became of packets and frames that were sent: acknowledgements, losses, timeouts (RFC 9002).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/numbered_queue.hpp"
#include "base/time.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/parts_out.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/polls.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/searches.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// Bytes of the longest packet that our own interface carries.
std::uint32_t longest_packet(const Port& port);

/// Owns the outcomes of frames that reap() tells, and what an acknowledgement told that can wait.
class Recovery {
public:
    /// `may_have_reaped`: becomes true with each outcome.
    Recovery(Port& port, Paths& paths, Outbox& outbox, PartsOut& parts, const Polls& polls,
             PathEvents& events, bool& may_have_reaped)
        : port_(port),
          paths_(paths),
          outbox_(outbox),
          parts_(parts),
          polls_(polls),
          events_(events),
          may_have_reaped_(may_have_reaped) {
        reaped_.make_room(64);
    }
    Recovery(const Recovery&) = delete;
    Recovery& operator=(const Recovery&) = delete;

    // Outcomes ------------------------------------------------------------------------------------
    std::size_t reap(std::span<Reaped> reaped);
    bool has_reaped() const { return !reaped_.empty(); }
    bool has_reaped_of(PathId path) const;
    bool may_have_reaped() const { return may_have_reaped_; }

    // Acknowledgements ----------------------------------------------------------------------------
    /// One that names nothing but what was sent.
    void hear(Path& path, const wire::Ack& ack, Time now) { hear(path, ack, moment_of(path, now)); }
    /// The same, of a common packet: what it tells can wait for settle(), since an answer to what
    /// came with it goes first.
    void note_ack(Path& path, const wire::Ack& ack, Time now);
    /// `path` took or sent a common packet: what was heard and when to look next is for later,
    /// until somebody asks for it, or sleeps.
    void settle_later(Path& path);
    void settle() {
        if (unsettled_ != nullptr) settle_now();
    }
    /// True when there was one to be heard, which may make room. While frames are being filled.
    bool settles_ack_of(const Path& path) {
        if (!ack_noted_ || unsettled_ != &path) return false;
        outbox_.set_reserving(true);
        settle_now();
        outbox_.set_reserving(false);
        return true;
    }
    /// Of what is to be settled; never(): nothing is.
    Time deadline() const;
    /// The path is over.
    void forget(const Path& path) {
        if (unsettled_ != &path) return;
        unsettled_ = nullptr;
        ack_noted_ = false;
    }

    // Losses --------------------------------------------------------------------------------------
    void detect_losses(Path& path, Time now);
    /// RFC 9002, 6.2.4: asks, and has the oldest frames emitted again. Nothing counts as lost by
    /// it.
    void on_probe_timeout(Path& path, Time now);
    /// The peer has us acknowledge and does not itself: of what it leaves, the oldest is lost.
    void give_up_oldest(Path& path);

    // Length --------------------------------------------------------------------------------------
    /// What the network says of it.
    void on_too_long(Path& path, const NetworkError& error);
    /// The peer's offer says what its interface carried when the path came up; what both and the
    /// way carry now a probe tells.
    void raise_length(Path& path, Time now);
    /// The rails of `path` are others than before, or are long or short now.
    void tell_length(const Path& path);

private:
    /// When an acknowledgement came, and what was under way then.
    struct Moment {
        Time came{};
        Duration late{};  ///< our part of the round trip, at most
        std::uint64_t in_flight = 0;
        std::uint64_t next = 0;
    };
    /// What it told.
    struct News {
        std::uint64_t bytes = 0;
        std::uint32_t packets = 0;
        bool traffic = false;  ///< some asked for more than a sign of life
        bool longer = false;   ///< longer packets go through
        bool sampled = false;  ///< `sample` is a round trip
        Duration sample{};
    };
    Moment moment_of(const Path& path, Time now) const {
        return {now, now - polls_.came(), path.sent.in_flight(), path.sent.next_number()};
    }
    bool hear(Path& path, const wire::Ack& ack, const Moment& moment);
    void conclude(Path& path, const News& news, const Moment& moment);
    void settle_now();
    void report(Path& path, std::uint32_t frame, bool lost);
    void on_lost(Path& path, std::uint64_t number, const SentPacket& packet);
    void lose_frame(Path& path, std::uint32_t frame, std::uint64_t packet);
    static std::uint64_t oldest_with_frames(Path& path);
    void leave_rail(Path& path);
    void length_changed(Path& path);
    void fall_back(Path& path, std::uint32_t hint = 0);

    Port& port_;
    Paths& paths_;
    Outbox& outbox_;
    PartsOut& parts_;
    const Polls& polls_;
    PathEvents& events_;
    bool& may_have_reaped_;
    NumberedQueue<Reaped> reaped_;
    Path* unsettled_ = nullptr;  ///< took or sent a common packet
    bool ack_noted_ = false;     ///< an acknowledgement of it is to be heard
    wire::Ack noted_ack_;
    Moment noted_;
};

}  // namespace via::device::datagram
