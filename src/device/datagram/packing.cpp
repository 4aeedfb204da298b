#include "device/datagram/packing.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/rail_choice.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

Packing::~Packing() {
    while (waiting_.pop_front() != nullptr) {
    }
}

// Room --------------------------------------------------------------------------------------------

/// May a packet of that length leave after what is staged? The clock is read only if pacing asks.
bool Packing::within_pace(Path& path, std::uint32_t packet_length) {
    return path.window_allows(packet_length) &&
           (path.pacer.has_tokens(path.staged_bytes) ||
            path.pacer.may_send(path.staged_bytes, port_.now()));
}

bool Packing::has_frame_room(Path& first) {
    if (first.frames.has_room()) return true;
    const std::uint32_t max = first.frames.max();
    if (max == frames_ahead_max || !paths_.widen(first, max * frame_cost)) return false;
    first.frames.allow(2 * max);
    return true;
}

bool Packing::may_begin(Path& rail, std::uint32_t packet_length) {
    return staging_.has_room(std::max(packet_length, rail.datagram_max())) &&
           (rail.probe_credit != 0 || within_pace(rail, packet_length));
}

Path* Packing::rail_with_room(Path& path, std::uint32_t packet_length, bool is_new) {
    if (is_new && !has_frame_room(path)) return nullptr;
    if (!path.rails.several()) return may_begin(path, packet_length) ? &path : nullptr;
    return choose_rail(path, packet_length,
                       [=, this](Path& rail) { return may_begin(rail, packet_length); });
}

bool Packing::has_wanted_room(Path& path) {
    const Path::Wanted& wanted = path.wanted;
    if (wanted.is_again && !fits_a_rail(path, wanted.length))
        return parts_.may_begin(path, wanted.number, frame_length_of(wanted.length));
    return rail_with_room(path, wanted.length, wanted.is_new) != nullptr;
}

bool Packing::has_wanted_room() {
    for (Path* path = waiting_.front(); path != nullptr; path = waiting_.next(*path))
        if (has_wanted_room(*path)) return true;
    return false;
}

void Packing::end_waiting_with_room() {
    for (Path* path = waiting_.front(); path != nullptr;) {
        Path* const next = waiting_.next(*path);
        if (has_wanted_room(*path)) List<Path, WaitLink>::remove(*path);
        path = next;
    }
}

// Packets -----------------------------------------------------------------------------------------

/// By which of its rails a packet leaves; nullptr: not now.
Path* Packing::rail_for(Path& path, std::uint32_t packet_length, bool is_new) {
    if (Path* rail = rail_with_room(path, packet_length, is_new)) return rail;
    bool heard = false;
    for (const Path* rail : path.rails) heard = recovery_.settles_ack_of(*rail) || heard;
    return heard ? rail_with_room(path, packet_length, is_new) : nullptr;
}

/// The packet into which a chunk goes, begun if need be; nullptr: not now.
StagedPacket* Packing::packet_for(Path& path, std::uint32_t chunk_length, bool is_new) {
    StagedPacket* open = staging_.open();
    if (open != nullptr && open->length + chunk_length <= open->room &&
        is_in_use(path, paths_[open->path]) && (!is_new || has_frame_room(path)))
        return open;
    const std::uint32_t length = wire::data_header_length + chunk_length;
    Path* const rail = rail_for(path, length, is_new);
    if (rail == nullptr) {
        path.wanted = {length, is_new};
        for (Path* one : path.rails) one->held_back = one->held_back || !one->window_allows(length);
        return nullptr;
    }
    if (rail->probe_credit != 0 && !within_pace(*rail, length)) --rail->probe_credit;
    if (open != nullptr && open->path == rail->id && open->waited) pad(*rail, *open, length);
    StagedPacket* packet = staging_.add(rail->id, std::max(length, rail->datagram_max()));
    VIA_ASSERT(packet != nullptr);
    packet->to = rail->peer;
    packet->length = wire::data_header_length;
    packet->wants_ack = true;
    rail->begin_packet(packet->length);
    return packet;
}

/// A packet that waited for those behind it, the first of which is `length` long: made as long as
/// they are, it does not end the burst that the kernel cuts.
void Packing::pad(Path& path, StagedPacket& packet, std::uint32_t length) {
    if (length < packet.length + wire::chunk_prefix_length || length > packet.room) return;
    const std::uint32_t more = length - packet.length;
    if (!path.window_allows(length + more)) return;
    wire::emit_padding_chunk(more, staging_.bytes(packet) + packet.length);
    packet.length = packet.transmitted = length;
    packet.alone = true;
    path.grow_packet(length, more);
}

bool Packing::reserve(Path& path, std::uint32_t header_length, std::uint32_t payload_length,
                      FrameSlot& slot) {
    const bool is_new = slot.must_arrive && !slot.again;
    const std::uint32_t length = header_length + payload_length;
    if (slot.again && !fits_a_rail(path, packet_length_of(length)))
        return parts_.reserve(path, header_length, length, slot);
    StagedPacket* packet = packet_for(path, wire::frame_chunk_overhead + length, is_new);
    if (packet == nullptr) return false;
    Path& rail = paths_[packet->path];
    if (is_new) slot.number = path.frames.take();
    std::byte* const at = staging_.bytes(*packet) + packet->length;
    wire::emit_frame_chunk(slot.must_arrive, slot.must_arrive ? slot.number : 0, length, at);
    slot.header = at + wire::frame_chunk_overhead;
    slot.payload = slot.header + header_length;
    packet->asks_only = false;
    slot.stream = false;
    // What need not arrive is done, and its bytes the program's again, before the turn ends.
    if (slot.must_arrive && payload_length >= reference_least && packet->body.bytes == nullptr &&
        !sending_.is_blocked()) {
        packet->body.at = packet->length + wire::frame_chunk_overhead + header_length;
        packet->body.length = payload_length;
        slot.reference = &packet->body.bytes;
    }
    packet->length += wire::frame_chunk_overhead + length;
    rail.grow_packet(packet->length, wire::frame_chunk_overhead + length);
    if (slot.must_arrive) staging_.add_frame(*packet, slot.number);
    ++rail.counts.frames_sent;
    if (slot.again) ++rail.counts.frames_again;
    if (slot.wanted > 1 && slot.reference != nullptr) make_run(rail, *packet, length, slot);
    return true;
}

/// As many packets more like this one, which has no other frame, as are wanted, may leave and make
/// a burst.
void Packing::make_run(Path& path, StagedPacket& packet, std::uint32_t frame_length,
                       FrameSlot& slot) {
    const std::uint32_t length = packet.length;
    if (length != packet_length_of(frame_length) || path.probe_credit != 0 || mutating()) return;
    // What takes more than one call begins with two thirds of one: the peer works on them while we
    // fill the rest. Not further on, even if it has got all so far: then it waits for us.
    const std::uint64_t all = std::uint64_t{slot.wanted} * length;
    // Of a short one only room asks what was heard; a long one would go on believing that more is
    // under way than there is.
    if (all > burst_bytes / 2) recovery_.settles_ack_of(path);
    const bool begins = path.sent.packets_in_flight() == 0 && slot.number != path.first->run_end;
    path.divided = begins && all > burst_bytes;
    const auto burst = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(burst_bytes, path.divided ? all / 3 * 2 : burst_bytes));
    const auto fit = std::min<std::size_t>(burst / length, Sending::burst_max);
    const std::size_t left = fit > staging_.datagrams() ? fit - staging_.datagrams() : 0;
    const std::uint64_t wanted = std::min({std::uint64_t{slot.wanted - 1}, std::uint64_t{left},
                                           std::uint64_t{path.first->frames.room()},
                                           std::uint64_t{staging_.run_max(length) - 1}});
    std::uint64_t more = std::min(wanted, path.packets_allowed(length));
    if (more < wanted && recovery_.settles_ack_of(path))
        more = std::min(wanted, path.packets_allowed(length));
    if (more < wanted && path.pacer.packets_allowed(path.staged_bytes, length) == more) {
        path.pacer.refill(port_.now());  // what is left of the last burst says nothing
        more = std::min(wanted, path.packets_allowed(length));
    }
    if (more == 0) return;
    slot.count = static_cast<std::uint32_t>(1 + more);
    staging_.make_run(packet, slot.count, slot.wanted);
    slot.stride = packet.stride;
    path.first->run_end = slot.number + slot.count;
    path.begin_packet(length, slot.count - 1);
    path.counts.frames_sent += slot.count - 1;
    const std::uint32_t second = path.first->frames.take(slot.count - 1);
    for (std::uint32_t n = 1; n < slot.count; ++n)
        wire::emit_frame_chunk(true, second + n - 1, frame_length,
                               staging_.bytes(packet, n) + wire::data_header_length);
}

void Packing::transmit(Path& path) {
    if (path.parts != nullptr) path.parts->transmit();
    for (Path* rail : path.rails) transmit_rail(*rail);
}

void Packing::transmit_rail(Path& path) {
    staging_.transmit(path.id);
    if (std::exchange(path.length_probe_waits, false)) outbox_.probe_length(path);
    sending_.send_bursts(path, std::exchange(path.divided, false));
}

}  // namespace via::device::datagram
