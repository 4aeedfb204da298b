// The device's way in: packets from the port, their acknowledgements and frames.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "device/datagram/datagram_device.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/search.hpp"
#include "wire/bytes.hpp"
#include "wire/frame.hpp"

namespace via::device::datagram {

/// A look may be a system call. Where many found nothing, others may have more to do (a NIC over
/// shared memory and the network): only some are made until something is sent or heard of.
bool DatagramDevice::is_worth_a_look() {
    if (looks_in_vain_ < looks_in_vain_max || !ack_owed_.empty()) return true;
    return ++looks_left_out_ % looks_left_out_max == 0;
}

/// Not before when did come what a look found, the one before which was at `before`? Behind an
/// absence what waited is read by many looks: until one finds nothing, or they take as long as the
/// absence did. Who cannot keep up is no absent.
Time DatagramDevice::came_since(Time before) {
    if (const Time told = port_->came(); !told.is_never()) return told;
    if (asleep_) return looked_at_;  // whom it wakes
    if (looked_at_ - before >= absence_least) {
        left_ = before;
        returned_ = looked_at_;
    } else if (!left_.is_never() && looked_at_ - returned_ > returned_ - left_) {
        left_ = Time::never();
    }
    return left_.is_never() ? looked_at_ : left_;
}

void DatagramDevice::poll() {
    VIA_ASSERT(ready_.empty());
    settle();
    if (!is_worth_a_look()) {
        looked_at_ = port_->now();
        return;
    }
    if (burst_taken_) port_->release();
    const Time before = looked_at_;
    const std::size_t count = port_->receive(incoming_);
    burst_taken_ = count != 0;
    looks_in_vain_ = burst_taken_ ? 0 : looks_in_vain_ + 1;
    ++look_;
    if (hands_over_ != 0)  // who posted many does so again, though not each time
        hands_over_before_ = std::max(std::exchange(hands_over_, 0), hands_over_before_ / 2);
    if (!burst_taken_) {
        left_ = Time::never();
        looked_at_ = port_->moment();
        return;
    }
    looked_at_ = port_->now();
    came_ = came_since(before);
    for (std::size_t n = 0; n < count; ++n) {
        if (Path* const path = take_common(incoming_[n], looked_at_)) {
            n += take_run(*path, n, count);
            continue;
        }
        settle();
        on_datagram(incoming_[n], looked_at_);
    }
    if (!ready_.empty()) return;
    port_->release();
    burst_taken_ = false;
}

void DatagramDevice::on_datagram(const Incoming& in, Time now) {
    ++totals_.datagrams;
    wire::PacketPrefix prefix;
    wire::PacketError error = in.authentic
                                  ? wire::parse_authentic_prefix({in.bytes, in.length}, prefix)
                                  : wire::parse_prefix({in.bytes, in.length}, prefix);
    if (error == wire::PacketError::checksum && mutated(Mutation::forget_checksum)) {
        error = wire::PacketError::none;
        prefix.kind = wire::get<wire::PacketKind>(in.bytes + 5);
        prefix.connection = wire::get<std::uint64_t>(in.bytes + 8);
    }
    switch (error) {
        case wire::PacketError::none:
            break;
        case wire::PacketError::truncated:
            ++totals_.truncated;
            return;
        case wire::PacketError::checksum:
            ++totals_.checksum;
            return;
        case wire::PacketError::version:
            ++totals_.version;
            return answer_stranger(in, prefix.connection, wire::PacketKind::unsupported, now);
        case wire::PacketError::kind:
            ++totals_.kind;
            return;
        case wire::PacketError::contents:
            ++totals_.contents;
            return;
    }
    switch (prefix.kind) {
        case wire::PacketKind::query:
            return on_query(in, prefix.connection, now);
        case wire::PacketKind::answer:
            return on_answer(in, prefix.connection, now);
        case wire::PacketKind::hello:
            return on_hello(in, prefix.connection, now);
        case wire::PacketKind::retry:
            return on_retry(in, prefix.connection, now);
        case wire::PacketKind::welcome:
            return on_welcome(in, prefix.connection, now);
        case wire::PacketKind::refuse:
            return on_refuse(in, prefix.connection, now);
        case wire::PacketKind::unsupported:
            return on_unsupported(in, prefix.connection);
        case wire::PacketKind::data:
            return on_data(in, prefix.connection, now);
        case wire::PacketKind::close:
            return on_close(in, prefix.connection, now);
    }
}

// Data packets ------------------------------------------------------------------------------------

/// All chunks, before anything of them is taken. False: they are not what anybody sends.
bool DatagramDevice::read_chunks(std::span<const std::byte> packet) {
    chunk_frames_.clear();
    chunk_has_ack_ = chunk_wants_ack_ = false;
    chunk_part_ = {};
    wire::ChunkReader reader(packet);
    while (reader.next(chunk_)) {
        if (chunk_.kind == wire::ChunkKind::ack) {
            if (std::exchange(chunk_has_ack_, true)) return false;
        } else if (chunk_.kind == wire::ChunkKind::frame) {
            chunk_frames_.push_back({chunk_.frame, chunk_.frame_number, chunk_.reliable});
        } else if (chunk_.kind == wire::ChunkKind::part) {
            if (!chunk_part_.bytes.empty()) return false;
            chunk_part_ = {chunk_.frame_number, chunk_.at, chunk_.whole, chunk_.frame};
        }
        chunk_wants_ack_ = chunk_wants_ack_ || (chunk_.kind != wire::ChunkKind::ack &&
                                                chunk_.kind != wire::ChunkKind::padding);
    }
    return !reader.bad();
}

/// Keeps each frame that comes before its turn. False: it cannot, or one is too far ahead.
bool DatagramDevice::keep_early(Path& path, const Incoming& in) {
    std::uint32_t next = path.order.next();
    for (const FrameChunk& frame : chunk_frames_) {
        if (!frame.reliable) continue;
        const FrameOrder::Place place = path.order.place(frame.number, next);
        if (place == FrameOrder::Place::duplicate) continue;
        if (place == FrameOrder::Place::next) {
            do {
                ++next;
            } while (path.order.is_held(next));
            continue;
        }
        FrameOrder::Held early{frame.bytes.data(), static_cast<std::uint32_t>(frame.bytes.size()),
                               in.buffer};
        if (place == FrameOrder::Place::too_far || !has_place_for(path, frame.number) ||
            !shares_.keep(*path.share, early)) {
            drop_early();
            return false;
        }
        early_.put(frame.number, early);
    }
    return true;
}

/// The peer chooses how far ahead a frame comes, and so how long the table is.
bool DatagramDevice::has_place_for(Path& path, std::uint32_t frame) {
    const std::size_t cost = path.order.cost_of_place(frame);
    if (cost != 0 && !shares_.widen(*path.share, cost)) return false;
    path.order.make_place(frame);
    return true;
}

/// Those that were kept and have no place now.
void DatagramDevice::drop_early() {
    early_.clear([this](const FrameOrder::Held& frame) { shares_.let_go(frame); });
}

void DatagramDevice::hand_up(Path& path, const FrameOrder::Held& frame) {
    ++path.ready;
    Ready& ready = ready_.add();
    ready.path = path.id;
    ready.frame = frame;
    ready.count = 1;
}

/// The frame whose turn it is, and those behind it that wait.
void DatagramDevice::take_next(Path& path, const FrameOrder::Held& frame) {
    if (path.order.parts() != nullptr) shares_.let_go(path.order.end_parts());  // it came whole
    hand_up(path, frame);
    path.order.advance();
    if (path.order.held() == 0) return;
    FrameOrder::Held held;
    while (path.order.take(held)) hand_up(path, held);
}

/// In the order of numbers, whatever was put into the packet first; else as they stand there.
void DatagramDevice::sort_frames(const Path& path) {
    const std::uint32_t next = path.order.next();
    const auto is_before = [next](const FrameChunk& a, const FrameChunk& b) {
        return a.number != b.number ? a.number - next < b.number - next
                                    : a.bytes.data() < b.bytes.data();
    };
    if (!std::is_sorted(chunk_frames_.begin(), chunk_frames_.end(), is_before))
        std::sort(chunk_frames_.begin(), chunk_frames_.end(), is_before);
}

/// `whole`: otherwise nothing but frames whose turn it is: so that a packet with the one that all
/// wait for helps, even when there is no room for its others.
void DatagramDevice::place_frames(Path& path, const Incoming& in, bool whole) {
    for (const FrameChunk& frame : chunk_frames_) {
        if (!whole && (!frame.reliable || path.order.place(frame.number, path.order.next()) !=
                                              FrameOrder::Place::next))
            continue;
        const FrameOrder::Held here{frame.bytes.data(),
                                    static_cast<std::uint32_t>(frame.bytes.size()), in.buffer};
        if (!frame.reliable || mutated(Mutation::ignore_order)) {
            hand_up(path, here);
            continue;
        }
        switch (path.order.place(frame.number, path.order.next())) {
            case FrameOrder::Place::next:
                take_next(path, here);
                break;
            case FrameOrder::Place::ahead:
                path.order.hold(frame.number, early_.take(frame.number));
                break;
            case FrameOrder::Place::duplicate:
                ++totals_.duplicate_frames;
                if (mutated(Mutation::skip_frame_duplicate_check)) hand_up(path, here);
                break;
            case FrameOrder::Place::too_far:
                break;  // keep_early() has refused it
        }
    }
    if (!early_.empty()) drop_early();
    // Not before: the packet's early frames have their places in the table.
    if (path.order.has_memory_to_give()) [[unlikely]] {
        shares_.narrow(*path.share, path.order.bytes_charged());
        path.order.give_memory_back();
    }
}

void DatagramDevice::on_data(const Incoming& in, std::uint64_t connection, Time now) {
    Path* path = path_at(identifiers_.find(connection));
    if (path == nullptr && mutated(Mutation::accept_any_connection))
        for (const auto& any : paths_)
            if (any && any->stage == Path::Stage::up && any->peer == in.from) path = any.get();
    if (path == nullptr) {
        ++totals_.unknown_connection;
        return answer_stranger(in, connection, wire::PacketKind::close, now);
    }
    if (path->peer != in.from && !mutated(Mutation::skip_address_check)) {
        ++totals_.wrong_address;
        return;
    }
    if (path->stage != Path::Stage::up) return;  // its welcome was lost; this will come again
    if (!read_chunks({in.bytes, in.length})) {
        ++totals_.contents;
        return;
    }
    const std::uint64_t number = wire::ChunkReader({in.bytes, in.length}).packet_number();
    const bool seen = path->received.seen(number);
    if (seen && !mutated(Mutation::skip_packet_duplicate_check)) {
        ++totals_.duplicate_packets;
        return;
    }
    sort_frames(*path);
    if (!take_part(*path) || !keep_early(*path, in)) {
        ++totals_.no_room;
        if (mutated(Mutation::ack_what_was_dropped)) path->received.add(number);
        path->last_heard = now;
        path->suspected_until = path->over_since = Time::never();
        place_frames(*path, in, false);
        if (chunk_has_ack_) on_ack(*path, chunk_.ack, now);
        return;
    }
    const bool gap = !seen && path->received.add(number);
    if (path->received.largest() == number) path->largest_came = came_;
    ++path->counts.packets_received;
    path->last_heard = now;
    path->suspected_until = path->over_since = Time::never();
    path->replaced = false;
    place_frames(*path, in, true);
    if (chunk_wants_ack_) {
        if (!path->owes_ack()) deadlines_.at_latest(path->id, now + ack_delay_max);
        const bool more =
            !chunk_frames_.empty() &&
            wire::goes_on(chunk_frames_.back().bytes.data(), chunk_frames_.back().bytes.size());
        note_arrival(*path, in.length, more, gap, now);
    }
    if (chunk_has_ack_) on_ack(*path, chunk_.ack, now);
}

/// Of a packet that wants an acknowledgement. `more`: the message goes on.
void DatagramDevice::note_arrival(Path& path, std::uint32_t length, bool more, bool gap, Time now) {
    path.sent_in_a_row = 0;
    if (!path.owes_ack()) {
        path.ack_since = now;
        ack_owed_.push_back(path);
    }
    path.ack_news = now;
    if (path.rest_awaited && path.arrival_look != look_)
        path.rest_is_near = look_ - path.arrival_look <= looks_for_the_rest;
    path.rest_awaited = more;
    path.arrival_look = look_;
    path.ack_look = look_ + (more && path.rest_is_near ? looks_for_the_rest : looks_for_an_answer);
    path.ack_bytes += room_of(length);
    path.ack_now = path.ack_now || gap;
    acknowledge_in_time(path);
}

void DatagramDevice::acknowledge_in_time(Path& path) const {
    if (path.ack_bytes >= port_->receive_room() / ack_room_divisor) path.ack_now = true;
}

/// Nobody answered, and looks brought nothing more: acknowledgements leave alone.
void DatagramDevice::send_late_acks(Time now) {
    bool any = false;
    for (Path* path = ack_owed_.front(); path != nullptr; path = ack_owed_.next(*path)) {
        if (look_ < path->ack_look && now - path->ack_news < looks_take_max) continue;
        path->ack_now = any = true;
    }
    if (any) flush(now);
}

// Acknowledgements --------------------------------------------------------------------------------

void DatagramDevice::report(Path& path, std::uint32_t frame, bool lost) {
    if (lost && mutated(Mutation::never_report_loss)) return;
    may_have_reaped_ = true;
    Reaped& reaped = reaped_.add();
    reaped.path = path.id;
    reaped.number = frame;
    reaped.lost = lost;
    if (!lost && mutated(Mutation::double_report)) reaped_.push_back({path.id, frame, lost});
}

void DatagramDevice::on_ack(Path& path, const wire::Ack& ack, Time now) {
    if (!path.sent.plausible(ack)) return condemn(path.id, "acknowledges what was not sent");
    hear(path, ack, moment_of(path, now));
}

DatagramDevice::AckMoment DatagramDevice::moment_of(const Path& path, Time now) const {
    return {now, now - came_, path.sent.in_flight(), path.sent.next_number()};
}

/// Which packets came, and so which frames; then what that tells. False: nothing new.
bool DatagramDevice::hear(Path& path, const wire::Ack& ack, const AckMoment& moment) {
    const Time now = moment.came;
    News news;
    path.sent.acknowledge(ack, [&](std::uint64_t number, const SentPacket& packet, bool was_lost) {
        for (std::uint32_t n = 0; n < packet.frames; ++n)
            if (path.frames.arrived(path.sent.frame(packet, n)))
                report(path, path.sent.frame(packet, n), false);
        if (packet.frames == 0 && path.parts != nullptr) path.parts->arrived(number);
        if (packet.named_below != 0) {
            path.received.known_below(packet.named_below);
            if (packet.named_below >= path.ack_unsure) path.ack_unsure = 0;
        }
        if (packet.length > wire::packet_length_min) path.long_timeouts = 0;
        if (was_lost) {
            ++path.counts.packets_spurious;
            const std::uint64_t distance = ack.largest - number + 1;
            path.reordering = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(distance, path.reordering, reordering_greatest));
            path.reordering_since = now;
            return;
        }
        news.bytes += packet.length;
        ++news.packets;
        news.traffic = news.traffic || !packet.asks_only;
        if (packet.length_probe) news.longer = path.length.arrived(packet.length) || news.longer;
        if (number != ack.largest) return;
        news.sampled = true;
        news.sample = now - packet.sent;
        path.newest_arrived = packet.sent;
    });
    if (path.parts != nullptr) end_parts_that_arrived(path);
    if (news.packets == 0) return false;
    path.timeouts = 0;
    path.probe_credit = 0;
    if (news.sampled) path.round_trip.add(news.sample, microseconds(ack.delay), moment.late, now);
    conclude(path, news, moment);
    return true;
}

/// What an acknowledgement tells of the way: its length, its room, what was lost on it.
void DatagramDevice::conclude(Path& path, const News& news, const AckMoment& moment) {
    const Time now = moment.came;
    Window::Acknowledged seen;
    seen.bytes = news.bytes;
    seen.packets = news.packets;
    seen.largest = path.sent.largest_acknowledged();
    seen.next = moment.next;
    seen.in_flight = moment.in_flight;
    seen.held_back = path.held_back;
    seen.sampled = news.sampled;
    seen.round_trip = path.round_trip.latest();
    seen.least = path.round_trip.least();
    path.held_back = false;
    path.window.on_ack(seen);
    if (news.longer) length_changed(path);
    detect_losses(path, now);
    path.sent.retire();
    // After one late answer the mean is too long for many more, and pace would be slow for nothing.
    path.pacer.set_pace(path.window.bytes(),
                        std::min(path.round_trip.smoothed(), path.round_trip.latest()),
                        path.datagram_max());
    if (news.traffic) {  // an idle path probes nothing
        if (now >= path.length_raised + length_raise_interval) raise_length(path, now);
        stage_length_probe(path, now);
    }
    reschedule(path, now);
}

void DatagramDevice::detect_losses(Path& path, Time now) {
    if (path.reordering > reordering_least && now - path.reordering_since >= seconds(1)) {
        --path.reordering;
        path.reordering_since = now;
    }
    std::uint32_t lost = 0;
    bool long_lost = false;
    path.loss_time = path.sent.detect_lost(
        now, path.loss_delay(), path.reordering,
        [&](std::uint64_t number, const SentPacket& packet) {
            on_lost(path, number, packet);
            if (packet.length_probe) return;
            ++lost;
            long_lost =
                long_lost || (packet.length > wire::packet_length_min && number >= path.long_mark);
        });
    if (lost == 0) return;
    path.counts.packets_lost += lost;
    path.window.on_lost(lost);
    if (!long_lost) return;
    path.long_mark = path.sent.next_number();  // once in a round trip
    if (++path.long_timeouts >= long_timeouts_max) fall_back(path, 0);
}

/// What it carried is to be sent again.
void DatagramDevice::on_lost(Path& path, std::uint64_t number, const SentPacket& packet) {
    if (packet.length_probe) return path.length.lost(packet.length);
    for (std::uint32_t n = 0; n < packet.frames; ++n)
        lose_frame(path, path.sent.frame(packet, n), number);
    if (packet.frames == 0 && path.parts != nullptr && path.parts->lost(number))
        path.note_stuck(port_->now());
}

/// Unless it was sent again since, or had come.
void DatagramDevice::lose_frame(Path& path, std::uint32_t frame, std::uint64_t packet) {
    if (!path.frames.lost(frame, packet)) return;
    report(path, frame, true);
    if (frame == path.frames.oldest()) path.note_stuck(port_->now());
}

void DatagramDevice::length_changed(Path& path) {
    path.window.set_datagram_max(path.datagram_max());
    PathEvent event{PathEventKind::changed, path.id};
    event.payload_max = path.payload_max();
    push_event(event);
}

/// Long packets do not go through: what every way carries does. `hint`: what may be tried first;
/// 0: what the network said.
void DatagramDevice::fall_back(Path& path, std::uint32_t hint) {
    const std::uint32_t told = std::exchange(path.length_hint, 0);
    if (hint == 0) hint = told;
    path.long_timeouts = 0;
    path.long_mark = path.sent.next_number();
    if (path.datagram_max() <= wire::packet_length_min) return;
    path.length.begin(wire::packet_length_min, path.length.limit(), hint);
    length_changed(path);
}

/// The peer's offer says what its interface carried when the path came up; what both and the way
/// carry now a probe tells.
void DatagramDevice::raise_length(Path& path, Time now) {
    path.length_raised = now;
    path.length.raise(our_offer().datagram_max);
}

/// That it carries less shows by what does not go out.
void DatagramDevice::look_at_interface(Time now) {
    const std::uint32_t before = std::exchange(interface_max_, port_->datagram_max());
    if (interface_max_ <= before) return;
    for (const auto& path : paths_)
        if (path && path->stage == Path::Stage::up) raise_length(*path, now);
}

// Frames to the engine ----------------------------------------------------------------------------

void DatagramDevice::deliver(const Ready& ready, Frame& frame) {
    frame.path = ready.path;
    if (wire::is_whole_send(ready.frame.bytes, ready.frame.length)) {
        frame.length = wire::header_length_base;
        frame.payload = ready.frame.bytes + wire::header_length_base;
        frame.payload_length = ready.frame.length - wire::header_length_base;
        std::memcpy(frame.bytes, ready.frame.bytes, wire::header_length_base);
        return;
    }
    if (ready.frame.length <= Frame::inline_max) {
        frame.length = ready.frame.length;
        frame.payload = nullptr;
        frame.payload_length = 0;
        std::memcpy(frame.bytes, ready.frame.bytes, ready.frame.length);
        return;
    }
    frame.length = wire::header_length(wire::get<std::uint8_t>(ready.frame.bytes + 1));
    frame.payload = ready.frame.bytes + frame.length;
    frame.payload_length = ready.frame.length - frame.length;
    frame.count = ready.count;
    frame.payloads = ready.payloads;
    std::memcpy(frame.bytes, ready.frame.bytes, Path::frame_header_max);  // at most that long
}

/// Hands up only the first `count` of a run.
void DatagramDevice::part(Ready& ready, Frame& frame, std::uint32_t count) {
    frame.count = count;
    ready.count -= count;
    if (!mutated(Mutation::part_run_in_one_place)) ready.payloads += count;
    ready.frame.bytes = *ready.payloads - frame.length;
}

std::size_t DatagramDevice::receive(std::span<Frame> frames) {
    VIA_ASSERT(lent_kept_.empty());  // the frames of the last call were given back
    const bool look = !looked_;
    looked_ = false;
    if (look && ready_.empty()) poll();
    std::size_t count = 0;
    for (std::size_t left = frames.size(); left != 0 && !ready_.empty(); ++count) {
        Ready& ready = ready_.front();
        Path& path = *paths_[ready.path];
        if (!path.announced) break;  // its event comes first
        deliver(ready, frames[count]);
        if (ready.count > left) {
            part(ready, frames[count], static_cast<std::uint32_t>(left));
            return count + 1;
        }
        left -= ready.count;
        if (ready.frame.share != nullptr) lent_kept_.push_back(ready.frame);
        --path.ready;
        ready_.pop_front();
    }
    if (!ack_owed_.empty()) send_late_acks(looked_at_);
    return count;
}

bool DatagramDevice::release() {
    for (const FrameOrder::Held& kept : lent_kept_) shares_.let_go(kept);
    lent_kept_.clear();
    if (burst_taken_ && ready_.empty()) {
        port_->release();
        burst_taken_ = false;
    }
    return has_due_acks();
}

}  // namespace via::device::datagram
