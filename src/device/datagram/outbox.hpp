// Packets on their way to the port, and what the device itself has to say in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "base/list.hpp"
#include "base/time.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/staging.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

/// Owns the packets that are being filled or wait for the port, and which paths owe an
/// acknowledgement.
class Outbox {
public:
    Outbox();
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    Staging& staging() { return staging_; }
    bool empty() { return staging_.empty() && !owes_acks(); }
    /// Is there anything that leaves by itself?
    bool has_to_leave() { return !staging_.empty() || has_due_acks(); }
    /// The path is over.
    void drop(Path& path);

    /// A packet of connecting; if there is no room, it counts as lost.
    void connect(const HostAddress& to, std::span<const std::byte> packet,
                 bool from_host_port = false);
    /// Asks for a sign of life. `packet_length`: padded to it; 0: as short as can be. False: there
    /// is no room.
    bool ping(Path& path, std::uint32_t packet_length = 0);
    /// Behind packets that are being filled, not among them: a message's are one behind the other.
    void probe_length(Path& path);
    /// Frames are being filled that transmit() is to find one behind the other.
    void set_reserving(bool reserving) { reserving_ = reserving; }

    // Acknowledgements ----------------------------------------------------------------------------
    bool owes_acks() { return !ack_owed_.empty(); }
    void owe_ack(Path& path) { ack_owed_.push_back(path); }
    /// Must an acknowledgement leave, even if nothing else does?
    bool has_due_acks() { return owes_acks() && find_due_ack(); }
    /// A look brought nothing more. True: of some paths that answered nothing they are due.
    bool find_late_acks(std::uint64_t look, Time now);
    /// With every packet that goes out anyhow; of their own where it is time.
    void acknowledge(Time now);
    /// Into the last packet that goes there anyhow, else into one of its own.
    void acknowledge(Path& path, Time now);
    /// Writes it behind what stands in the packet, which is sealed next. False: there is no room.
    bool append_ack(Path& path, StagedPacket& packet, Time now) {
        return append_ack(path, packet, staging_.limit(packet), now);
    }

private:
    bool find_due_ack();
    bool append_ack(Path& path, StagedPacket& packet, std::uint32_t limit, Time now);

    Staging staging_;
    List<Path, AckLink> ack_owed_;
    wire::Ack ack_;  ///< being written; here, since to clear one costs more than to fill it
    bool reserving_ = false;
};

}  // namespace via::device::datagram
