#include "sim/host/remote_world.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/assert.hpp"

namespace via::sim::remote {

std::unique_ptr<RemoteWorld> RemoteWorld::connect(const std::string& path,
                                                  device::sim::VirtualClock& clock) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return nullptr;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int descriptor = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return nullptr;
    auto world = std::unique_ptr<RemoteWorld>(new RemoteWorld(descriptor, clock));
    if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        return nullptr;
    return world;
}

/// Nothing can go on: what this process waits for is decided there.
void RemoteWorld::owner_is_gone() {
    std::fprintf(stderr, "openvia: via lab exec has ended, and with it the simulated cluster\n");
    std::_Exit(1);
}

void RemoteWorld::tell(Packet packet, std::span<const std::byte> payload) {
    if (!line_.send(packet, payload)) owner_is_gone();
}

Packet RemoteWorld::ask(const Packet& packet) {
    tell(packet);
    Packet answer;
    std::vector<std::byte> payload;
    for (;;) {
        if (!line_.receive(answer, payload)) owner_is_gone();
        if (answer.kind == Kind::result) return answer;
        const auto device = devices_.find(answer.nic);
        if (device != devices_.end()) device->second->take(answer, std::move(payload));
        payload.clear();
    }
}

std::unique_ptr<RemoteDevice> RemoteWorld::open() {
    Packet question;
    question.kind = Kind::open;
    question.value = version;
    const Packet answer = ask(question);
    if (answer.status != Status::success) return nullptr;
    clock_.advance_to(std::max(clock_.now(), answer.time));
    auto device =
        std::make_unique<RemoteDevice>(*this, answer.nic, answer.address.host, answer.value);
    devices_[answer.nic] = device.get();
    return device;
}

void RemoteWorld::leave(device::sim::NodeId node) {
    devices_.erase(node);
    receives_.erase(node);
    busy_ &= ~(1U << node);
    std::erase_if(told_, [node](const auto& told) { return told.first.first == node; });
}

void RemoteWorld::attend(device::sim::NodeId node, const device::sim::Receives& receives) {
    receives_[node] = &receives;
}

/// What is new since it was told last.
void RemoteWorld::tell_of_receives(std::uint32_t nic) {
    const auto found = receives_.find(nic);
    if (found == receives_.end()) return;
    const device::sim::Receives& receives = *found->second;
    for (std::uint32_t vi = 0; vi < receives.vis_end(); ++vi) {
        std::vector<Extent> now;
        now.reserve(receives.outstanding(vi));
        for (std::uint32_t n = 0; n < receives.outstanding(vi); ++n)
            now.push_back(receives.posted(vi, n));
        std::vector<Extent>& before = told_[{nic, vi}];
        const bool same = std::ranges::equal(now, before, [](const Extent& a, const Extent& b) {
            return a.address == b.address && a.length == b.length;
        });
        if (same) continue;
        Packet packet;
        packet.kind = Kind::posted;
        packet.nic = nic;
        packet.value = vi;
        tell(packet, std::as_bytes(std::span(now)));
        before = std::move(now);
    }
}

void RemoteWorld::poll(device::sim::NodeId node) { look(node, Kind::poll, {}); }

void RemoteWorld::wake(device::sim::NodeId node, Duration waited) {
    look(node, Kind::wake, waited);
}

void RemoteWorld::look(device::sim::NodeId node, Kind kind, Duration waited) {
    tell_of_receives(node);
    Packet packet;
    packet.kind = kind;
    packet.nic = node;
    packet.time = Time{} + waited;
    tell(packet);
    busy_ |= 1U << node;
}

void RemoteWorld::carry(device::sim::NodeId, device::sim::NodeId,
                        std::unique_ptr<device::sim::Parcel>) {
    VIA_ASSERT(false);
}

void RemoteWorld::run(Time end) {
    for (const auto& [nic, device] : devices_) tell_of_receives(nic);
    Packet packet;
    packet.kind = Kind::wait;
    packet.time = end;
    packet.value = busy_;
    const Packet answer = ask(packet);
    clock_.advance_to(std::max(clock_.now(), answer.time));
    busy_ = answer.value;
    for (const auto& [nic, device] : devices_) device->stir();
}

// The device --------------------------------------------------------------------------------------

RemoteDevice::RemoteDevice(RemoteWorld& world, std::uint32_t nic, const HostAddress& address,
                           std::uint32_t payload_max)
    : Device({payload_max, device::Frame::inline_max, payload_max + 1, true, true}, address),
      world_(world),
      nic_(nic) {}

RemoteDevice::~RemoteDevice() {
    world_.tell(about(Kind::close));
    world_.leave(nic_);
}

Packet RemoteDevice::about(Kind kind, device::PathId path) const {
    Packet packet;
    packet.kind = kind;
    packet.nic = nic_;
    packet.path = path;
    return packet;
}

void RemoteDevice::take(const Packet& packet, std::vector<std::byte> payload) {
    arrivals_.push_back({packet, std::move(payload)});
}

void RemoteDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    Packet packet = about(Kind::resolve);
    packet.address = remote;
    packet.cookie = cookie;
    world_.tell(packet);
}

Status RemoteDevice::listen(const Discriminator& discriminator) {
    Packet packet = about(Kind::listen);
    packet.address.discriminator = discriminator;
    return world_.ask(packet).status;
}

void RemoteDevice::unlisten(const Discriminator& discriminator) {
    Packet packet = about(Kind::unlisten);
    packet.address.discriminator = discriminator;
    world_.tell(packet);
}

bool RemoteDevice::reserve(device::PathId path, std::uint32_t header_length,
                           std::uint32_t payload_length, device::FrameSlot& slot) {
    world_.tell_of_receives(nic_);
    Packet packet = about(Kind::reserve, path);
    packet.header_length = header_length;
    packet.value = payload_length;
    if (world_.ask(packet).status != Status::success) return false;
    Staged& staged = staged_[path].emplace_back();
    staged.packet = about(Kind::frame, path);
    staged.packet.header_length = header_length;
    staged.payload.reserve(payload_length + 1);  // never nullptr, not even for no bytes
    staged.payload.resize(payload_length);
    slot = {staged.packet.header, staged.payload.data(), false};
    slot.reference = &staged.source;
    return true;
}

void RemoteDevice::transmit(device::PathId path) {
    for (Staged& staged : staged_[path]) {
        std::span<const std::byte> payload = staged.payload;
        if (staged.source != nullptr) payload = {staged.source, payload.size()};
        staged.packet.cookie = reinterpret_cast<std::uint64_t>(staged.source);
        world_.tell(staged.packet, payload);
    }
    staged_[path].clear();
    world_.tell(about(Kind::transmit, path));
    world_.note_work(nic_);
}

bool RemoteDevice::next_event(device::PathEvent& event) {
    stirred_ = false;
    if (arrivals_.empty() || arrivals_.front().packet.kind != Kind::event) return false;
    const Packet& packet = arrivals_.front().packet;
    event = {packet.event, packet.path, packet.status, packet.cookie};
    if (packet.event == device::PathEventKind::down) staged_.erase(packet.path);
    arrivals_.pop_front();
    return true;
}

std::size_t RemoteDevice::receive(std::span<device::Frame> frames) {
    VIA_ASSERT(lent_.empty());
    std::size_t count = 0;
    lent_.reserve(frames.size());
    while (count < frames.size() && !arrivals_.empty() &&
           arrivals_.front().packet.kind == Kind::arrival) {
        const Arrival& arrival = lent_.emplace_back(std::move(arrivals_.front()));
        arrivals_.pop_front();
        device::Frame& frame = frames[count++];
        frame.path = arrival.packet.path;
        frame.length = arrival.packet.header_length;
        std::memcpy(frame.bytes, arrival.packet.header, frame.length);
        frame.payload = arrival.payload.empty() ? nullptr : arrival.payload.data();
        frame.payload_length = static_cast<std::uint32_t>(arrival.payload.size());
    }
    return count;
}

bool RemoteDevice::release() {
    if (lent_.empty()) return false;
    lent_.clear();
    world_.tell_of_receives(nic_);
    world_.tell(about(Kind::release));
    return false;
}

void RemoteDevice::close_for_violation(device::PathId path, const char* /*reason*/) {
    world_.tell(about(Kind::close_for_violation, path));
}

Time RemoteDevice::next_deadline() const {
    return arrivals_.empty() && !stirred_ ? Time::never() : Time{};
}

void RemoteDevice::set_waiting_for_room(device::PathId path) {
    waits_for_room_ = true;
    world_.tell(about(Kind::wants_room, path));
}

}  // namespace via::sim::remote
