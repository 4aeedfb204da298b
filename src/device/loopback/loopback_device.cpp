#include "device/loopback/loopback_device.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "device/copy_extents.hpp"

namespace via::device::loopback {

namespace {

constexpr std::uint32_t grants_max = 1024;

}  // namespace

LoopbackDevice::LoopbackDevice(const HostAddress& address, const LoopbackOptions& options)
    : Device({options.payload_max, Frame::inline_max, options.payload_max + 1, true, true, true},
             address),
      pulls_(options.pulls),
      slots_(options.frames_max),
      payloads_(new std::byte[std::size_t{options.frames_max} * options.payload_max]),
      grant_words_(new Atomic<std::uint32_t>[grants_max]()),
      grants_(grant_words_.get(), grants_max) {
    VIA_ASSERT(options.frames_max > 0 && options.payload_max > 0);
}

// Meeting -----------------------------------------------------------------------------------------

bool LoopbackDevice::listens(const Discriminator& discriminator) const {
    return std::any_of(listening_.begin(), listening_.end(), [&](const Listening& listening) {
        return listening.discriminator == discriminator;
    });
}

void LoopbackDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    PathEvent event{};
    event.cookie = cookie;
    event.path = own_path;
    event.kind = PathEventKind::unresolved;
    if (!(remote.host == address_)) {
        event.status = Status::not_reachable;
    } else if (!listens(remote.discriminator)) {
        event.status = Status::no_match;
    } else {
        event.kind = PathEventKind::resolved;
    }
    events_.push_back(event);
}

Status LoopbackDevice::listen(const Discriminator& discriminator) {
    const auto found = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& at) {
        return at.discriminator == discriminator;
    });
    if (found != listening_.end()) {
        ++found->count;
    } else {
        listening_.push_back({discriminator, 1});
    }
    return Status::success;
}

void LoopbackDevice::unlisten(const Discriminator& discriminator) {
    const auto found = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& at) {
        return at.discriminator == discriminator;
    });
    VIA_ASSERT(found != listening_.end());
    if (--found->count == 0) listening_.erase(found);
}

HostAddress LoopbackDevice::peer_address(PathId path) const {
    VIA_ASSERT(path == own_path);
    return address_;
}

// Sending -----------------------------------------------------------------------------------------

bool LoopbackDevice::reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                             FrameSlot& slot) {
    VIA_ASSERT(path == own_path);
    VIA_ASSERT(header_length <= capabilities_.header_max &&
               payload_length <= capabilities_.payload_max);
    waiting_for_room_ = false;
    if (closed_ || !has_room()) return false;
    Slot& at = slot_at(reserved_);
    at.header_length = header_length;
    at.payload_length = payload_length;
    slot = {at.header, payload_at(reserved_), false};
    ++reserved_;
    return true;
}

void LoopbackDevice::transmit(PathId path) {
    VIA_ASSERT(path == own_path);
    published_ = reserved_;
}

std::uint32_t LoopbackDevice::send_small(PathId path, std::uint64_t low, std::uint64_t high,
                                         const std::byte* payload, std::uint32_t length,
                                         bool /*alone*/) {
    FrameSlot slot;
    if (!reserve(path, sizeof low + sizeof high, length, slot)) return not_sent;
    std::memcpy(slot.header, &low, sizeof low);
    std::memcpy(slot.header + sizeof low, &high, sizeof high);
    if (length != 0) std::memcpy(slot.payload, payload, length);
    transmit(path);
    return 0;
}

std::uint32_t LoopbackDevice::send_pieces(PathId path, std::uint64_t low, std::uint64_t high,
                                          const Pieces& payload) {
    FrameSlot slot;
    if (!reserve(path, sizeof low + sizeof high, payload.first_length + payload.second_length,
                 slot))
        return not_sent;
    std::memcpy(slot.header, &low, sizeof low);
    std::memcpy(slot.header + sizeof low, &high, sizeof high);
    if (payload.first_length != 0) std::memcpy(slot.payload, payload.first, payload.first_length);
    if (payload.second_length != 0)
        std::memcpy(slot.payload + payload.first_length, payload.second, payload.second_length);
    transmit(path);
    return 0;
}

// Sharing -----------------------------------------------------------------------------------------

Status LoopbackDevice::offer(PathId path, const SharedMemory& memory, bool writable,
                             std::uint64_t cookie, GrantId& grant) {
    VIA_ASSERT(path == own_path);
    if (grant == no_grant) grant = grants_.take();
    if (grant == no_grant) return Status::error_resource;
    PathEvent event{};
    event.kind = PathEventKind::attached;
    event.path = own_path;
    event.cookie = cookie;
    event.attachment = {memory.base,         memory.length,        writable,
                        grants_.word(grant), grants_.value(grant), memory.owner};
    events_.push_back(event);
    return Status::success;
}

void LoopbackDevice::revoke(PathId path, GrantId grant) {
    VIA_ASSERT(path == own_path);
    grants_.give_back(grant);
}

Status LoopbackDevice::pull(PathId path, std::span<const Extent> remote,
                            std::span<const Extent> local) {
    VIA_ASSERT(path == own_path);
    copy_extents(remote, local);
    return Status::success;
}

// Receiving ---------------------------------------------------------------------------------------

std::size_t LoopbackDevice::receive(std::span<Frame> frames) {
    VIA_ASSERT(received_ == released_);  // the frames of the last call were given back
    std::size_t count = 0;
    for (; count < frames.size() && received_ != published_ && !closed_; ++received_) {
        const Slot& slot = slot_at(received_);
        Frame& frame = frames[count++];
        frame.path = own_path;
        frame.length = slot.header_length;
        std::memcpy(frame.bytes, slot.header, slot.header_length);
        frame.payload = nullptr;
        frame.payload_length = 0;
        if (slot.payload_length == 0) continue;
        if (slot.header_length + slot.payload_length <= Frame::inline_max) {
            std::memcpy(frame.bytes + slot.header_length, payload_at(received_),
                        slot.payload_length);
            frame.length += slot.payload_length;
        } else {
            frame.payload = payload_at(received_);
            frame.payload_length = slot.payload_length;
        }
    }
    return count;
}

bool LoopbackDevice::release() {
    released_ = received_;
    return false;
}

void LoopbackDevice::close_for_violation(PathId path, const char* /*reason*/) {
    VIA_ASSERT(path == own_path);
    if (closed_) return;
    closed_ = true;
    PathEvent event{};
    event.kind = PathEventKind::down;
    event.path = own_path;
    events_.push_back(event);
}

bool LoopbackDevice::next_event(PathEvent& event) {
    if (has_room()) waiting_for_room_ = false;  // a turn begins, which asks again if it must
    if (events_.empty()) return false;
    event = events_.front();
    events_.pop_front();
    if (event.kind == PathEventKind::down) {
        closed_ = false;
        grants_ = Grants(grant_words_.get(), grants_max);
        reserved_ = published_ = received_ = released_ = 0;
    }
    return true;
}

// Sleeping ----------------------------------------------------------------------------------------

void LoopbackDevice::set_waiting_for_room(PathId path) {
    VIA_ASSERT(path == own_path);
    VIA_ASSERT(released_ <= received_ && received_ <= published_ && published_ <= reserved_ &&
               reserved_ - released_ <= slots_.size());
    waiting_for_room_ = true;
}

bool LoopbackDevice::has_work() {
    return !events_.empty() || (received_ != published_ && !closed_) ||
           (waiting_for_room_ && has_room() && !closed_);
}

}  // namespace via::device::loopback
