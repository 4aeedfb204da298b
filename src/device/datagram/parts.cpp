#include "device/datagram/parts.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/path.hpp"

namespace via::device::datagram {

std::uint32_t PartsUnderWay::next() const {
    const auto waiting = std::find_if(parts_.begin(), parts_.end(),
                                      [](const Part& part) { return part.state == State::waits; });
    return static_cast<std::uint32_t>(waiting - parts_.begin());
}

std::uint32_t PartsUnderWay::packet_length(std::uint32_t n) const {
    const auto left = static_cast<std::uint32_t>(bytes_.size()) - n * wire::part_length;
    return wire::data_header_length + wire::part_chunk_overhead + std::min(wire::part_length, left);
}

std::uint32_t PartsUnderWay::emit(std::uint32_t n, std::byte* to) {
    parts_[n].state = State::staged;
    return wire::emit_part_chunk(frame_, n, bytes_, to);
}

void PartsUnderWay::sent(std::uint32_t n, std::uint64_t packet) {
    parts_[n] = {packet, State::in_flight};
}

PartsUnderWay::Part* PartsUnderWay::find(std::uint64_t packet) {
    const auto found = std::find_if(parts_.begin(), parts_.end(), [packet](const Part& part) {
        return part.state == State::in_flight && part.packet == packet;
    });
    return found == parts_.end() ? nullptr : &*found;
}

void PartsUnderWay::arrived(std::uint64_t packet) {
    Part* const part = find(packet);
    if (part == nullptr) return;
    part->state = State::arrived;
    ++arrived_;
}

bool PartsUnderWay::lost(std::uint64_t packet) {
    Part* const part = find(packet);
    if (part == nullptr) return false;
    part->state = State::waits;
    return true;
}

bool PartsHere::put(std::uint32_t at, std::span<const std::byte> part) {
    const std::uint32_t n = at / wire::part_length;
    if (there_[n]) return false;
    there_[n] = true;
    --missing_;
    std::memcpy(bytes_ + at, part.data(), part.size());
    return true;
}

// The device: the way out -------------------------------------------------------------------------

/// Only of the oldest frame: it is the one that the receiver waits for, who so needs memory for one
/// frame and no more. So do we: of its peer's share, as for one that comes.
bool DatagramDevice::may_begin_parts(const Path& path, std::uint32_t frame,
                                     std::uint32_t length) const {
    return path.parts == nullptr && path.frames.oldest() == frame &&
           shares_.has_room_for_parts_out(*path.share, length);
}

bool DatagramDevice::reserve_parts(Path& path, std::uint32_t header_length, std::uint32_t length,
                                   FrameSlot& slot) {
    if (!may_begin_parts(path, slot.number, length)) {
        path.wanted = {packet_length_of(length), false, true, slot.number};
        return false;
    }
    path.parts_copy.length = length;
    std::byte* const copy = shares_.make_room_for_parts_out(*path.share, path.parts_copy);
    path.parts = std::make_unique<PartsUnderWay>(slot.number, std::span(copy, length));
    parted_.push_back(path);
    slot.header = path.parts->bytes();
    slot.payload = slot.header + header_length;
    slot.reference = nullptr;
    slot.stream = false;
    ++path.counts.frames_sent;
    ++path.counts.frames_again;
    ++path.counts.frames_in_parts;
    return true;
}

/// As many as the window allows.
void DatagramDevice::stage_parts(Path& path) {
    PartsUnderWay& parts = *path.parts;
    if (!parts.transmitted()) return;
    for (std::uint32_t n = parts.next(); n != parts.count(); n = parts.next()) {
        const std::uint32_t length = parts.packet_length(n);
        const bool allowed = path.window_allows(length);
        path.held_back = path.held_back || !allowed;
        if (!allowed && path.probe_credit == 0) return;
        StagedPacket* const packet = staging_.add(path.id, length);
        if (packet == nullptr) return;
        if (!allowed) --path.probe_credit;
        packet->to = path.peer;
        packet->part = static_cast<std::uint8_t>(n);
        packet->wants_ack = packet->alone = true;
        packet->length = packet->transmitted = length;
        parts.emit(n, staging_.bytes(*packet) + wire::data_header_length);
        path.begin_packet(length);
    }
}

void DatagramDevice::stage_all_parts() {
    for (Path* path = parted_.front(); path != nullptr; path = parted_.next(*path))
        stage_parts(*path);
}

bool DatagramDevice::has_parts_to_send() {
    for (Path* path = parted_.front(); path != nullptr; path = parted_.next(*path)) {
        const PartsUnderWay& parts = *path->parts;
        const std::uint32_t n = parts.next();
        if (parts.transmitted() && n != parts.count() &&
            (path->probe_credit != 0 || path->window_allows(parts.packet_length(n))) &&
            staging_.has_room(parts.packet_length(n)))
            return true;
    }
    return false;
}

/// Behind an acknowledgement.
void DatagramDevice::end_parts_that_arrived(Path& path) {
    const std::uint32_t frame = path.parts->frame();
    if (path.parts->all_arrived() && path.frames.arrived(frame)) report(path, frame, false);
    if (!path.frames.under_way(frame)) end_parts(path);  // or it came whole after all
}

void DatagramDevice::end_parts(Path& path) {
    if (path.parts == nullptr) return;
    staging_.forget_parts(path.id);
    List<Path, PartsLink>::remove(path);
    path.parts.reset();
    shares_.let_go(path.parts_copy);
}

// The way in --------------------------------------------------------------------------------------

/// Puts the packet's part, if it has one, to those that came. False: it is of a frame whose turn it
/// is not, of which nobody sends parts, or its peer has too many such frames on other paths.
bool DatagramDevice::take_part(Path& path) {
    if (chunk_part_.bytes.empty()) return true;
    switch (path.order.place(chunk_part_.number, path.order.next())) {
        case FrameOrder::Place::next:
            break;
        case FrameOrder::Place::duplicate:
            ++totals_.duplicate_frames;
            return true;
        case FrameOrder::Place::ahead:
        case FrameOrder::Place::too_far:
            return false;
    }
    FrameOrder& order = path.order;
    if (order.parts() != nullptr && order.parts_length() != chunk_part_.whole)
        shares_.let_go(order.end_parts());  // a liar's
    if (order.parts() == nullptr) {
        FrameOrder::Held frame;
        frame.length = chunk_part_.whole;
        std::byte* const bytes = shares_.make_room_for_parts(*path.share, frame);
        if (bytes == nullptr) return false;
        order.begin_parts(frame, bytes);
    }
    if (!order.parts()->put(chunk_part_.at, chunk_part_.bytes)) ++totals_.duplicate_frames;
    const bool is_last = chunk_part_.at + chunk_part_.bytes.size() == chunk_part_.whole;
    if (order.parts()->all() || (is_last && mutated(Mutation::end_at_the_last_part)))
        take_next(path, order.end_parts());
    return true;
}

}  // namespace via::device::datagram
