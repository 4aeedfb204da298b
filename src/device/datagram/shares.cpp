#include "device/datagram/shares.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace via::device::datagram {

namespace {

/// So many at least are worth looking whether they are still needed; later twice as many as were.
constexpr std::size_t shares_swept = 256;
/// Of a copy besides its bytes: what the allocator adds, and its place in a path's table, which
/// grows by doubling.
constexpr std::size_t cost_besides = 32 + 2 * sizeof(FrameOrder::Held);
constexpr std::size_t cost_of(std::uint32_t length) { return length + cost_besides; }

}  // namespace

Share* Shares::add_path(const HostAddress& peer, bool asked_by_us) {
    if (paths_left_ == 0) return nullptr;
    Share& share = shares_[peer_key(peer)];
    if (!asked_by_us && share.paths >= paths_left_) return nullptr;
    ++share.paths;
    --paths_left_;
    return &share;
}

void Shares::remove_path(Share& share) {
    VIA_ASSERT(share.paths > 0);
    --share.paths;
    ++paths_left_;
    // Frames that it brought may still be lent. Now and then is enough.
    if (shares_.size() < sweep_at_) return;
    std::erase_if(shares_, [](const auto& entry) {
        return entry.second.paths == 0 && entry.second.buffers == 0 && entry.second.copied == 0 &&
               !entry.second.spare_used_in && !entry.second.spare_used_out;
    });
    sweep_at_ = std::max(shares_swept, 2 * shares_.size());
}

std::uint32_t Shares::paths_of(const HostAddress& peer) const {
    const auto found = shares_.find(peer_key(peer));
    return found == shares_.end() ? 0 : found->second.paths;
}

bool Shares::keep_buffer(Share& share, std::uint32_t buffer) {
    const std::uint32_t left = port_.keeps_left();
    if (!port_.keep(buffer)) return false;
    const std::uint32_t taken = left - port_.keeps_left();  // none if it was kept already
    if (taken != 0 && share.buffers >= left) {
        port_.let_go(buffer);
        return false;
    }
    share.buffers += taken;
    return true;
}

bool Shares::has_room(const Share& share, std::uint32_t length) const {
    return share.copied + cost_of(length) <= copies_left_;
}

bool Shares::charge(Share& share, std::uint32_t length) {
    if (!has_room(share, length)) return false;
    share.copied += cost_of(length);
    copies_left_ -= cost_of(length);
    return true;
}

bool Shares::keep(Share& share, FrameOrder::Held& frame) {
    frame.share = &share;
    if (keep_buffer(share, frame.buffer)) return true;
    if (!charge(share, frame.length)) return false;
    auto* const copy = new std::byte[frame.length];
    std::memcpy(copy, frame.bytes, frame.length);
    frame.bytes = copy;
    frame.buffer = FrameOrder::no_buffer;
    return true;
}

std::byte* Shares::make_room(Share& share, FrameOrder::Held& frame, bool& spare_used,
                             std::uint32_t spare) {
    frame.buffer = FrameOrder::no_buffer;
    if (!charge(share, frame.length)) {
        if (std::exchange(spare_used, true)) return nullptr;
        frame.buffer = spare;
    }
    auto* const room = new std::byte[frame.length]();
    frame.bytes = room;
    frame.share = &share;
    return room;
}

std::byte* Shares::make_room_for_parts(Share& share, FrameOrder::Held& frame) {
    return make_room(share, frame, share.spare_used_in, FrameOrder::spare_copy);
}

std::byte* Shares::make_room_for_parts_out(Share& share, FrameOrder::Held& frame) {
    return make_room(share, frame, share.spare_used_out, FrameOrder::spare_copy_out);
}

bool Shares::has_room_for_parts_out(const Share& share, std::uint32_t length) const {
    return !share.spare_used_out || has_room(share, length);
}

bool Shares::widen(Share& share, std::size_t bytes) {
    if (share.tables + bytes > tables_left_) return false;
    share.tables += bytes;
    tables_left_ -= bytes;
    return true;
}

void Shares::narrow(Share& share, std::size_t bytes) {
    VIA_ASSERT(share.tables >= bytes);
    share.tables -= bytes;
    tables_left_ += bytes;
}

void Shares::let_go(const FrameOrder::Held& frame) {
    Share& share = *frame.share;
    switch (frame.buffer) {
        case FrameOrder::no_buffer:
            VIA_ASSERT(share.copied >= cost_of(frame.length));
            share.copied -= cost_of(frame.length);
            copies_left_ += cost_of(frame.length);
            delete[] frame.bytes;
            return;
        case FrameOrder::spare_copy:
            VIA_ASSERT(share.spare_used_in);
            share.spare_used_in = false;
            delete[] frame.bytes;
            return;
        case FrameOrder::spare_copy_out:
            VIA_ASSERT(share.spare_used_out);
            share.spare_used_out = false;
            delete[] frame.bytes;
            return;
        default:
            break;
    }
    const std::uint32_t left = port_.keeps_left();
    port_.let_go(frame.buffer);
    share.buffers -= port_.keeps_left() - left;
}

}  // namespace via::device::datagram
