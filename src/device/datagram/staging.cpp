#include "device/datagram/staging.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

namespace {

/// Where the packet behind it may begin: a last packet of a path may yet get an acknowledgement.
std::uint32_t end_of(const StagedPacket& packet, PathId next) {
    const bool more = packet.path != StagedPacket::no_path && packet.path != next &&
                      !packet.sealed && !packet.alone;
    const std::uint32_t tail = more ? wire::ack_length_max : 0;
    return packet.offset + (packet.count - 1) * packet.stride +
           std::min(packet.length + tail, packet.room);
}

}  // namespace

StagedPacket* Staging::open() {
    return !empty() && packets_.back().takes_more() ? &packets_.back() : nullptr;
}

bool Staging::has_room(std::uint32_t room) const {
    // The last packet counts whole: whose the next one is is not known yet.
    return whole_end() + room <= size_;
}

std::uint32_t Staging::whole_end() const {
    if (packets_.empty()) return 0;
    const StagedPacket& last = packets_.back();
    return last.offset + (last.count - 1) * last.stride + last.room;
}

std::uint32_t Staging::run_max(std::uint32_t length) const {
    return 1 + (size_ - whole_end()) / length;
}

void Staging::make_run(StagedPacket& last, std::uint32_t count, std::uint32_t wanted) {
    last.stride = last.length;  // without gaps: one piece for the kernel
    last.count = count;
    last.wanted = wanted;
    last.alone = true;
    datagrams_ += count - 1;
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
    if (offset + room > size_) return nullptr;
    packets_.emplace_back(path, offset, room, static_cast<std::uint32_t>(frames_.size()));
    ++end_;
    ++datagrams_;
    return &packets_.back();
}

void Staging::transmit(PathId path) {
    for (std::size_t n = end_; n-- > begin_;) {
        StagedPacket& packet = packets_[n];
        if (packet.path != path) continue;
        if (packet.transmitted == packet.length) return;
        packet.transmitted = packet.length;
    }
}

void Staging::take_in() {
    for (std::size_t n = begin_; n < end_; ++n) {
        StagedPacket& packet = packets_[n];
        if (packet.body.bytes == nullptr) continue;
        for (std::uint32_t of = 0; of < packet.count; ++of) {
            const wire::Body body = packet.body_of(of);
            std::memcpy(bytes(packet, of) + body.at, body.bytes, body.length);
        }
        packet.body = {};
    }
}

void Staging::forget_parts(PathId path) {
    for (std::size_t n = begin_; n < end_; ++n)
        if (packets_[n].path == path) packets_[n].part = StagedPacket::no_part;
}

void Staging::drop(StagedPacket& packet) {
    if (!packet.dropped) datagrams_ -= packet.count - packet.gone;
    packet.dropped = true;
}

void Staging::drop(PathId path) {
    for (std::size_t n = begin_; n < end_; ++n)
        if (packets_[n].path == path) drop(packets_[n]);
}

void Staging::sent(std::size_t count) {
    VIA_ASSERT(count <= datagrams_);
    datagrams_ -= count;
    std::size_t n = begin_;
    for (; count != 0; ++n) {
        StagedPacket& packet = packets_[n];
        if (packet.dropped) continue;
        const std::size_t taken = std::min<std::size_t>(count, packet.count - packet.gone);
        packet.gone += static_cast<std::uint32_t>(taken);
        count -= taken;
        if (packet.gone != packet.count) break;
    }
    dropped_before(n);
}

void Staging::dropped_before(std::size_t n) {
    begin_ = n;
    if (!empty()) return;
    packets_.clear();
    frames_.clear();
    begin_ = end_ = 0;
}

}  // namespace via::device::datagram
