// Packets to the port: numbered, sealed, sent in bursts, and noted until they are acknowledged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/parts_out.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/polls.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/recovery.hpp"
#include "device/datagram/send_policy.hpp"

namespace via::device::datagram {

/// Owns the burst that leaves, and whether the port takes more.
class Sending {
public:
    static constexpr std::size_t burst_max = 64;  ///< packets

    Sending(Port& port, Paths& paths, Outbox& outbox, PartsOut& parts, Recovery& recovery,
            Polls& polls)
        : port_(port),
          paths_(paths),
          outbox_(outbox),
          staging_(outbox.staging()),
          parts_(parts),
          recovery_(recovery),
          polls_(polls),
          authenticates_(port.authenticates()) {}
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

    /// All that is staged, with the acknowledgements that are owed.
    void flush(Time now) {
        if (!parts_.empty()) parts_.stage();
        if (outbox_.has_to_leave()) flush_all(now);
    }
    /// The same when the program has posted something, but for what may wait.
    void flush_posted();
    /// The same after a look.
    void flush_after_look(Time now) {
        if (!rest_waits_on()) flush(now);
    }
    /// A part of the path's message is staged: whole bursts leave. `divided`: it is to leave now,
    /// if it begins it.
    void send_bursts(const Path& path, bool divided) {
        if (divided || path.sent.packets_in_flight() != 0) send_whole_bursts(path);
    }

    void looked() { policy_.looked(); }
    /// The port took less than all: nothing leaves until it has room.
    bool is_blocked() const { return blocked_; }
    void look_for_room() { blocked_ = !port_.has_room(); }
    bool has_to_send() {
        return !blocked_ && (outbox_.owes_acks() || !staging_.empty() || parts_.has_to_send());
    }

private:
    void send_whole_bursts(const Path& path);
    bool may_hold();
    bool may_hold_rest();
    bool rest_waits_on();
    bool remember_more(Path& path);
    static bool speaks_of_a_connection(std::span<const std::byte> packet);
    void seal(StagedPacket& packet, Time now);
    void record(const StagedPacket& packet, Time now);
    void record_one(Path& path, const StagedPacket& packet, std::uint32_t n, Time now);
    std::size_t fill_burst(std::size_t end, Time now, std::size_t& n, std::size_t& first_new);
    void send_before(std::size_t end, Time now);
    bool send_lone(Time now);
    void flush_all(Time now);

    Port& port_;
    Paths& paths_;
    Outbox& outbox_;
    Staging& staging_;
    PartsOut& parts_;
    Recovery& recovery_;
    Polls& polls_;
    SendPolicy policy_;
    const bool authenticates_;  ///< the port does
    bool blocked_ = false;
    std::array<Outgoing, burst_max> burst_;
};

}  // namespace via::device::datagram
