#include "device/datagram/parts_out.hpp"

#include <memory>
#include <span>

#include "device/datagram/rail_choice.hpp"

namespace via::device::datagram {

PartsOut::~PartsOut() {
    while (Path* path = parted_.front()) end(*path);
}

/// The receiver so needs memory for one frame and no more. So do we: of its peer's share, as for
/// one that comes.
bool PartsOut::may_begin(const Path& path, std::uint32_t frame, std::uint32_t length) const {
    return path.parts == nullptr && path.frames.oldest() == frame &&
           shares_.has_room_for_parts_out(*path.share, length);
}

bool PartsOut::reserve(Path& path, std::uint32_t header_length, std::uint32_t length,
                       FrameSlot& slot) {
    if (!may_begin(path, slot.number, length)) {
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

/// By which a part's packet may leave; nullptr: not now.
Path* PartsOut::rail_for(Path& path, std::uint32_t length) {
    return choose_rail(path, length, [&](const Path& rail) {
        return rail.probe_credit != 0 || rail.window_allows(length);
    });
}

void PartsOut::stage(Path& path) {
    PartsUnderWay& parts = *path.parts;
    if (!parts.transmitted()) return;
    for (std::uint32_t n = parts.next(); n != parts.count(); n = parts.next()) {
        const std::uint32_t length = parts.packet_length(n);
        Path* const rail = rail_for(path, length);
        if (rail == nullptr) return;
        StagedPacket* const packet = staging_.add(rail->id, length);
        if (packet == nullptr) return;
        if (!rail->window_allows(length)) --rail->probe_credit;
        packet->to = rail->peer;
        packet->part = static_cast<std::uint8_t>(n);
        packet->wants_ack = packet->alone = true;
        packet->length = packet->transmitted = length;
        parts.emit(n, staging_.bytes(*packet) + wire::data_header_length);
        rail->begin_packet(length);
    }
}

void PartsOut::stage() {
    for (Path* path = parted_.front(); path != nullptr; path = parted_.next(*path)) stage(*path);
}

bool PartsOut::has_to_send() {
    for (Path* path = parted_.front(); path != nullptr; path = parted_.next(*path)) {
        const PartsUnderWay& parts = *path->parts;
        const std::uint32_t n = parts.next();
        if (parts.transmitted() && n != parts.count() &&
            rail_for(*path, parts.packet_length(n)) != nullptr &&
            staging_.has_room(parts.packet_length(n)))
            return true;
    }
    return false;
}

bool PartsOut::end_if_arrived(Path& path) {
    const std::uint32_t frame = path.parts->frame();
    const bool arrived = path.parts->all_arrived() && path.frames.arrived(frame);
    if (!path.frames.under_way(frame)) end(path);  // or it came whole after all
    return arrived;
}

void PartsOut::end(Path& path) {
    if (path.parts == nullptr) return;
    for (const Path* rail : path.rails) staging_.forget_parts(rail->id);
    List<Path, PartsLink>::remove(path);
    path.parts.reset();
    shares_.let_go(path.parts_copy);
}

}  // namespace via::device::datagram
