#include "device/datagram/staging.hpp"

#include <algorithm>
#include <cstring>

#include "wire/packet.hpp"

namespace via::device::datagram {

namespace {

constexpr std::uint32_t round_up(std::uint32_t length) { return (length + 7U) & ~7U; }

/// Where the packet behind it may begin: a last packet of a path may yet get an acknowledgement.
std::uint32_t end_of(const StagedPacket& packet, PathId next) {
    const bool more = packet.path != StagedPacket::no_path && packet.path != next &&
                      !packet.sealed && !packet.alone;
    const std::uint32_t tail = more ? wire::ack_length_max : 0;
    return packet.offset + round_up(std::min(packet.length + tail, packet.room));
}

}  // namespace

StagedPacket* Staging::open(PathId path) {
    if (empty()) return nullptr;
    StagedPacket& last = packets_.back();
    return last.path == path && last.takes_more() ? &last : nullptr;
}

bool Staging::has_room(std::uint32_t room) const {
    // The last packet counts whole: whose the next one is is not known yet.
    const std::uint32_t used =
        end_ == 0 ? 0 : packets_.back().offset + round_up(packets_.back().room);
    return used + round_up(room) <= size_;
}

bool Staging::is_filling(std::uint32_t length) const {
    if (empty()) return false;
    const StagedPacket& last = packets_.back();
    return last.takes_more() && last.length < length && last.transmitted == last.length &&
           last.body.bytes == nullptr;
}

std::uint32_t Staging::limit(const StagedPacket& packet) const {
    if (&packet == &packets_.back()) return packet.room;
    return std::min(packet.room, (&packet)[1].offset - packet.offset);
}

StagedPacket* Staging::add(PathId path, std::uint32_t room) {
    const std::uint32_t offset = end_ == 0 ? 0 : end_of(packets_.back(), path);
    if (offset + round_up(room) > size_) return nullptr;
    packets_.emplace_back(path, offset, room, static_cast<std::uint32_t>(frames_.size()));
    ++end_;
    used_ = offset + round_up(room);
    return &packets_.back();
}

void Staging::transmit(PathId path) {
    for (std::size_t n = end_; n-- > begin_;) {
        StagedPacket& packet = packets_[n];
        if (packet.path != path) continue;
        if (packet.transmitted == packet.length) return;
        packet.transmitted = packet.length;
        packet.frames_transmitted = packet.frames;
    }
}

void Staging::abandon(PathId path) {
    for (std::size_t n = end_; n-- > begin_;) {
        StagedPacket& packet = packets_[n];
        if (packet.path != path) continue;
        if (packet.transmitted == packet.length) return;
        packet.length = packet.transmitted;
        packet.frames = packet.frames_transmitted;
        packet.dropped = packet.length == 0;
        packet.alone = true;  // its list of frames ends here
        if (packet.body.at >= packet.length) packet.body = {};
    }
}

void Staging::take_in() {
    for (std::size_t n = begin_; n < end_; ++n) {
        wire::Body& body = packets_[n].body;
        if (body.bytes == nullptr) continue;
        std::memcpy(bytes(packets_[n]) + body.at, body.bytes, body.length);
        body = {};
    }
}

void Staging::drop(PathId path) {
    for (std::size_t n = begin_; n < end_; ++n)
        if (packets_[n].path == path) packets_[n].dropped = true;
}

void Staging::sent_before(std::size_t n) {
    begin_ = n;
    if (!empty()) return;
    packets_.clear();
    frames_.clear();
    begin_ = end_ = 0;
    used_ = 0;
}

}  // namespace via::device::datagram
