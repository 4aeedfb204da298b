// The device's way out: frames into packets, packets to the port.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/search.hpp"
#include "wire/bytes.hpp"
#include "wire/frame.hpp"

namespace via::device::datagram {

/// May a packet of that length leave after what is staged? The clock is read only if pacing asks.
bool DatagramDevice::within_pace(Path& path, std::uint32_t packet_length) {
    return path.window_allows(packet_length) &&
           (path.pacer.has_tokens(path.staged_bytes) ||
            path.pacer.may_send(path.staged_bytes, port_->now()));
}

/// Its tables hold what the peer does not acknowledge, for which each peer has a share.
bool DatagramDevice::widen(Path& path, std::size_t bytes) {
    if (!shares_.widen(*path.share, bytes)) return false;
    path.tables += bytes;
    return true;
}

bool DatagramDevice::has_frame_room(Path& path) {
    if (path.frames.has_room()) return true;
    const std::uint32_t max = path.frames.max();
    if (max == frames_ahead_max || !widen(path, max * frame_cost)) return false;
    path.frames.allow(2 * max);
    return true;
}

/// Anybody has many paths without a connection: those get no more.
bool DatagramDevice::remember_more(Path& path) {
    const std::uint32_t max = path.sent.remembered_max();
    if (!path.carried || max == packets_remembered_max || !widen(path, max * packet_cost))
        return false;
    path.sent.remember(2 * max);
    return true;
}

bool DatagramDevice::may_begin(Path& path, std::uint32_t packet_length, bool is_new) {
    if (is_new && !has_frame_room(path)) return false;
    return staging_.has_room(std::max(packet_length, path.datagram_max())) &&
           (path.probe_credit != 0 || within_pace(path, packet_length));
}

bool DatagramDevice::has_room_for_wanted(Path& path) {
    const Path::Wanted& wanted = path.wanted;
    return wanted.is_again && wanted.length > path.datagram_max()
               ? may_begin_parts(path, wanted.number, frame_length_of(wanted.length))
               : may_begin(path, wanted.length, wanted.is_new);
}

/// The packet into which a chunk goes, begun if need be; nullptr: not now.
StagedPacket* DatagramDevice::packet_for(Path& path, std::uint32_t chunk_length, bool is_new) {
    StagedPacket* open = staging_.open(path.id);
    if (open != nullptr && open->length + chunk_length <= open->room &&
        (!is_new || has_frame_room(path)))
        return open;
    const std::uint32_t length = wire::data_header_length + chunk_length;
    if (!may_begin(path, length, is_new) &&
        (!settles_ack_of(path) || !may_begin(path, length, is_new))) {
        path.wanted = {length, is_new};
        path.held_back = path.held_back || !path.window_allows(length);
        return nullptr;
    }
    if (path.probe_credit != 0 && !within_pace(path, length)) --path.probe_credit;
    if (open != nullptr && open->waited) pad(path, *open, length);
    StagedPacket* packet = staging_.add(path.id, std::max(length, path.datagram_max()));
    VIA_ASSERT(packet != nullptr);
    packet->to = path.peer;
    packet->length = wire::data_header_length;
    packet->wants_ack = true;
    path.begin_packet(packet->length);
    return packet;
}

/// A packet that waited for those behind it, the first of which is `length` long: made as long as
/// they are, it does not end the burst that the kernel cuts.
void DatagramDevice::pad(Path& path, StagedPacket& packet, std::uint32_t length) {
    if (length < packet.length + wire::chunk_prefix_length || length > packet.room) return;
    const std::uint32_t more = length - packet.length;
    if (!path.window_allows(length + more)) return;
    wire::emit_padding_chunk(more, staging_.bytes(packet) + packet.length);
    packet.length = packet.transmitted = length;
    packet.alone = true;
    path.grow_packet(length, more);
}

bool DatagramDevice::reserve(PathId id, std::uint32_t header_length, std::uint32_t payload_length,
                             FrameSlot& slot) {
    Path* path = path_at(id);
    VIA_ASSERT(path != nullptr);
    if (path->stage != Path::Stage::up) return false;
    const bool is_new = slot.must_arrive && !slot.again;
    const std::uint32_t length = header_length + payload_length;
    if (slot.again && packet_length_of(length) > path->datagram_max())
        return reserve_parts(*path, header_length, length, slot);
    StagedPacket* packet = packet_for(*path, wire::frame_chunk_overhead + length, is_new);
    if (packet == nullptr) return false;
    if (is_new) {
        slot.number = path->frames.take();
        ++path->reserved_new;
    }
    std::byte* const at = staging_.bytes(*packet) + packet->length;
    wire::emit_frame_chunk(slot.must_arrive, slot.must_arrive ? slot.number : 0, length, at);
    slot.header = at + wire::frame_chunk_overhead;
    slot.payload = slot.header + header_length;
    packet->asks_only = false;
    slot.stream = false;
    // What need not arrive is done, and its bytes the program's again, before the turn ends.
    if (slot.must_arrive && payload_length >= reference_least && packet->body.bytes == nullptr &&
        !blocked_) {
        packet->body.at = packet->length + wire::frame_chunk_overhead + header_length;
        packet->body.length = payload_length;
        slot.reference = &packet->body.bytes;
    }
    packet->length += wire::frame_chunk_overhead + length;
    path->grow_packet(packet->length, wire::frame_chunk_overhead + length);
    if (slot.must_arrive) staging_.add_frame(*packet, slot.number);
    ++path->counts.frames_sent;
    if (slot.again) ++path->counts.frames_again;
    if (slot.wanted > 1 && slot.reference != nullptr) make_run(*path, *packet, length, slot);
    return true;
}

/// As many packets more like this one, which has no other frame, as are wanted, may leave and make
/// a burst.
void DatagramDevice::make_run(Path& path, StagedPacket& packet, std::uint32_t frame_length,
                              FrameSlot& slot) {
    const std::uint32_t length = packet.length;
    if (length != packet_length_of(frame_length) || path.probe_credit != 0 || mutating()) return;
    // What takes more than one call begins with two thirds of one: the peer works on them while we
    // fill the rest. Not further on, even if it has got all so far: then it waits for us.
    const std::uint64_t all = std::uint64_t{slot.wanted} * length;
    // Of a short one only room asks what was heard; a long one would go on believing that more is
    // under way than there is.
    if (all > burst_bytes / 2) settles_ack_of(path);
    const bool begins = path.sent.packets_in_flight() == 0 && slot.number != path.run_end;
    path.divided = begins && all > burst_bytes;
    const auto burst = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(burst_bytes, path.divided ? all / 3 * 2 : burst_bytes));
    const auto fit = std::min<std::size_t>(burst / length, burst_.size());
    const std::size_t left = fit > staging_.datagrams() ? fit - staging_.datagrams() : 0;
    const std::uint64_t wanted =
        std::min({std::uint64_t{slot.wanted - 1}, std::uint64_t{left},
                  std::uint64_t{path.frames.room()}, std::uint64_t{staging_.run_max(length) - 1}});
    std::uint64_t more = std::min(wanted, path.packets_allowed(length));
    if (more < wanted && settles_ack_of(path))
        more = std::min(wanted, path.packets_allowed(length));
    if (more < wanted && path.pacer.packets_allowed(path.staged_bytes, length) == more) {
        path.pacer.refill(port_->now());  // what is left of the last burst says nothing
        more = std::min(wanted, path.packets_allowed(length));
    }
    if (more == 0) return;
    slot.count = static_cast<std::uint32_t>(1 + more);
    staging_.make_run(packet, slot.count, slot.wanted);
    slot.stride = packet.stride;
    path.run_end = slot.number + slot.count;
    path.begin_packet(length, slot.count - 1);
    path.reserved_new += slot.count - 1;
    path.counts.frames_sent += slot.count - 1;
    for (std::uint32_t n = 1; n < slot.count; ++n)
        wire::emit_frame_chunk(true, path.frames.take(), frame_length,
                               staging_.bytes(packet, n) + wire::data_header_length);
}

void DatagramDevice::transmit(PathId id) {
    staging_.transmit(id);
    Path* path = path_at(id);
    if (path == nullptr) return;
    path->reserved_new = 0;
    if (std::exchange(path->length_probe_waits, false)) stage_length_probe(*path, looked_at_);
    if (path->parts != nullptr) path->parts->transmit();
    const bool divided = std::exchange(path->divided, false);
    const std::size_t staged = staging_.datagrams();
    if (path->sent.packets_in_flight() == 0) {
        if (divided) flush(port_->now());
        return;
    }
    // A call of the kernel costs as much as fifteen packets in it: whole bursts. A small message
    // does not pay for dividing.
    const std::size_t length = path->datagram_max();
    if (staged < burst_.size() && (staged + 1) * length <= burst_bytes) return;
    const std::size_t burst = std::clamp<std::size_t>(burst_bytes / length, 1, burst_.size());
    std::size_t whole = staged / burst * burst;
    std::size_t n = staging_.begin();
    for (; n < staging_.end(); ++n) {
        const StagedPacket& packet = staging_[n];
        const std::size_t count = packet.dropped ? 0 : packet.count - packet.gone;
        if (count > whole) break;
        whole -= count;
    }
    // Long packets are bursts of their own, but not what is still being filled.
    if (n == staging_.end() && staging_.is_filling(held_bytes_max)) --n;
    if (n == staging_.begin()) return;
    send_before(n, port_->now());
    burst_left_ = true;
}

void DatagramDevice::abandon(PathId id) {
    Path* path = path_at(id);
    if (path == nullptr || path->stage != Path::Stage::up) return;
    staging_.abandon(id);
    if (path->parts != nullptr && !path->parts->transmitted()) end_parts(*path);
    path->frames.give_back(path->reserved_new);
    path->reserved_new = 0;
    // What is staged is counted anew.
    path->staged_packets = 0;
    path->staged_bytes = path->staged_room = 0;
    for (std::size_t n = staging_.begin(); n < staging_.end(); ++n) {
        const StagedPacket& packet = staging_[n];
        if (packet.path != id || packet.sealed || packet.dropped) continue;
        if (packet.wants_ack) {
            path->begin_packet(packet.length, packet.count);
        } else {
            ++path->staged_packets;
        }
    }
}

/// Who posts many small messages between two looks will look again soon, and they share a packet
/// until then; so do those of one who sends them in quick succession without an answer, or else
/// each would go on paying for a packet and its acknowledgement. The first of them do not wait, and
/// nobody who sleeps is relied on. The end of a long message does not wait: a call is made for what
/// stands before it anyhow.
bool DatagramDevice::may_hold() {
    if (asleep_ || !staging_.is_filling(held_bytes_max)) return false;
    if (posts_many()) return true;
    const std::size_t last = staging_.end() - 1;
    if (last != staging_.begin() && staging_[last - 1].count > 1) return false;
    const Path& path = *paths_[staging_[last].path];
    return path.sent_in_a_row + 1 >= in_a_row_least &&
           port_->now() - path.probe_base <= quick_succession;
}

/// The rest of a long message, whose whole bursts left: it fills a burst with the next one of those
/// that a program posts between two looks. A call of the kernel for itself costs a third of a whole
/// burst's; a copy of more than some packets would, too.
bool DatagramDevice::may_hold_rest() {
    if (!std::exchange(burst_left_, false) || asleep_ || blocked_ || staging_.empty() ||
        !posts_many())
        return false;
    const StagedPacket& last = staging_[staging_.end() - 1];
    return staging_.datagrams() <= rest_packets_max && last.takes_more() && last.frames != 0 &&
           last.transmitted == last.length && paths_[last.path]->sent.in_flight() >= burst_bytes;
}

/// After a look. Where it brought acknowledgements, messages are done, and the program of a stream
/// posts the next ones before it looks again.
bool DatagramDevice::rest_waits_on() {
    if (!may_have_reaped_ || staging_.empty() || blocked_ || has_due_acks()) return false;
    const StagedPacket& last = staging_[staging_.end() - 1];
    return last.waited && last.takes_more() && paths_[last.path]->sent.in_flight() >= burst_bytes;
}

std::uint32_t DatagramDevice::notify() {
    if (staging_.empty() && ack_owed_.empty() && parted_.empty()) return 0;
    ++hands_over_;
    if (may_hold_rest()) {
        staging_[staging_.end() - 1].waited = true;
        staging_.take_in();  // the turn ends
    } else if (!may_hold()) {
        flush(port_->now());
    } else if (staging_.end() - staging_.begin() > 1) {
        send_before(staging_.end() - 1, port_->now());  // full ones
        staging_.take_in();
    }
    return 0;  // nobody is woken: a packet wakes its receiver by itself
}

// What the device itself has to say ---------------------------------------------------------------

void DatagramDevice::stage_connecting(const HostAddress& to, std::span<const std::byte> bytes,
                                      bool from_host_port) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    StagedPacket* packet = staging_.add(StagedPacket::no_path, length);
    if (packet == nullptr) return;  // as if lost
    packet->to = to;
    packet->length = packet->transmitted = length;
    packet->sealed = true;
    packet->from_host_port = from_host_port;
    std::memcpy(staging_.bytes(*packet), bytes.data(), length);
}

/// Writes it behind what stands in the packet. False: there is no room.
bool DatagramDevice::append_ack(Path& path, StagedPacket& packet, std::uint32_t limit, Time now) {
    if (packet.length + wire::ack_length_least > limit) return false;
    wire::Ack& ack = ack_to_send_;
    path.received.fill(ack);
    const std::int64_t waited = std::max<std::int64_t>((now - path.largest_came).ns, 0);
    ack.delay =
        static_cast<std::uint32_t>(std::min<std::int64_t>(waited / wire::ack_delay_unit_ns, ~0U));
    const std::uint32_t length = wire::ack_length(ack);
    if (packet.length + length > limit) return false;
    wire::emit_ack_chunk(ack, staging_.bytes(packet) + packet.length);
    packet.length += length;
    packet.transmitted = packet.length;
    packet.named_below = ack.largest + 1;
    if (packet.wants_ack) path.grow_packet(packet.length, length);
    return true;
}

/// Into the last packet that goes there anyhow, else into one of its own.
void DatagramDevice::stage_ack(Path& path, Time now) {
    StagedPacket* packet = nullptr;
    for (std::size_t n = staging_.end(); n-- > staging_.begin() && packet == nullptr;)
        if (staging_[n].path == path.id) packet = &staging_[n];
    // Behind it another packet may stand already.
    const bool open = packet != nullptr && packet->takes_more() &&
                      packet->length == packet->transmitted && packet->named_below == 0;
    if (!open || !append_ack(path, *packet, staging_.limit(*packet), now)) {
        packet = staging_.add(path.id, wire::data_header_length + wire::ack_length_max);
        if (packet == nullptr) return;  // not forgotten: it is owed
        packet->to = path.peer;
        packet->length = wire::data_header_length;
        packet->alone = true;
        append_ack(path, *packet, packet->room, now);
        ++path.staged_packets;
        ++path.counts.acks_alone;
        path.ack_unsure = packet->named_below;
    }
    path.ack_now = false;
    path.ack_bytes = 0;
    List<Path, AckLink>::remove_if_linked(path);
}

/// `packet_length`: padded to it; 0: as short as can be. False: there is no room.
bool DatagramDevice::stage_ping(Path& path, std::uint32_t packet_length, Time /*now*/) {
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

/// Behind packets that are being filled, not among them: a message's are one behind the other.
void DatagramDevice::stage_length_probe(Path& path, Time now) {
    const std::uint32_t length = path.length.wanted();
    if (length == 0) return;
    path.length_probe_waits = reserving_;
    if (reserving_ || !path.window_allows(length)) return;
    if (stage_ping(path, length, now)) path.length.sent();
}

/// The oldest packet in flight with a frame that was not sent since; next_number(): none has.
std::uint64_t DatagramDevice::oldest_with_frames(Path& path) {
    for (std::uint64_t number = path.sent.oldest_in_flight(); number < path.sent.next_number();
         ++number) {
        const SentPacket& packet = path.sent.packet(number);
        if (packet.state != SentState::in_flight) continue;
        for (std::uint32_t n = 0; n < packet.frames; ++n)
            if (path.frames.is_in(path.sent.frame(packet, n), number)) return number;
    }
    return path.sent.next_number();
}

/// RFC 9002, 6.2.4: asks, and has the oldest frames emitted again. Nothing counts as lost by it.
void DatagramDevice::on_probe_timeout(Path& path, Time now) {
    ++path.timeouts;
    ++path.counts.probe_timeouts;
    path.probe_base = now;
    path.probe_credit = probe_packets;
    if (path.timeouts >= timeouts_to_collapse) path.window.collapse();
    port_->doubt(path.peer, path.newest_arrived);
    const SentPacket oldest = path.sent.packet(path.sent.oldest_in_flight());
    if (oldest.length > wire::packet_length_min && !oldest.length_probe &&
        ++path.long_timeouts >= long_timeouts_max)
        fall_back(path, 0);
    stage_ping(path, 0, now);
    const std::uint64_t number = oldest_with_frames(path);
    if (number == path.sent.next_number()) return;
    const SentPacket& packet = path.sent.packet(number);
    for (std::uint32_t n = 0; n < packet.frames; ++n)
        lose_frame(path, path.sent.frame(packet, n), number);
}

// To the port -------------------------------------------------------------------------------------

bool DatagramDevice::find_due_ack() {
    for (Path* path = ack_owed_.front(); path != nullptr; path = ack_owed_.next(*path))
        if (path->ack_now) return true;
    return false;
}

/// With every packet that goes out anyhow; of their own where it is time.
void DatagramDevice::stage_acks(Time now) {
    for (Path* path = ack_owed_.front(); path != nullptr;) {
        Path* const next = ack_owed_.next(*path);
        if (path->ack_now || path->staged_packets != 0) stage_ack(*path, now);
        path = next;
    }
}

/// Does it hold a frame that asks for a connection, accepts one or belongs to one?
bool DatagramDevice::speaks_of_a_connection(std::span<const std::byte> packet) {
    wire::ChunkReader reader(packet);
    wire::Chunk chunk;
    while (reader.next(chunk)) {
        if (chunk.kind != wire::ChunkKind::frame || chunk.frame.empty()) continue;
        switch (wire::get<wire::FrameKind>(chunk.frame.data())) {
            case wire::FrameKind::request:
            case wire::FrameKind::peer_request:
            case wire::FrameKind::accept:
            case wire::FrameKind::send:
                return true;
            default:
                break;
        }
    }
    return false;
}

/// Gives the packet its number and, unless its tag will do, its checksum; record() follows.
void DatagramDevice::seal(StagedPacket& packet, Time now) {
    Path& path = *paths_[packet.path];
    if (!path.carried && speaks_of_a_connection({staging_.bytes(packet), packet.length})) {
        path.carried = true;
        path.sent.make_room();
    }
    // One that left alone may be lost, and nobody would send it again.
    if (path.ack_unsure != 0 && packet.wants_ack && packet.named_below == 0 && !packet.alone)
        append_ack(path, packet, staging_.limit(packet), now);
    packet.sealed = true;
    for (std::uint32_t n = 0; n < packet.count; ++n) {
        const std::uint64_t number = path.sent.next_number() + path.sealed_packets++;
        std::uint64_t on_wire = number;
        if (mutated(Mutation::reuse_packet_number) && path.counts.packets_lost != 0 && number != 0)
            on_wire = number - 1;
        const std::span<std::byte> bytes{staging_.bytes(packet, n), packet.length};
        if (authenticates_) {
            wire::put_data_header(bytes, path.theirs, on_wire);
        } else {
            wire::seal_data(bytes, path.theirs, on_wire, packet.body_of(n));
        }
    }
    if (!authenticates_) packet.body = {};
}

/// What is to be known of a sealed packet until it is acknowledged.
void DatagramDevice::record(const StagedPacket& packet, Time now) {
    Path& path = *paths_[packet.path];
    path.sealed_packets -= packet.count;
    path.staged_packets -= packet.count;
    path.counts.packets_sent += packet.count;
    for (std::uint32_t n = 0; n < packet.count; ++n) record_one(path, packet, n, now);
    if (!packet.wants_ack) return;
    path.staged_bytes -= std::uint64_t{packet.count} * packet.length;
    path.staged_room -= std::uint64_t{packet.count} * room_of(packet.length);
    path.pacer.sent(std::uint64_t{packet.count} * packet.length, now);
    path.probe_base = now;
    path.sent_in_a_row = packet.count == 1 ? path.sent_in_a_row + 1 : 0;
}

/// The n-th of the run.
void DatagramDevice::record_one(Path& path, const StagedPacket& packet, std::uint32_t n, Time now) {
    const std::uint64_t number = path.sent.next_number();
    for (std::uint32_t at = 0; at < packet.frames; ++at) {
        const std::uint32_t frame = staging_.frame(packet, at) + n;
        path.sent.add_frame(frame);
        path.frames.sent(frame, number);
    }
    if (packet.part != StagedPacket::no_part) path.parts->sent(packet.part, number);
    path.sent.push(now, packet.length, packet.wants_ack, packet.named_below, packet.length_probe,
                   packet.asks_only);
    while (!packet.wants_ack && path.sent.is_crowded() && path.sent.packets_in_flight() != 0 &&
           !remember_more(path))
        path.sent.give_up_oldest([&](std::uint64_t lost, const SentPacket& what) {
            ++path.counts.packets_lost;
            on_lost(path, lost, what);
        });
}

/// Fills burst_ with what is staged before `end`, sealed. `n`: behind the last that was looked at;
/// `first_new`: the first that was not sealed yet. Returns how many datagrams.
std::size_t DatagramDevice::fill_burst(std::size_t end, Time now, std::size_t& n,
                                       std::size_t& first_new) {
    std::size_t count = 0;
    for (n = staging_.begin(); n < end && count < burst_.size(); ++n) {
        StagedPacket& packet = staging_[n];
        if (packet.dropped) continue;
        if (packet.transmitted != packet.length) break;
        if (!packet.sealed) {
            seal(packet, now);
            first_new = std::min(first_new, n);
        }
        for (std::uint32_t of = packet.gone; of < packet.count && count < burst_.size(); ++of)
            burst_[count++] = {packet.to,         staging_.bytes(packet, of),
                               packet.length,     packet.from_host_port,
                               of != packet.gone, packet.body_of(of)};
    }
    return count;
}

/// Those staged before `end`.
void DatagramDevice::send_before(std::size_t end, Time now) {
    PathId sealed = StagedPacket::no_path;  // the last path that had one
    while (!blocked_ && staging_.begin() < end && !staging_.empty()) {
        std::size_t n = 0;
        std::size_t first_new = end;
        const std::size_t count = fill_burst(end, now, n, first_new);
        if (count == 0) {
            staging_.dropped_before(n);
            break;
        }
        looks_in_vain_ = 0;  // an answer may come
        const std::size_t taken = port_->send(std::span(burst_).first(count));
        for (std::size_t at = first_new; at < n; ++at) {  // the peer works on them already
            const StagedPacket& packet = staging_[at];
            if (packet.dropped || packet.path == StagedPacket::no_path) continue;
            record(packet, now);
            if (sealed != packet.path && sealed != StagedPacket::no_path)
                reschedule(*paths_[sealed], now);
            sealed = packet.path;
        }
        if (taken != 0) staging_.sent(taken);
        blocked_ = taken < count;
    }
    if (sealed != StagedPacket::no_path) reschedule(*paths_[sealed], now);
}

void DatagramDevice::flush_all(Time now) {
    if (!ack_owed_.empty()) stage_acks(now);
    if (send_lone(now)) return;
    send_before(staging_.end(), now);
    staging_.take_in();  // of what is left: the turn ends
}

}  // namespace via::device::datagram
