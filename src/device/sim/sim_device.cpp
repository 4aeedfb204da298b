#include "device/sim/sim_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "device/copy_extents.hpp"

namespace via::device::sim {

SimDevice::SimDevice(Fabric& fabric, const HostAddress& address)
    : Device({fabric.options().payload_max, Frame::inline_max, fabric.options().payload_max + 1,
              true, true},
             address),
      fabric_(fabric),
      node_(fabric.join(*this, address)) {}

SimDevice::~SimDevice() { fabric_.leave(node_); }

// Meeting -----------------------------------------------------------------------------------------

void SimDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    fabric_.ask(node_, remote, cookie);
}

bool SimDevice::listens(const Discriminator& discriminator) const {
    return std::any_of(listening_.begin(), listening_.end(), [&](const Listening& listening) {
        return listening.discriminator == discriminator;
    });
}

Status SimDevice::listen(const Discriminator& discriminator) {
    const auto found = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& at) {
        return at.discriminator == discriminator;
    });
    if (found != listening_.end()) {
        ++found->count;
        return Status::success;
    }
    if (fabric_.taken_by_neighbour(node_, discriminator)) return Status::error_resource;
    listening_.push_back({discriminator, 1});
    return Status::success;
}

void SimDevice::unlisten(const Discriminator& discriminator) {
    const auto found = std::find_if(listening_.begin(), listening_.end(), [&](const Listening& at) {
        return at.discriminator == discriminator;
    });
    VIA_ASSERT(found != listening_.end());
    if (--found->count == 0) listening_.erase(found);
}

HostAddress SimDevice::peer_address(PathId path) const {
    VIA_ASSERT(path < paths_.size() && paths_[path].stage != Stage::free);
    return fabric_.address_of(paths_[path].peer);
}

SimDevice::Path* SimDevice::open_path(NodeId peer) {
    const auto found = std::find_if(paths_.begin(), paths_.end(), [&](const Path& path) {
        return path.stage == Stage::open && path.peer == peer;
    });
    return found == paths_.end() ? nullptr : &*found;
}

PathId SimDevice::make_path(NodeId peer) {
    auto found = std::find_if(paths_.begin(), paths_.end(),
                              [](const Path& path) { return path.stage == Stage::free; });
    if (found == paths_.end()) found = paths_.emplace(paths_.end());
    found->stage = Stage::open;
    found->peer = peer;
    want_room(*found, false);
    return id_of(*found);
}

// Arrivals ----------------------------------------------------------------------------------------

void SimDevice::push_event(PathEventKind kind, PathId path, Status status, std::uint64_t cookie) {
    arrivals_.push_back({{kind, path, status, cookie}, path, nullptr});
}

void SimDevice::send_simple(ParcelKind kind, NodeId peer, Status status, std::uint64_t cookie) {
    auto parcel = std::make_unique<Parcel>();
    parcel->kind = kind;
    parcel->status = status;
    parcel->cookie = cookie;
    fabric_.send(node_, peer, std::move(parcel));
}

/// Takes in what has arrived by now.
void SimDevice::settle() {
    while (std::unique_ptr<Parcel> parcel = fabric_.take(node_)) {
        switch (parcel->kind) {
            case ParcelKind::frame:
                on_frame(std::move(parcel));
                break;
            case ParcelKind::query:
                on_query(*parcel);
                break;
            case ParcelKind::answer:
                on_answer(*parcel);
                break;
            case ParcelKind::credit:
                fabric_.vacate(node_, parcel->from, parcel->count);
                break;
            case ParcelKind::farewell:
                on_farewell(parcel->from);
                break;
            case ParcelKind::segment:
                on_segment(*parcel);
                break;
        }
    }
}

void SimDevice::on_frame(std::unique_ptr<Parcel> parcel) {
    const Path* path = open_path(parcel->from);
    if (path == nullptr) return give_back(parcel->from, 1);  // of a path that is over
    arrivals_.push_back({{}, id_of(*path), std::move(parcel)});
}

void SimDevice::on_query(const Parcel& parcel) {
    if (!fabric_.present(parcel.from)) return;
    if (!listens(parcel.discriminator))
        return send_simple(ParcelKind::answer, parcel.from, Status::no_match, parcel.cookie);
    if (open_path(parcel.from) == nullptr)
        push_event(PathEventKind::up, make_path(parcel.from), Status::success, 0);
    send_simple(ParcelKind::answer, parcel.from, Status::success, parcel.cookie);
}

void SimDevice::on_answer(const Parcel& parcel) {
    if (parcel.status != Status::success)
        return push_event(PathEventKind::unresolved, 0, parcel.status, parcel.cookie);
    const Path* path = open_path(parcel.from);
    push_event(PathEventKind::resolved, path != nullptr ? id_of(*path) : make_path(parcel.from),
               Status::success, parcel.cookie);
}

void SimDevice::on_farewell(NodeId peer) {
    Path* path = open_path(peer);
    if (path == nullptr) return;
    path->stage = Stage::ending;
    push_event(PathEventKind::down, id_of(*path), Status::success, 0);
}

bool SimDevice::next_event(PathEvent& event) {
    // The turn that sent them ended with notify().
    VIA_ASSERT(
        std::all_of(paths_.begin(), paths_.end(), [](const Path& path) { return path.kept == 0; }));
    settle();
    // A turn begins, which asks again for room if it still wants it.
    for (Path& path : paths_)
        if (path.waiting_for_room && fabric_.has_room(node_, path.peer)) want_room(path, false);
    if (arrivals_.empty() || arrivals_.front().frame) return false;
    event = arrivals_.front().event;
    arrivals_.pop_front();
    if (event.kind == PathEventKind::down) {
        Path& path = paths_[event.path];
        drop_staged(path);
        path.stage = Stage::free;
        path.grants.reset();
    }
    return true;
}

std::size_t SimDevice::receive(std::span<Frame> frames) {
    VIA_ASSERT(lent_.empty());  // the frames of the last call were given back
    settle();
    std::size_t count = 0;
    for (; count < frames.size() && !arrivals_.empty() && arrivals_.front().frame; ++count) {
        const Parcel& parcel = *arrivals_.front().frame;
        const auto payload_length = static_cast<std::uint32_t>(parcel.payload.size());
        Frame& frame = frames[count];
        frame.path = arrivals_.front().path;
        frame.length = parcel.header_length;
        std::memcpy(frame.bytes, parcel.header, parcel.header_length);
        frame.payload = nullptr;
        frame.payload_length = 0;
        if (payload_length != 0 && parcel.header_length + payload_length <= Frame::inline_max) {
            std::memcpy(frame.bytes + parcel.header_length, parcel.payload.data(), payload_length);
            frame.length += payload_length;
        } else if (payload_length != 0) {
            frame.payload = parcel.payload.data();
            frame.payload_length = payload_length;
        }
        lent_.push_back(std::move(arrivals_.front().frame));
        arrivals_.pop_front();
    }
    return count;
}

bool SimDevice::release() {
    // One credit for each peer, in the order in which they appear.
    for (std::size_t first = 0; first < lent_.size(); ++first) {
        if (!lent_[first]) continue;
        const NodeId peer = lent_[first]->from;
        std::uint32_t frames = 0;
        for (std::size_t at = first; at < lent_.size(); ++at) {
            if (!lent_[at] || lent_[at]->from != peer) continue;
            lent_[at].reset();
            ++frames;
        }
        give_back(peer, frames);
    }
    lent_.clear();
    return false;
}

void SimDevice::give_back(NodeId peer, std::uint32_t frames) {
    auto credit = std::make_unique<Parcel>();
    credit->kind = ParcelKind::credit;
    credit->count = frames;
    fabric_.send(node_, peer, std::move(credit));
}

void SimDevice::close_for_violation(PathId id, const char* /*reason*/) {
    Path& path = paths_[id];
    std::erase_if(arrivals_, [&](const Arrival& arrival) {
        if (!arrival.frame || arrival.path != id) return false;
        give_back(path.peer, 1);
        return true;
    });
    if (path.stage != Stage::open) return;  // the peer was faster: its down event stands there
    path.stage = Stage::ending;
    send_simple(ParcelKind::farewell, path.peer, Status::success, 0);
    push_event(PathEventKind::down, id, Status::success, 0);
}

// Sending -----------------------------------------------------------------------------------------

/// nullptr: there is no room.
Parcel* SimDevice::stage(Path& path, std::uint32_t header_length, std::uint32_t payload_length) {
    if (path.stage != Stage::open || !fabric_.has_room(node_, path.peer)) return nullptr;
    fabric_.occupy(node_, path.peer);
    auto parcel = std::make_unique<Parcel>();
    parcel->kind = ParcelKind::frame;
    parcel->header_length = header_length;
    parcel->payload.reserve(payload_length + 1);  // never nullptr, not even for no bytes
    parcel->payload.resize(payload_length);
    return path.staged.emplace_back(std::move(parcel)).get();
}

bool SimDevice::reserve(PathId id, std::uint32_t header_length, std::uint32_t payload_length,
                        FrameSlot& slot) {
    VIA_ASSERT(header_length <= capabilities_.header_max &&
               payload_length <= capabilities_.payload_max);
    VIA_ASSERT(id < paths_.size() && paths_[id].stage != Stage::free);
    Path& path = paths_[id];
    want_room(path, false);
    Parcel* const parcel = stage(path, header_length, payload_length);
    if (parcel == nullptr) return false;
    slot = {parcel->header, parcel->payload.data(), false};
    // A carrier wants to know where it lies; the bytes are copied when it is published.
    if (fabric_.carrier() != nullptr) slot.reference = &parcel->source;
    return true;
}

void SimDevice::transmit(PathId id) {
    Path& path = paths_[id];
    for (std::size_t n = 0; n < path.staged.size(); ++n) {
        std::unique_ptr<Parcel>& parcel = path.staged[n];
        if (parcel->source != nullptr) {
            std::copy_n(parcel->source, parcel->payload.size(), parcel->payload.data());
            parcel->address = reinterpret_cast<std::uint64_t>(parcel->source);
        }
        fabric_.send(node_, path.peer, std::move(parcel));
    }
    path.staged.clear();
    path.kept = 0;
}

void SimDevice::name_payload(PathId id, std::size_t nth, std::uint64_t address) {
    paths_[id].staged[paths_[id].kept + nth]->address = address;
}

void SimDevice::drop_staged(Path& path) {
    fabric_.vacate(node_, path.peer, static_cast<std::uint32_t>(path.staged.size()));
    path.staged.clear();
    path.kept = 0;
}

/// The frame but for its payload, which goes where it says. nullptr: not sent.
std::byte* SimDevice::stage_small(PathId id, std::uint64_t low, std::uint64_t high,
                                  std::uint32_t length, const std::byte* source) {
    VIA_ASSERT(id < paths_.size() && paths_[id].stage != Stage::free);
    Path& path = paths_[id];
    VIA_ASSERT(path.staged.size() == path.kept);  // it is asked while nothing is reserved
    if (length > fabric_.options().small_max) return nullptr;
    Parcel* const parcel = stage(path, sizeof low + sizeof high, length);
    if (parcel == nullptr) return nullptr;
    std::memcpy(parcel->header, &low, sizeof low);
    std::memcpy(parcel->header + sizeof low, &high, sizeof high);
    parcel->address = reinterpret_cast<std::uint64_t>(source);
    ++path.kept;
    return parcel->payload.data();
}

std::uint32_t SimDevice::send_small(PathId id, std::uint64_t low, std::uint64_t high,
                                    const std::byte* payload, std::uint32_t length, bool alone) {
    std::byte* const to = stage_small(id, low, high, length, payload);
    if (to == nullptr) return not_sent;
    if (length != 0) std::memcpy(to, payload, length);
    return alone ? notify() : 0;
}

std::uint32_t SimDevice::send_pieces(PathId id, std::uint64_t low, std::uint64_t high,
                                     const Pieces& payload) {
    std::byte* const to =
        stage_small(id, low, high, payload.first_length + payload.second_length, nullptr);
    if (to == nullptr) return not_sent;
    if (payload.first_length != 0) std::memcpy(to, payload.first, payload.first_length);
    if (payload.second_length != 0)
        std::memcpy(to + payload.first_length, payload.second, payload.second_length);
    return notify();
}

std::uint32_t SimDevice::notify() {
    for (Path& path : paths_)
        if (path.kept != 0) transmit(id_of(path));
    return 0;
}

// Sharing -----------------------------------------------------------------------------------------

Status SimDevice::offer(PathId id, const SharedMemory& memory, bool writable, std::uint64_t cookie,
                        GrantId& grant) {
    Path& path = paths_[id];
    const Carrier* const carrier = fabric_.carrier();
    if (carrier != nullptr && !carrier->shares_memory())
        return Status::error_not_supported;  // all goes by NICs
    if (path.stage != Stage::open) return Status::error_resource;
    if (!path.grants) path.grants = std::make_shared<GrantTable>();
    Grants& grants = path.grants->grants;
    if (grant == no_grant) grant = grants.take();
    if (grant == no_grant) return Status::error_resource;
    auto parcel = std::make_unique<Parcel>();
    parcel->kind = ParcelKind::segment;
    parcel->cookie = cookie;
    // Both stay as long as the peer has them, even when this node is gone.
    const auto owner = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
        memory.owner, path.grants);
    parcel->attachment = {memory.base,        memory.length,       writable,
                          grants.word(grant), grants.value(grant), owner};
    fabric_.send(node_, path.peer, std::move(parcel));
    return Status::success;
}

void SimDevice::revoke(PathId id, GrantId grant) {
    if (paths_[id].grants) paths_[id].grants->grants.give_back(grant);
}

void SimDevice::on_segment(Parcel& parcel) {
    const Path* path = open_path(parcel.from);
    if (path == nullptr) return;  // of a path that is over
    push_event(PathEventKind::attached, id_of(*path), Status::success, parcel.cookie);
    arrivals_.back().event.attachment = std::move(parcel.attachment);
}

// Fetching ----------------------------------------------------------------------------------------

bool SimDevice::prefers_pull(PathId id, std::uint64_t /*length*/) {
    return fabric_.options().pulls && fabric_.carrier() == nullptr &&
           paths_[id].stage == Stage::open;
}

Status SimDevice::pull(PathId id, std::span<const Extent> remote, std::span<const Extent> local) {
    VIA_ASSERT(id < paths_.size() && paths_[id].stage != Stage::free);
    // Who has left took its memory along.
    if (!fabric_.present(paths_[id].peer)) return Status::error_resource;
    const std::uint32_t every = fabric_.options().pull_fails_every;
    if (every == 0 || ++pulls_ % every != 0) {
        copy_extents(remote, local);
        return Status::success;
    }
    std::uint64_t bytes = 0;
    for (const Extent& extent : remote) bytes += extent.length;
    copy_extents(remote, local, bytes / 2);
    return Status::error_resource;
}

// Sleeping ----------------------------------------------------------------------------------------

void SimDevice::set_waiting_for_room(PathId id) { want_room(paths_[id], true); }

void SimDevice::want_room(Path& path, bool wanted) {
    if (path.waiting_for_room != wanted) wanting_ += wanted ? 1 : -1;
    path.waiting_for_room = wanted;
}

bool SimDevice::wanted_room_came() const {
    if (wanting_ == 0) return false;  // worlds ask this of every node again and again
    return std::any_of(paths_.begin(), paths_.end(), [this](const Path& path) {
        return path.stage == Stage::open && path.waiting_for_room &&
               fabric_.has_room(node_, path.peer);
    });
}

bool SimDevice::has_work() {
    settle();
    return !arrivals_.empty() || wanted_room_came();
}

Time SimDevice::next_deadline() const {
    if (!arrivals_.empty() || wanted_room_came()) return fabric_.clock().now();
    return fabric_.next_arrival(node_);
}

}  // namespace via::device::sim
