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

Shares::Key Shares::key_of(const HostAddress& peer) {
    constexpr std::size_t network_bytes = 8;
    const std::size_t length = std::min<std::size_t>(peer.length - 2U, network_bytes);
    return {reinterpret_cast<const char*>(peer.bytes.data()), length};
}

Share* Shares::add_path(const HostAddress& peer, bool asked_by_us) {
    if (paths_left_ == 0) return nullptr;
    Share& share = shares_[key_of(peer)];
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
               !entry.second.spare_used;
    });
    sweep_at_ = std::max(shares_swept, 2 * shares_.size());
}

std::uint32_t Shares::paths_of(const HostAddress& peer) const {
    const auto found = shares_.find(key_of(peer));
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

bool Shares::charge(Share& share, std::uint32_t length) {
    const std::size_t cost = cost_of(length);
    if (share.copied + cost > copies_left_) return false;
    share.copied += cost;
    copies_left_ -= cost;
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

std::byte* Shares::make_room_for_parts(Share& share, FrameOrder::Held& frame) {
    frame.buffer = FrameOrder::no_buffer;
    if (!charge(share, frame.length)) {
        if (std::exchange(share.spare_used, true)) return nullptr;
        frame.buffer = FrameOrder::spare_copy;
    }
    auto* const room = new std::byte[frame.length]();
    frame.bytes = room;
    frame.share = &share;
    return room;
}

void Shares::let_go(const FrameOrder::Held& frame) {
    Share& share = *frame.share;
    switch (frame.buffer) {
        case FrameOrder::no_buffer:
            share.copied -= cost_of(frame.length);
            copies_left_ += cost_of(frame.length);
            delete[] frame.bytes;
            return;
        case FrameOrder::spare_copy:
            share.spare_used = false;
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
