#include "device/datagram/receiving.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/datagram/mutation.hpp"
#include "wire/bytes.hpp"
#include "wire/frame.hpp"

namespace via::device::datagram {

Receiving::Receiving(Port& port, Paths& paths, Outbox& outbox, Recovery& recovery,
                     const Polls& polls, Totals& totals)
    : port_(port),
      paths_(paths),
      shares_(paths.shares()),
      outbox_(outbox),
      recovery_(recovery),
      polls_(polls),
      totals_(totals) {
    ready_.make_room(64);
}

Receiving::~Receiving() {
    const auto let_go = [this](const FrameOrder::Held& frame) { shares_.let_go(frame); };
    for (std::uint64_t n = ready_.begin(); n != ready_.end(); ++n)
        if (ready_[n].frame.share != nullptr) let_go(ready_[n].frame);
    std::for_each(lent_kept_.begin(), lent_kept_.end(), let_go);
    paths_.for_each([&](Path& path) { path.order.clear(let_go); });
}

// A packet ----------------------------------------------------------------------------------------

bool Receiving::read(std::span<const std::byte> packet) {
    frames_.clear();
    has_ack_ = wants_ack_ = false;
    part_ = {};
    wire::ChunkReader reader(packet);
    while (reader.next(chunk_)) {
        if (chunk_.kind == wire::ChunkKind::ack) {
            if (std::exchange(has_ack_, true)) return false;
        } else if (chunk_.kind == wire::ChunkKind::frame) {
            frames_.push_back({chunk_.frame, chunk_.frame_number, chunk_.reliable});
        } else if (chunk_.kind == wire::ChunkKind::part) {
            if (!part_.bytes.empty()) return false;
            part_ = {chunk_.frame_number, chunk_.at, chunk_.whole, chunk_.frame};
        }
        wants_ack_ = wants_ack_ || (chunk_.kind != wire::ChunkKind::ack &&
                                    chunk_.kind != wire::ChunkKind::padding);
    }
    return !reader.bad();
}

bool Receiving::take(Path& path, const Incoming& in, Time now) {
    const std::uint64_t number = wire::ChunkReader({in.bytes, in.length}).packet_number();
    const bool seen = path.received.seen(number);
    if (seen && !mutated(Mutation::skip_packet_duplicate_check)) {
        ++totals_.duplicate_packets;
        return false;
    }
    path.heard(now);
    Path& first = *path.first;
    sort_frames(first);
    if (!take_part(first) || !keep_early(first, in)) {
        ++totals_.no_room;
        if (mutated(Mutation::ack_what_was_dropped)) path.received.add(number);
        place_frames(first, in, false);
        return true;
    }
    const bool gap = !seen && path.received.add(number);
    if (path.received.largest() == number) path.largest_came = polls_.came();
    ++path.counts.packets_received;
    path.replaced = false;
    place_frames(first, in, true);
    if (!wants_ack_) return true;
    if (!path.owes_ack()) paths_.look_at_latest(path, now + ack_delay_max);
    const bool more =
        !frames_.empty() && wire::goes_on(frames_.back().bytes.data(), frames_.back().bytes.size());
    note_arrival(path, in.length, more, gap, now);
    return true;
}

/// Of a packet that wants an acknowledgement. `more`: the message goes on.
void Receiving::note_arrival(Path& path, std::uint32_t length, bool more, bool gap, Time now) {
    const bool first = !path.owes_ack();
    if (first) outbox_.owe_ack(path);
    path.sent_in_a_row = 0;
    path.acks.arrived({now, polls_.number(), room_of(length), first, more, gap});
    path.acks.on_room(port_.receive_room());
}

// Its frames --------------------------------------------------------------------------------------

/// Keeps each frame that comes before its turn. False: it cannot, or one is too far ahead.
bool Receiving::keep_early(Path& path, const Incoming& in) {
    std::uint32_t next = path.order.next();
    for (const FrameChunk& frame : frames_) {
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
bool Receiving::has_place_for(Path& path, std::uint32_t frame) {
    const std::size_t cost = path.order.cost_of_place(frame);
    if (cost != 0 && !shares_.widen(*path.share, cost)) return false;
    path.order.make_place(frame);
    return true;
}

/// Those that were kept and have no place now.
void Receiving::drop_early() {
    early_.clear([this](const FrameOrder::Held& frame) { shares_.let_go(frame); });
}

void Receiving::make_ready(Path& path, const FrameOrder::Held& frame) {
    ++path.ready;
    Ready& ready = ready_.add();
    ready.path = path.id;
    ready.frame = frame;
    ready.count = 1;
}

/// The frame whose turn it is, and those behind it that wait.
void Receiving::take_next(Path& path, const FrameOrder::Held& frame) {
    if (path.order.parts() != nullptr) shares_.let_go(path.order.end_parts());  // it came whole
    make_ready(path, frame);
    path.order.advance();
    if (path.order.held() == 0) return;
    FrameOrder::Held held;
    while (path.order.take(held)) make_ready(path, held);
}

/// In the order of numbers, whatever was put into the packet first; else as they stand there.
void Receiving::sort_frames(const Path& path) {
    const std::uint32_t next = path.order.next();
    const auto is_before = [next](const FrameChunk& a, const FrameChunk& b) {
        return a.number != b.number ? a.number - next < b.number - next
                                    : a.bytes.data() < b.bytes.data();
    };
    if (!std::is_sorted(frames_.begin(), frames_.end(), is_before))
        std::sort(frames_.begin(), frames_.end(), is_before);
}

/// `whole`: otherwise nothing but frames whose turn it is: so that a packet with the one that all
/// wait for helps, even when there is no room for its others.
void Receiving::place_frames(Path& path, const Incoming& in, bool whole) {
    for (const FrameChunk& frame : frames_) {
        if (!whole && (!frame.reliable || path.order.place(frame.number, path.order.next()) !=
                                              FrameOrder::Place::next))
            continue;
        const FrameOrder::Held here{frame.bytes.data(),
                                    static_cast<std::uint32_t>(frame.bytes.size()), in.buffer};
        if (!frame.reliable || mutated(Mutation::ignore_order)) {
            make_ready(path, here);
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
                if (mutated(Mutation::skip_frame_duplicate_check)) make_ready(path, here);
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

/// Puts the packet's part, if it has one, to those that came. False: it is of a frame whose turn it
/// is not, of which nobody sends parts, or its peer has too many such frames on other paths.
bool Receiving::take_part(Path& path) {
    if (part_.bytes.empty()) return true;
    switch (path.order.place(part_.number, path.order.next())) {
        case FrameOrder::Place::next:
            break;
        case FrameOrder::Place::duplicate:
            ++totals_.duplicate_frames;
            return true;
        case FrameOrder::Place::ahead:
        case FrameOrder::Place::too_far:
            return false;
    }
    FrameOrder& order = path.order;
    if (order.parts() != nullptr && order.parts_length() != part_.whole)
        shares_.let_go(order.end_parts());  // a liar's
    if (order.parts() == nullptr) {
        FrameOrder::Held frame;
        frame.length = part_.whole;
        std::byte* const bytes = shares_.make_room_for_parts(*path.share, frame);
        if (bytes == nullptr) return false;
        order.begin_parts(frame, bytes);
    }
    if (!order.parts()->put(part_.at, part_.bytes)) ++totals_.duplicate_frames;
    const bool is_last = part_.at + part_.bytes.size() == part_.whole;
    if (order.parts()->all() || (is_last && mutated(Mutation::end_at_the_last_part)))
        take_next(path, order.end_parts());
    return true;
}

// Frames to the engine ----------------------------------------------------------------------------

void Receiving::deliver(const Ready& ready, Frame& frame) {
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
void Receiving::part(Ready& ready, Frame& frame, std::uint32_t count) {
    frame.count = count;
    ready.count -= count;
    if (!mutated(Mutation::part_run_in_one_place)) ready.payloads += count;
    ready.frame.bytes = *ready.payloads - frame.length;
}

std::size_t Receiving::hand_up(std::span<Frame> frames) {
    std::size_t count = 0;
    for (std::size_t left = frames.size(); left != 0 && !ready_.empty(); ++count) {
        Ready& ready = ready_.front();
        Path& path = paths_[ready.path];
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
    return count;
}

void Receiving::release() {
    for (const FrameOrder::Held& kept : lent_kept_) shares_.let_go(kept);
    lent_kept_.clear();
}

void Receiving::drop(Path& path) {
    ready_.filter([&](const Ready& ready) {
        if (ready.path != path.id) return true;
        if (ready.frame.share != nullptr) shares_.let_go(ready.frame);
        return false;
    });
    path.ready = 0;
}

}  // namespace via::device::datagram
