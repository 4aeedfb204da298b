#include "lab/exec/client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "lab/exec/process.hpp"

namespace via::lab::exec {

using sim::remote::Kind;
using sim::remote::Packet;

namespace {

HostAddress common_address() {
    HostAddress address;
    address.length = 6;
    address.bytes = {10, 0, 0, 1, 9741 >> 8, 9741 & 0xFF};
    return address;
}

void note(const device::PathEvent& event, std::set<device::PathId>& paths) {
    if (event.kind == device::PathEventKind::down)
        paths.erase(event.path);
    else if (event.kind != device::PathEventKind::unresolved)
        paths.insert(event.path);
}

}  // namespace

Client::Client(int descriptor, device::sim::Fabric& fabric, carrier::ClusterCarrier& carrier,
               std::chrono::milliseconds patience)
    : line_(descriptor), fabric_(fabric), carrier_(carrier), patience_(patience) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) pid_ = peer.pid;
}

Client::Turn Client::run() {
    waits_ = false;
    Packet packet;
    std::vector<std::byte> payload;
    for (;;) {
        if (is_silent()) return Turn::silent;
        if (!line_.receive(packet, payload)) return Turn::gone;
        if (packet.kind == Kind::wait) {
            until_ = packet.time;
            waits_for_ = packet.value;
            waits_ = true;
            return Turn::waits;
        }
        if (!take(packet, payload)) return Turn::gone;
    }
}

/// Who polls memory, or waits for something that is none of VIPL's, says nothing, and all wait.
bool Client::is_silent() const {
    pollfd ready{line_.descriptor(), POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(patience_.count())) == 0;
}

std::string Client::description() const {
    const std::string who = describe_process(pid_);
    if (!waits_) return who + ": " + what_it_does(pid_) + ", and calls nothing of VIPL";
    if (until_.is_never()) return who + ": waits within VIPL, without end";
    return who + ": waits within VIPL, until " + std::to_string(until_.ns / 1'000) +
           " us of virtual time";
}

std::uint32_t Client::busy() const {
    std::uint32_t bits = 0;
    for (const auto& [number, nic] : nics_)
        if (carrier_.busy(nic.device->node())) bits |= 1U << number;
    return bits;
}

bool Client::is_due() {
    if (until_ <= fabric_.clock().now() || (waits_for_ & ~busy()) != 0) return true;
    return std::ranges::any_of(nics_, [](auto& nic) { return nic.second.device->has_work(); });
}

bool Client::wake() {
    for (auto& [number, nic] : nics_)
        if (!send_arrivals(number, nic)) return false;
    Packet result;
    result.kind = Kind::result;
    result.time = fabric_.clock().now();
    result.value = busy();
    return line_.send(result);
}

bool Client::send_arrivals(std::uint32_t number, Nic& nic) {
    Packet packet;
    packet.nic = number;
    packet.kind = Kind::event;
    device::PathEvent event{};
    while (nic.device->next_event(event)) {
        packet.path = event.path;
        packet.event = event.kind;
        packet.status = event.status;
        packet.cookie = event.cookie;
        note(event, nic.paths);
        if (event.kind == device::PathEventKind::down) nic.reserved.erase(event.path);
        if (!line_.send(packet)) return false;
    }
    if (nic.lent) return true;
    device::Frame frames[16];
    const std::size_t count = nic.device->receive(frames);
    nic.lent = count != 0;
    packet.kind = Kind::arrival;
    for (const device::Frame& frame : std::span(frames).first(count)) {
        packet.path = frame.path;
        packet.header_length = frame.length;
        std::memcpy(packet.header, frame.bytes, frame.length);
        if (!line_.send(packet, {frame.payload, frame.payload_length})) return false;
    }
    return true;
}

// What the process says ---------------------------------------------------------------------------

bool Client::take(const Packet& packet, const std::vector<std::byte>& payload) {
    if (packet.kind == Kind::open) return open(packet);
    const auto nic = nics_.find(packet.nic);
    if (nic == nics_.end()) return false;
    if (packet.kind != Kind::close) return take_of(nic->second, packet, payload);
    nics_.erase(nic);
    return true;
}

bool Client::take_of(Nic& nic, const Packet& packet, const std::vector<std::byte>& payload) {
    device::sim::SimDevice& device = *nic.device;
    Packet result;
    result.kind = Kind::result;
    switch (packet.kind) {
        case Kind::listen:
            result.status = device.listen(packet.address.discriminator);
            return line_.send(result);
        case Kind::unlisten:
            device.unlisten(packet.address.discriminator);
            return true;
        case Kind::resolve:
            device.resolve(packet.address, packet.cookie);
            return true;
        case Kind::release:
            nic.lent = false;
            device.release();
            return true;
        case Kind::poll:
            carrier_.poll(device.node());
            return true;
        case Kind::wake:
            carrier_.wake(device.node(), packet.time - Time{});
            return true;
        case Kind::posted:
            return hear_posted(nic, packet, payload);
        default:
            return take_of_path(nic, packet, payload);
    }
}

/// The process may not have seen the path's end yet: then there is no room, and nothing happens.
bool Client::take_of_path(Nic& nic, const Packet& packet, const std::vector<std::byte>& payload) {
    device::sim::SimDevice& device = *nic.device;
    const bool known = nic.paths.contains(packet.path);
    switch (packet.kind) {
        case Kind::reserve:
            return reserve(nic, packet, known);
        case Kind::frame:
            return !known || fill(nic, packet, payload);
        case Kind::transmit:
            nic.reserved.erase(packet.path);
            if (known) device.transmit(packet.path);
            return true;
        case Kind::close_for_violation:
            if (known) device.close_for_violation(packet.path, "");
            return true;
        case Kind::wants_room:
            if (known) device.set_waiting_for_room(packet.path);
            return true;
        default:
            return false;
    }
}

bool Client::open(const Packet& packet) {
    Packet result;
    result.kind = Kind::result;
    result.time = fabric_.clock().now();
    result.status = Status::error_resource;
    if (packet.value != sim::remote::version || opened_ == nics_max) return line_.send(result);
    if (carrier_.is_full()) {
        std::fprintf(stderr,
                     "openvia: the cluster's cable joins two NICs; --design wiring=switch has room "
                     "for more\n");
        return line_.send(result);
    }
    result.status = Status::success;
    result.nic = opened_++;
    result.address.host = common_address();
    result.value = fabric_.options().payload_max;
    Nic& nic = nics_[result.nic];
    nic.device = std::make_unique<device::sim::SimDevice>(fabric_, common_address());
    carrier_.attend(nic.device->node(), *nic.told);
    return line_.send(result);
}

bool Client::reserve(Nic& nic, const Packet& packet, bool known) {
    const device::Capabilities& can = nic.device->capabilities();
    if (packet.header_length > can.header_max || packet.value > can.payload_max) return false;
    device::FrameSlot slot;
    Packet result;
    result.kind = Kind::result;
    result.status = Status::not_done;
    if (known && nic.device->reserve(packet.path, packet.header_length, packet.value, slot)) {
        result.status = Status::success;
        nic.reserved[packet.path].slots.push_back(slot);
        nic.reserved[packet.path].asked.push_back(packet);
    }
    return line_.send(result);
}

bool Client::fill(Nic& nic, const Packet& packet, const std::vector<std::byte>& payload) {
    Reserved& reserved = nic.reserved[packet.path];
    if (reserved.filled == reserved.slots.size()) return false;
    const Packet& asked = reserved.asked[reserved.filled];
    if (asked.header_length != packet.header_length || asked.value != payload.size()) return false;
    const device::FrameSlot& slot = reserved.slots[reserved.filled];
    std::memcpy(slot.header, packet.header, packet.header_length);
    std::ranges::copy(payload, slot.payload);
    nic.device->name_payload(packet.path, reserved.filled++, packet.cookie);
    return true;
}

bool Client::hear_posted(Nic& nic, const Packet& packet, const std::vector<std::byte>& payload) {
    constexpr std::uint32_t vis_max = 65'536;
    if (packet.value >= vis_max || payload.size() % sizeof(Extent) != 0) return false;
    if (nic.told->vis.size() <= packet.value) nic.told->vis.resize(packet.value + 1);
    std::vector<Extent>& posted = nic.told->vis[packet.value];
    posted.resize(payload.size() / sizeof(Extent));
    if (!posted.empty()) std::memcpy(posted.data(), payload.data(), payload.size());
    return true;
}

}  // namespace via::lab::exec
