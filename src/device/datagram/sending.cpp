#include "device/datagram/sending.hpp"

#include <algorithm>

#include "device/datagram/mutation.hpp"
#include "wire/bytes.hpp"
#include "wire/frame.hpp"

namespace via::device::datagram {

// When --------------------------------------------------------------------------------------------

/// A call of the kernel costs as much as fifteen packets in it. A small message does not pay for
/// dividing.
void Sending::send_whole_bursts(const Path& path) {
    if (path.sent.packets_in_flight() == 0) return flush(port_.now());
    const std::size_t staged = staging_.datagrams();
    const std::size_t length = path.datagram_max();
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
    send_before(n, port_.now());
    policy_.burst_left();
}

/// Nobody who sleeps is relied on for the next look.
bool Sending::may_hold() {
    if (polls_.is_asleep() || !staging_.is_filling(held_bytes_max)) return false;
    const std::size_t last = staging_.end() - 1;
    const bool ends_long_message = last != staging_.begin() && staging_[last - 1].count > 1;
    const Path& path = paths_[staging_[last].path];
    return policy_.holds_small(ends_long_message, path.sent_in_a_row,
                               [&] { return port_.now() - path.probe_base; });
}

bool Sending::may_hold_rest() {
    if (!policy_.may_hold_rest() || polls_.is_asleep() || blocked_ || staging_.empty())
        return false;
    const StagedPacket& last = staging_.last();
    return last.takes_more() && last.frames != 0 && last.transmitted == last.length &&
           SendPolicy::holds_rest(staging_.datagrams(), paths_[last.path].sent.in_flight());
}

bool Sending::rest_waits_on() {
    if (!recovery_.may_have_reaped() || staging_.empty() || blocked_ || outbox_.has_due_acks())
        return false;
    const StagedPacket& last = staging_.last();
    return last.waited && last.takes_more() &&
           SendPolicy::keeps_rest(paths_[last.path].sent.in_flight());
}

void Sending::flush_posted() {
    if (outbox_.empty() && parts_.empty()) return;
    policy_.handed_over();
    if (may_hold_rest()) {
        staging_.last().waited = true;
        staging_.take_in();  // the turn ends
    } else if (!may_hold()) {
        flush(port_.now());
    } else if (staging_.end() - staging_.begin() > 1) {
        send_before(staging_.end() - 1, port_.now());  // full ones
        staging_.take_in();
    }
}

void Sending::flush_all(Time now) {
    if (outbox_.owes_acks()) outbox_.acknowledge(now);
    if (send_lone(now)) return;
    send_before(staging_.end(), now);
    if (!staging_.empty()) staging_.take_in();  // of what is left: the turn ends
}

// Numbers and seals -------------------------------------------------------------------------------

/// Does it hold a frame that asks for a connection, accepts one or belongs to one?
bool Sending::speaks_of_a_connection(std::span<const std::byte> packet) {
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
void Sending::seal(StagedPacket& packet, Time now) {
    Path& path = paths_[packet.path];
    if (!path.carried && speaks_of_a_connection({staging_.bytes(packet), packet.length})) {
        path.carried = path.first->carried = true;
        path.sent.make_room();
    }
    // One that left alone may be lost, and nobody would send it again.
    if (path.acks.is_unsure() && packet.wants_ack && packet.named_below == 0 && !packet.alone)
        outbox_.append_ack(path, packet, now);
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

/// Anybody has many paths without a connection: those get no more.
bool Sending::remember_more(Path& path) {
    const std::uint32_t max = path.sent.remembered_max();
    if (!path.carried || max == packets_remembered_max || !paths_.widen(path, max * packet_cost))
        return false;
    path.sent.remember(2 * max);
    return true;
}

/// What is to be known of a sealed packet until it is acknowledged.
void Sending::record(const StagedPacket& packet, Time now) {
    Path& path = paths_[packet.path];
    path.sealed_packets -= packet.count;
    path.staged_packets -= packet.count;
    for (std::uint32_t n = 0; n < packet.count; ++n) record_one(path, packet, n, now);
    if (!packet.wants_ack) return;
    path.staged_bytes -= std::uint64_t{packet.count} * packet.length;
    path.counts.bytes_sent += std::uint64_t{packet.count} * packet.length;
    path.staged_room -= std::uint64_t{packet.count} * room_of(packet.length);
    path.pacer.sent(std::uint64_t{packet.count} * packet.length, now);
    // Of rails the first that is not acknowledged counts: by another one there is a way round.
    if (!path.has_other_rails() || path.sent.packets_in_flight() <= packet.count)
        path.probe_base = now;
    path.sent_in_a_row = packet.count == 1 ? path.sent_in_a_row + 1 : 0;
}

/// The n-th of the run.
void Sending::record_one(Path& path, const StagedPacket& packet, std::uint32_t n, Time now) {
    const std::uint64_t number = path.sent.next_number();
    for (std::uint32_t at = 0; at < packet.frames; ++at) {
        const std::uint32_t frame = staging_.frame(packet, at) + n;
        path.sent.add_frame(frame);
        path.first->frames.sent(frame, path.key_of(number));
    }
    if (packet.part != StagedPacket::no_part)
        path.first->parts->sent(packet.part, path.key_of(number));
    path.sent.push(now, packet.length, packet.wants_ack, packet.named_below, packet.length_probe,
                   packet.asks_only);
    while (!packet.wants_ack && path.sent.is_crowded() && path.sent.packets_in_flight() != 0 &&
           !remember_more(path))
        recovery_.give_up_oldest(path);
}

// Bursts ------------------------------------------------------------------------------------------

/// Fills burst_ with what is staged before `end`, sealed. `n`: behind the last that was looked at;
/// `first_new`: the first that was not sealed yet. Returns how many datagrams.
std::size_t Sending::fill_burst(std::size_t end, Time now, std::size_t& n, std::size_t& first_new) {
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
void Sending::send_before(std::size_t end, Time now) {
    PathId sealed = StagedPacket::no_path;  // the last path that had one
    while (!blocked_ && staging_.begin() < end && !staging_.empty()) {
        std::size_t n = 0;
        std::size_t first_new = end;
        const std::size_t count = fill_burst(end, now, n, first_new);
        if (count == 0) {
            staging_.dropped_before(n);
            break;
        }
        polls_.expect_news();  // an answer may come
        const std::size_t taken = port_.send(std::span(burst_).first(count));
        for (std::size_t at = first_new; at < n; ++at) {  // the peer works on them already
            const StagedPacket& packet = staging_[at];
            if (packet.dropped || packet.path == StagedPacket::no_path) continue;
            record(packet, now);
            if (sealed != packet.path && sealed != StagedPacket::no_path)
                paths_.reschedule(paths_[sealed], now);
            sealed = packet.path;
        }
        if (taken != 0) staging_.sent(taken);
        blocked_ = taken < count;
    }
    if (sealed != StagedPacket::no_path) paths_.reschedule(paths_[sealed], now);
}

}  // namespace via::device::datagram
