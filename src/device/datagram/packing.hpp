// Frames into packets: room for each is lent, and given to the packet that is being filled.
#pragma once

#include <cstdint>

#include "base/list.hpp"
#include "device/datagram/outbox.hpp"
#include "device/datagram/parts_out.hpp"
#include "device/datagram/paths.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/recovery.hpp"
#include "device/datagram/sending.hpp"
#include "device/device.hpp"

namespace via::device::datagram {

/// Owns which paths wait for room; window, pace and shares say whether there is some.
class Packing {
public:
    Packing(Port& port, Paths& paths, Outbox& outbox, PartsOut& parts, Recovery& recovery,
            Sending& sending)
        : port_(port),
          paths_(paths),
          outbox_(outbox),
          staging_(outbox.staging()),
          parts_(parts),
          recovery_(recovery),
          sending_(sending) {}
    ~Packing();
    Packing(const Packing&) = delete;
    Packing& operator=(const Packing&) = delete;

    // As in device.hpp, of a path that is up.
    bool reserve(Path& path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot);
    void transmit(Path& path);

    /// Somebody waits for what reserve() had no room for.
    void wait(Path& path) { waiting_.push_back(path); }
    /// Is there room for what somebody waits for?
    bool has_wanted_room();
    /// Who waits and has room now waits no more: a turn asks again if it still wants it.
    void end_waiting() {
        if (!waiting_.empty()) end_waiting_with_room();
    }
    /// The path is over.
    static void forget(Path& path) { List<Path, WaitLink>::remove_if_linked(path); }

private:
    void end_waiting_with_room();
    bool within_pace(Path& path, std::uint32_t packet_length);
    bool has_frame_room(Path& first);
    void transmit_rail(Path& path);
    Path* rail_with_room(Path& path, std::uint32_t packet_length, bool is_new);
    Path* rail_for(Path& path, std::uint32_t packet_length, bool is_new);
    bool may_begin(Path& rail, std::uint32_t packet_length);
    bool has_wanted_room(Path& path);
    StagedPacket* packet_for(Path& path, std::uint32_t chunk_length, bool is_new);
    void pad(Path& path, StagedPacket& packet, std::uint32_t length);
    void make_run(Path& path, StagedPacket& packet, std::uint32_t frame_length, FrameSlot& slot);

    Port& port_;
    Paths& paths_;
    Outbox& outbox_;
    Staging& staging_;
    PartsOut& parts_;
    Recovery& recovery_;
    Sending& sending_;
    List<Path, WaitLink> waiting_;
};

}  // namespace via::device::datagram
