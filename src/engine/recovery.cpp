// Media that lose frames: what is under way and must arrive is remembered, and emitted again from
// where its bytes are when the device says that it was lost. Unreliable VIs are not remembered;
// what they receive may have gaps.
#include <cstring>

#include "base/assert.hpp"
#include "engine/inbound.hpp"
#include "engine/mutation.hpp"
#include "engine/outbound.hpp"
#include "memory/copy.hpp"

namespace via::engine {

namespace {

bool is_atomic_request(const FrameRecord& record) {
    return record.header.kind == wire::FrameKind::compare_swap ||
           record.header.kind == wire::FrameKind::fetch_add;
}

}  // namespace

// Sending -----------------------------------------------------------------------------------------

/// Emits what next_frame() found, and remembers it.
void Outbound::emit_recorded(Path& path, const FrameRoom& room) {
    FrameRecord& record = path.under_way.add(room.number);
    note_source(path, record);
    emit_next(path, room);
    const wire::ParseError error =
        wire::parse(room.header, wire::header_length_remote, record.header);
    VIA_ASSERT(error == wire::ParseError::none);
    if (record.header.kind == wire::FrameKind::nak) {  // in place of an answer that was refused
        record.source = FrameRecord::Source::none;
        record.payload_length = 0;
    }
    // What is asked is done by its answer.
    record.completes = next_ == Piece::message && record.header.has(wire::flag::last) &&
                       record.header.kind <= wire::FrameKind::rdma_write;
}

/// The frames behind the first of a run: the same again, further on in their message, or in the
/// memory that the peer reads.
void Outbound::emit_run(Path& path, Vi& vi, const FrameRoom& room) {
    const FrameRecord first = *path.under_way.find(room.number);
    const bool reply = first.source == FrameRecord::Source::region;
    wire::Header header = first.header;
    header.flags &= static_cast<std::uint8_t>(~wire::flag::first);
    const std::uint32_t length = first.payload_length;
    for (std::uint32_t n = 1; n < room.count; ++n) {
        if (!mutated(Mutation::run_in_one_place)) header.offset += length;
        wire::emit(header, room.header + std::size_t{n} * room.stride);
        FrameRecord& record = path.under_way.add(room.number + n);
        record.header = header;
        record.source = first.source;
        record.entry = first.entry;
        record.vi = first.vi;
        record.payload_length = length;
        if (!reply) continue;
        record.address = first.address + std::uint64_t{n} * length;
        record.handle = first.handle;
    }
    const std::uint32_t more = (room.count - 1) * length;
    VIA_ASSERT(more < header.message_length && header.offset < header.message_length - length);
    if (reply) {
        vi.answers.reads[vi.answers.first].done += more;
    } else {
        vi.cut += more;
        vi.gather.take(more, [](const std::byte*, std::size_t) {});
    }
    counters_.add(Counter::frames_sent, room.count - 1);
    counters_.add(Counter::bytes_sent, std::uint64_t{room.count - 1} * length);
}

/// Before the frame is emitted: its state moves on with that.
void Outbound::note_source(Path& path, FrameRecord& record) {
    if (next_ == Piece::notice) {
        const Notice& notice = path.notices.front();
        record.payload_length = notice.payload_length();
        record.answer = notice.answer;
        if (record.payload_length == 0) return;
        record.source = FrameRecord::Source::copy;
        return;
    }
    Vi& vi = *path.active.front();
    record.vi = vi.number();
    if (next_ == Piece::message) {
        record.source = FrameRecord::Source::entry;
        record.entry = vi.send.work.current();
        record.payload_length = next_length_;
    } else if (next_ == Piece::read_reply) {
        const Vi::Read& read = vi.answers.reads[vi.answers.first];
        record.source = read.answer == Vi::Read::Answer::bytes ? FrameRecord::Source::region
                                                               : FrameRecord::Source::word;
        record.address = read.address + read.done;
        record.handle = read.handle;
        record.word = read.word;
        record.payload_length = next_length_;
    }
}

/// The next lost frame of the path, or what takes its place. False: none.
bool Outbound::next_lost(Path& path, FrameShape& shape) {
    while (!path.lost.empty()) {
        const std::uint32_t number = path.lost.front();
        FrameRecord* record = path.under_way.find(number);
        if (record == nullptr || record->delivered) {
            path.lost.pop_front();
            continue;
        }
        if (is_refused(*record))
            refuse(*record);
        else if (!can_repeat(*record))
            skip(*record, !vis_.is_connected(record->vi));
        next_ = Piece::again;
        shape.header_length = wire::header_length(record->header.flags);
        shape.payload_length = record->payload_length;
        shape.pullable = 0;
        shape.must_arrive = shape.again = true;
        shape.number = number;
        return true;
    }
    return false;
}

/// The number must be filled, whatever became of the frame. Of a connection that is over the peer's
/// VI is told: what may follow of it has a gap, and is no fault.
void Outbound::skip(FrameRecord& record, bool over) {
    const std::uint32_t vi = over ? record.header.vi : 0;
    record.header = {};
    record.header.kind = wire::FrameKind::skip;
    record.header.vi = vi;
    record.source = FrameRecord::Source::none;
    record.payload_length = 0;
    record.completes = false;
}

/// An answer whose region is gone. Its connection may have ended for a later read already: this
/// one's fault is the same.
bool Outbound::is_refused(const FrameRecord& record) {
    const Vi* vi = vis_.at(record.vi & 0xFFFF);
    return record.source == FrameRecord::Source::region && !mutated(Mutation::skip_reply_check) &&
           record.payload_length != 0 && vi != nullptr && vi->number() == record.vi &&
           !memory_.check(record.handle, record.address, record.payload_length, vi->attributes.tag,
                          memory::Access::remote_read);
}

/// In its place, so that nothing comes of it when the answer had arrived after all. The reader who
/// did not get it says that the connection is over.
void Outbound::refuse(FrameRecord& record) {
    if (vis_.is_connected(record.vi)) vis_[record.vi & 0xFFFF].answers.refused = true;
    counters_.add(Counter::rdma_refused);
    const std::uint32_t message = record.header.message;
    skip(record, true);
    record.header.kind = wire::FrameKind::nak;
    record.header.message = message;
    record.header.immediate_or_code = static_cast<std::uint32_t>(wire::NakCode::protection);
}

/// Are the frame's bytes still to be had?
bool Outbound::can_repeat(const FrameRecord& record) {
    if (record.source == FrameRecord::Source::none || record.source == FrameRecord::Source::copy ||
        record.source == FrameRecord::Source::word)
        return true;
    if (!vis_.is_connected(record.vi)) return mutated(Mutation::repeat_what_is_gone);
    Vi* vi = vis_.at(record.vi & 0xFFFF);
    if (record.source == FrameRecord::Source::entry) {
        const std::uint32_t oldest = vi->send.work.oldest().position();
        if (static_cast<std::int32_t>(record.entry.position() - oldest) < 0) return false;
        if (is_atomic_request(record) ||
            translations_.reach(walk_of(record), record.payload_length))
            return true;
    } else if (record.payload_length == 0 ||
               translations_.reach(record.handle, record.address, record.payload_length)) {
        return true;
    }
    connections_.break_off_sending(*vi);
    return false;
}

/// The frame's bytes within its descriptor.
queue::ByteWalk Outbound::walk_of(const FrameRecord& record) {
    queue::ByteWalk walk(record.entry, record.header.kind == wire::FrameKind::send ? 0 : 1);
    walk.take(record.header.offset, [](const std::byte*, std::size_t) {});
    return walk;
}

void Outbound::emit_again(Path& path, const FrameRoom& room) {
    FrameRecord& record = *path.under_way.find(path.lost.front());
    path.lost.pop_front();
    record.queued = false;
    counters_.add(Counter::frames_resent);
    wire::emit(record.header, room.header);
    switch (record.source) {
        case FrameRecord::Source::none:
            return;
        case FrameRecord::Source::copy:
            std::memcpy(room.payload, record.copy.data(), record.copy.size());
            return;
        case FrameRecord::Source::region:
            memory::gather(room.payload, reinterpret_cast<const std::byte*>(record.address),
                           record.payload_length, room.stream);
            return;
        case FrameRecord::Source::word:
            if (mutated(Mutation::compute_answer_again))
                record.word = memory::change(record.address, {true, 1});
            std::memcpy(room.payload, &record.word, record.payload_length);
            return;
        case FrameRecord::Source::entry:
            if (is_atomic_request(record)) {
                std::memcpy(room.payload, words_of(record.entry), record.payload_length);
                return;
            }
            queue::ByteWalk walk = walk_of(record);
            fill(room, walk, record.payload_length);
    }
}

void Outbound::on_reaped(PathId id, std::uint32_t number, bool lost) {
    if (!paths_.is_up(id)) return;
    Path& path = paths_[id];
    FrameRecord* record = path.under_way.find(number);
    if (record == nullptr || record->delivered) return;
    if (lost) {
        if (record->queued) return;
        record->queued = true;
        // The oldest first, which the peer waits for: a device may have room for no other.
        std::uint64_t at = path.lost.end();
        path.lost.push_back(number);
        for (; at != path.lost.begin(); --at) {
            if (static_cast<std::int32_t>(number - path.lost[at - 1]) >= 0) break;
            path.lost[at] = path.lost[at - 1];
        }
        path.lost[at] = number;
        paths_.wants_to_send(path);
        return;
    }
    record->delivered = true;
    for (; !path.under_way.empty() && path.under_way.front().delivered; path.under_way.pop()) {
        FrameRecord& oldest = path.under_way.front();
        if (oldest.source == FrameRecord::Source::copy)
            paths_.payloads().give_back(std::move(oldest.copy));
        if (oldest.completes) on_delivered(oldest);
        if (oldest.answer) paths_.answer_taken(path);
    }
}

/// The peer's NIC has all of the message, and everything before it.
void Outbound::on_delivered(const FrameRecord& record) {
    if (!vis_.is_connected(record.vi)) return;
    Vi* vi = vis_.at(record.vi & 0xFFFF);
    if (vi->attributes.reliability != Reliability::delivery) return;
    mark_acknowledged(*vi, record.header.message + 1);
    completions_.drain_sends(*vi);
}

// Receiving ---------------------------------------------------------------------------------------

/// A frame of an unreliable VI, which may lack what came before it: is it the next piece of a
/// message that is whole so far? What is not is dropped (VIPL 4.25).
bool Inbound::fits_in(Vi& vi, const wire::Header& header) {
    const auto ahead = static_cast<std::int32_t>(header.message - vi.expected_message);
    if (ahead < 0) return false;  // overtaken by a later one
    const bool first = header.has(wire::flag::first);
    const std::uint32_t offset = header.has(wire::flag::extent) ? header.offset : 0;
    if (ahead == 0 && vi.placing.active && !first && offset == vi.placing.placed) return true;
    if (vi.placing.active) give_up_placing(vi);
    vi.expected_message = header.message;
    if (first) return true;
    ++vi.expected_message;  // its beginning is lost, and with it the message
    return false;
}

/// Half of a message came. Its receive is for the next one.
void Inbound::give_up_placing(Vi& vi) {
    if (vi.placing.kind == wire::FrameKind::send && !vi.placing.discards)
        vi.receive.work.current() = vi.receive.work.oldest();
    vi.placing.active = vi.placing.discards = false;
}

}  // namespace via::engine
