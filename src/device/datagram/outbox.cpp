#include "device/datagram/outbox.hpp"

#include <algorithm>
#include <cstring>

namespace via::device::datagram {

namespace {

/// What a turn may send, and a datagram of the greatest length behind it.
constexpr std::uint32_t staging_bytes = 512 * 1024;

}  // namespace

Outbox::Outbox() : staging_(staging_bytes, burst_bytes) {}

Outbox::~Outbox() {
    while (ack_owed_.pop_front() != nullptr) {
    }
}

void Outbox::drop(Path& path) {
    staging_.drop(path.id);
    List<Path, AckLink>::remove_if_linked(path);
}

void Outbox::connect(const HostAddress& to, std::span<const std::byte> bytes, bool from_host_port) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    StagedPacket* packet = staging_.add(StagedPacket::no_path, length);
    if (packet == nullptr) return;
    packet->to = to;
    packet->length = packet->transmitted = length;
    packet->sealed = true;
    packet->from_host_port = from_host_port;
    std::memcpy(staging_.bytes(*packet), bytes.data(), length);
}

bool Outbox::ping(Path& path, std::uint32_t packet_length) {
    const std::uint32_t least = wire::data_header_length + wire::chunk_prefix_length;
    const std::uint32_t length = std::max(packet_length, least);
    StagedPacket* packet = staging_.add(path.id, std::max(length, path.datagram_max()));
    if (packet == nullptr) return false;  // there is so much to be sent that somebody will answer
    packet->to = path.peer;
    packet->wants_ack = true;
    std::byte* const at = staging_.bytes(*packet) + wire::data_header_length;
    packet->length = wire::data_header_length + wire::emit_ping_chunk(at);
    if (length >= packet->length + wire::chunk_prefix_length) {
        packet->length +=
            wire::emit_padding_chunk(length - packet->length, at + wire::chunk_prefix_length);
        packet->alone = packet->length_probe = true;
    }
    packet->asks_only = !packet->length_probe;
    packet->transmitted = packet->length;
    path.begin_packet(packet->length);
    return true;
}

void Outbox::probe_length(Path& path) {
    const std::uint32_t length = path.length.wanted();
    if (length == 0) return;
    path.length_probe_waits = reserving_;
    if (reserving_ || !path.window_allows(length)) return;
    if (ping(path, length)) path.length.sent();
}

bool Outbox::find_due_ack() {
    for (Path* path = ack_owed_.front(); path != nullptr; path = ack_owed_.next(*path))
        if (path->acks.is_due()) return true;
    return false;
}

bool Outbox::find_late_acks(std::uint64_t look, Time now) {
    bool any = false;
    for (Path* path = ack_owed_.front(); path != nullptr; path = ack_owed_.next(*path))
        any = path->acks.on_look(look, now) || any;
    return any;
}

void Outbox::acknowledge(Time now) {
    for (Path* path = ack_owed_.front(); path != nullptr;) {
        Path* const next = ack_owed_.next(*path);
        if (path->acks.is_due() || path->staged_packets != 0) acknowledge(*path, now);
        path = next;
    }
}

void Outbox::acknowledge(Path& path, Time now) {
    StagedPacket* packet = nullptr;
    for (std::size_t n = staging_.end(); n-- > staging_.begin() && packet == nullptr;)
        if (staging_[n].path == path.id) packet = &staging_[n];
    // Behind it another packet may stand already.
    const bool open = packet != nullptr && packet->takes_more() &&
                      packet->length == packet->transmitted && packet->named_below == 0;
    if (!open || !append_ack(path, *packet, now)) {
        packet = staging_.add(path.id, wire::data_header_length + wire::ack_length_max);
        if (packet == nullptr) return;  // not forgotten: it is owed
        packet->to = path.peer;
        packet->length = wire::data_header_length;
        packet->alone = true;
        append_ack(path, *packet, packet->room, now);
        ++path.staged_packets;
        ++path.counts.acks_alone;
        path.acks.left_alone(packet->named_below);
    }
    path.acks.acknowledged();
    List<Path, AckLink>::remove_if_linked(path);
}

bool Outbox::append_ack(Path& path, StagedPacket& packet, std::uint32_t limit, Time now) {
    if (packet.length + wire::ack_length_least > limit) return false;
    path.received.fill(ack_);
    const std::int64_t waited = std::max<std::int64_t>((now - path.largest_came).ns, 0);
    ack_.delay =
        static_cast<std::uint32_t>(std::min<std::int64_t>(waited / wire::ack_delay_unit_ns, ~0U));
    const std::uint32_t length = wire::ack_length(ack_);
    if (packet.length + length > limit) return false;
    wire::emit_ack_chunk(ack_, staging_.bytes(packet) + packet.length);
    packet.length += length;
    packet.transmitted = packet.length;
    packet.named_below = ack_.largest + 1;
    if (packet.wants_ack) path.grow_packet(packet.length, length);
    return true;
}

}  // namespace via::device::datagram
