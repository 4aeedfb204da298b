// What is bounded for all peers together, and how much of it one of them may have: never more than
// it leaves free. So one alone has half of it, n of them 1/(n + 1) each, and the next one finds
// something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/address.hpp"
#include "device/datagram/frame_order.hpp"
#include "device/datagram/port.hpp"

namespace via::device::datagram {

/// What a peer has: one IPv4 host, or the hosts of one IPv6 network of 64 bits, which are anybody's
/// who has one of them.
struct Share {
    std::uint32_t paths = 0;
    std::uint32_t buffers = 0;  ///< of the port, kept
    std::size_t copied = 0;     ///< bytes that copies cost
    /// By a frame that comes in parts, and by one that leaves so, for which there was no room. Each
    /// has its own: two ends that send each other such frames at once would wait for each other.
    bool spare_used_in = false;
    bool spare_used_out = false;
    std::size_t tables = 0;  ///< bytes of its paths' tables, beyond what each has in any case
};

class Shares {
public:
    /// `copied_max`: bytes of all copies, with what they cost besides. `tables_max`: of all tables.
    Shares(Port& port, std::uint32_t paths_max, std::size_t copied_max, std::size_t tables_max)
        : port_(port), paths_left_(paths_max), copies_left_(copied_max), tables_left_(tables_max) {}
    Shares(const Shares&) = delete;

    /// For a path. `asked_by_us`: the program's own wish, which only the bound of all limits.
    /// nullptr: too many.
    Share* add_path(const HostAddress& peer, bool asked_by_us);
    void remove_path(Share& share);
    std::uint32_t paths_of(const HostAddress& peer) const;

    /// Keeps a frame beyond the port's release(): its buffer, or where no more of those may be kept
    /// a copy. False: neither.
    bool keep(Share& share, FrameOrder::Held& frame);
    /// Memory for a frame that comes in parts, to be filled there; `frame` is what to let go.
    /// nullptr: no room. All frames behind it wait for this one, so of each peer there is room for
    /// one at any time.
    std::byte* make_room_for_parts(Share& share, FrameOrder::Held& frame);
    /// The same for one that leaves so.
    std::byte* make_room_for_parts_out(Share& share, FrameOrder::Held& frame);
    bool has_room_for_parts_out(const Share& share, std::uint32_t length) const;
    void let_go(const FrameOrder::Held& frame);
    /// Bytes for a table of one of its paths. False: no room.
    bool widen(Share& share, std::size_t bytes);
    void narrow(Share& share, std::size_t bytes);

private:
    bool keep_buffer(Share& share, std::uint32_t buffer);
    bool has_room(const Share& share, std::uint32_t length) const;
    bool charge(Share& share, std::uint32_t length);
    std::byte* make_room(Share& share, FrameOrder::Held& frame, bool& spare_used,
                         std::uint32_t spare);

    Port& port_;
    std::uint32_t paths_left_;
    std::size_t copies_left_;
    std::size_t tables_left_;
    std::map<PeerKey, Share> shares_;
    std::size_t sweep_at_ = 256;  ///< of them: then those that nobody needs go
};

}  // namespace via::device::datagram
