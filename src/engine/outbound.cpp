#include "engine/outbound.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "engine/mutation.hpp"
#include "memory/copy.hpp"

namespace via::engine {

Outbound::Outbound(const NicLimits& limits, const memory::MemoryTable& memory, Counters& counters,
                   const Translations& translations, const ViTable& vis, Paths& paths,
                   Completions& completions, Segments& segments, Credits& credits,
                   Connections& connections)
    : limits_(limits),
      memory_(memory),
      counters_(counters),
      translations_(translations),
      vis_(vis),
      paths_(paths),
      completions_(completions),
      segments_(segments),
      credits_(credits),
      connections_(connections) {
    VIA_ASSERT(limits.reads_in_flight_max <= Vi::reads_max);
    emitted_.reserve(limits.turn_frames_max);
}

bool Outbound::has_to_send(const Vi& vi) {
    return vi.cut != 0 || vi.ack_due || vi.credit_due || vi.attach_due || vi.reads_count != 0 ||
           vi.send.work.has_current();
}

bool Outbound::next_frame(PathId id, FrameShape& shape) {
    Path& path = paths_[id];
    shape = {};  // whatever it was the last time
    direct_ = nullptr;
    if (!path.lost.empty() && next_lost(path, shape)) return true;
    if (!path.notices.empty()) {
        next_ = Piece::notice;
        shape = {wire::header_length_base, path.notices.front().payload_length()};
        return true;
    }
    while (Vi* vi = path.active.front()) {
        if (next_of_vi(*vi, path, shape)) {
            shape.must_arrive = next_ != Piece::message || vi->reliable();
            return true;
        }
        // A fault on the way may have taken the VI out already.
        if (path.active.front() == vi) path.active.pop_front();
        if (!path.notices.empty()) return next_frame(id, shape);
    }
    Paths::has_nothing_to_send(path);
    return false;
}

bool Outbound::next_of_vi(Vi& vi, const Path& path, FrameShape& shape) {
    if (vi.ack_due) {
        next_ = Piece::ack;
        shape = {wire::header_length_base, 0};
        return true;
    }
    if (vi.credit_due) {
        next_ = Piece::credit;
        shape = {wire::header_length_base, 0};
        return true;
    }
    if (vi.attach_due && vi.cut == 0 && !vi.begun) {
        next_ = Piece::attach;
        shape = {wire::header_length_remote, 0};
        return true;
    }
    bool message = false;
    for (;;) {
        message = next_of_message(vi, path, shape);
        if (!message || translations_.hold_all() || reach_next(vi, shape)) break;
        fail_current_send(vi, queue::status::protection_error);
        if (vi.state_now() != ViState::connected) return false;
    }
    if (vi.reads_count != 0 && (!message || vi.reply_next)) {
        next_of_reply(vi, path, !message, shape);
        return true;
    }
    return message;
}

/// `alone`: the VI has no message to send in turn with its answers.
void Outbound::next_of_reply(Vi& vi, const Path& path, bool alone, FrameShape& shape) {
    const Vi::Read& read = vi.answers.reads[vi.answers.first];
    const std::uint32_t left = read.length - read.done;
    next_ = Piece::read_reply;
    direct_ = nullptr;  // of a message that waits for its turn
    if (read.answer != Vi::Read::Answer::bytes) {
        next_allowed_ = read.answer == Vi::Read::Answer::word;
        next_length_ = next_allowed_ ? wire::atomic_length : 0;
        shape = {wire::header_length_remote, next_length_};
        return;
    }
    next_length_ = std::min(left, path.payload_max);
    shape = {wire::header_length_remote, next_length_};
    // The region may have been deregistered since the request was granted. Who deregisters it now
    // waits for the end of the turn.
    next_allowed_ = read.length == 0 || mutated(Mutation::skip_reply_check) ||
                    (memory_.check(read.handle, read.address, read.length, vi.attributes.tag,
                                   memory::Access::remote_read) &&
                     translations_.reach(read.handle, read.address + read.done, next_length_));
    if (next_allowed_ && alone && next_length_ < left && translations_.hold_all() &&
        may_run(vi, path))
        shape.count = (left - 1) / next_length_;
}

/// Can the NIC reach what the next frame of a message is filled with, or what goes without frames?
bool Outbound::reach_next(Vi& vi, FrameShape& shape) {
    shape.pullable = 0;  // the peer would pull what the table need not hold by then
    shape.count = 1;
    const queue::WorkEntry& entry = vi.send.work.current().cell();
    if (is_atomic(entry)) return true;  // its words are ours
    return translations_.reach(vi.gather, direct_ != nullptr ? entry.length : next_length_);
}

/// Nothing is posted behind the current message.
bool Outbound::is_alone(Vi& vi) {
    queue::Cursor behind = vi.send.work.current();
    behind.pass();
    return behind.position() == vi.send.work.posted();
}

/// Of the next frame of an RDMA write. The program at the other end may look between two frames: so
/// a frame ends where an aligned word ends (VIPL 4.24).
std::uint32_t Outbound::length_of_write(Vi& vi, const Path& path) {
    const queue::WorkEntry& entry = vi.send.work.current().cell();
    const std::uint32_t left = entry.length - vi.cut;
    if (left <= path.payload_max) return left;
    const std::uint64_t end = entry.segments[0].address + vi.cut + path.payload_max;
    return path.payload_max - static_cast<std::uint32_t>(end % sizeof(std::uint64_t));
}

bool Outbound::next_of_message(Vi& vi, const Path& path, FrameShape& shape) {
    direct_ = nullptr;
    if (vi.pulling && !mutated(Mutation::overtake_what_is_pulled)) return false;
    const bool starts = vi.cut == 0 && !vi.begun;
    if (starts && !message_may_start(vi)) return false;
    const queue::WorkEntry& entry = vi.send.work.current().cell();
    next_ = Piece::message;
    shape.pullable = starts && entry.length >= pull_length_min && entry.length < pull_length_end &&
                             direct_ == nullptr && vi.reliable() &&
                             entry.segment_count <= wire::pull_places_max && is_alone(vi)
                         ? entry.length
                         : 0;
    switch (operation_of(entry)) {
        case queue::control::rdma_read:
        case queue::control::atomic:
            next_length_ = is_atomic(entry) ? wire::operands_length(kind_of_question(entry)) : 0;
            shape = {direct_ != nullptr ? 0 : wire::header_length_remote, next_length_};
            return true;
        case queue::control::rdma_write:
            if (direct_ != nullptr && !consumes_receive(entry)) {
                shape = {};
                return true;
            }
            next_length_ = direct_ != nullptr ? 0 : length_of_write(vi, path);
            shape.header_length = wire::header_length_remote;
            shape.payload_length = next_length_;
            shape.count = frames_of_message(vi, path);
            return true;
        default:
            next_length_ = std::min(entry.length - vi.cut, path.payload_max);
            shape.header_length = next_length_ == entry.length ? wire::header_length_base
                                                               : wire::header_length_extent;
            shape.payload_length = next_length_;
            shape.count = frames_of_message(vi, path);
            return true;
    }
}

/// Several frames of a message at once: while nobody else wants to send.
bool Outbound::may_run(const Vi& vi, const Path& path) {
    return path.retransmits && vi.reliable() &&
           static_cast<const ActiveLink&>(vi).next == static_cast<const ActiveLink&>(vi).previous;
}

/// Frames of the current message from the next one on that are as long as it, lie in one segment
/// and are not the message's last.
std::uint32_t Outbound::frames_of_message(Vi& vi, const Path& path) const {
    const queue::WorkEntry& entry = vi.send.work.current().cell();
    const std::uint32_t left = entry.length - vi.cut;
    if (next_length_ == 0 || left <= next_length_ || vi.reads_count != 0 || !may_run(vi, path))
        return 1;
    // Of a write, the first frame may be the one that brings the others to where a word begins.
    if (operation_of(entry) == queue::control::rdma_write &&
        (entry.segments[0].address + vi.cut + next_length_ + path.payload_max) %
                sizeof(std::uint64_t) !=
            path.payload_max - next_length_)
        return 1;
    const std::uint32_t together = std::min(left - 1, vi.gather.together());
    return std::max(together / next_length_, 1U);
}

/// Is there a descriptor that can be started now? Faulty ones are completed on the way.
bool Outbound::message_may_start(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    while (work.has_current()) {
        const queue::WorkEntry& entry = work.current().cell();
        const std::uint16_t operation = operation_of(entry);
        std::uint32_t fault = entry.status & queue::status::error_mask;
        // Posted before it was known: such a frame would have an older peer end all connections.
        if (fault == 0 && is_atomic(entry) &&
            !vi.peer_knows_atomics.load(std::memory_order_relaxed))
            fault = queue::status::format_error;
        if (fault != 0) {
            fail_current_send(vi, fault);
            if (vi.state_now() != ViState::connected) return false;
            continue;
        }
        if (consumes_receive(entry) && vi.credits_agreed.load(std::memory_order_relaxed) &&
            vi.credits.used == vi.credits.limit)
            return false;
        if (vi.reads_in_flight != 0 &&
            (((entry.control & queue::control::queue_fence) != 0 &&
              !mutated(Mutation::ignore_fence)) ||
             (is_answered(entry) && vi.reads_in_flight == limits_.reads_in_flight_max)))
            return false;
        if (operation != queue::control::send_receive) {
            // What goes by frames must not be overtaken by what goes without.
            if (Segments::are_awaited(vi)) return false;
            if (!vi.imports.empty() && !Segments::wait_for_writes(vi) && !is_atomic(entry))
                direct_ = Segments::imported(vi, entry);
        }
        vi.gather.begin(work.current(), operation == queue::control::send_receive ? 0 : 1);
        return true;
    }
    return false;
}

void Outbound::fail_current_send(Vi& vi, std::uint32_t fault) {
    const bool begun = vi.cut != 0 || vi.begun;  // no peer can go on after half a message
    vi.send.work.current().cell().status = fault | queue::status::done;
    vi.send.work.start_next();
    completions_.drain_sends(vi);
    if (vi.reliable() || begun) connections_.break_off_sending(vi);
}

void Outbound::emit(PathId id, const FrameRoom& room) {
    Path& path = paths_[id];
    counters_.add(Counter::frames_sent);
    if (!path.retransmits) return emit_next(path, room);
    if (next_ == Piece::again) return emit_again(path, room);
    if (next_ == Piece::message && !path.active.front()->reliable()) return emit_next(path, room);
    Vi* const vi = room.count > 1 ? path.active.front() : nullptr;
    emit_recorded(path, room);
    if (vi != nullptr) emit_run(path, *vi, room);
}

void Outbound::emit_next(Path& path, const FrameRoom& room) {
    if (next_ == Piece::notice) return emit_notice(path, room);
    Vi& vi = *path.active.front();
    switch (next_) {
        case Piece::ack:
            emit_ack(vi, room);
            break;
        case Piece::credit:
            credits_.emit(vi, room);
            break;
        case Piece::attach:
            segments_.emit(vi, room);
            break;
        case Piece::pull:
            emit_pull(vi, room);
            break;
        case Piece::read_reply:
            emit_read_reply(vi, room);
            break;
        default:
            emit_message(vi, room);
    }
    // In turn; what has nothing left goes at once.
    if (static_cast<ActiveLink&>(vi).linked()) path.active.pop_front();
    if (has_to_send(vi) && vi.state_now() == ViState::connected) path.active.push_back(vi);
}

void Outbound::emit_notice(Path& path, const FrameRoom& room) {
    const Notice& notice = path.notices.front();
    wire::emit(notice.header, room.header);
    if (!notice.payload.empty())
        std::memcpy(room.payload, notice.payload.data(), notice.payload.size());
    paths_.notice_emitted(path, room.number);
}

void Outbound::emit_ack(Vi& vi, const FrameRoom& room) {
    wire::Header header;
    header.kind = wire::FrameKind::ack;
    header.vi = vi.remote_number;
    header.message = vi.expected_message - 1;
    if (vi.placing.active && mutated(Mutation::acknowledge_before_placing)) ++header.message;
    wire::emit(header, room.header);
    vi.ack_due = false;
}

/// Bytes that lie together need not be copied where the device reads them itself.
void Outbound::fill(const FrameRoom& room, queue::ByteWalk& walk, std::uint32_t payload_length) {
    std::byte* to = room.payload;
    walk.take(payload_length, [&](const std::byte* from, std::size_t length) {
        if (room.reference != nullptr && length == payload_length) {
            *room.reference = from;
            return;
        }
        memory::gather(to, from, length, room.stream);
        to += length;
    });
}

void Outbound::emit_message(Vi& vi, const FrameRoom& room) {
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = work.current().cell();
    const std::uint16_t operation = operation_of(entry);
    const bool asks = is_answered(entry);
    const bool placed = direct_ != nullptr;
    const bool last = asks || placed || vi.cut + next_length_ == entry.length;
    wire::Header header;
    header.kind = operation == queue::control::send_receive ? wire::FrameKind::send
                  : asks                                    ? kind_of_question(entry)
                                                            : wire::FrameKind::rdma_write;
    header.flags = static_cast<std::uint8_t>((vi.cut == 0 && !vi.begun ? wire::flag::first : 0) |
                                             (last ? wire::flag::last : 0));
    header.vi = vi.remote_number;
    header.message = vi.next_message;
    if ((entry.control & queue::control::immediate) != 0) {
        header.flags |= wire::flag::immediate;
        header.immediate_or_code = entry.immediate_data;
    }
    if (operation != queue::control::send_receive) {
        header.flags |= wire::flag::extent | wire::flag::remote;
        header.remote_address = entry.segments[0].address;
        header.remote_handle = entry.segments[0].handle;
        header.read_number = asks ? vi.next_message : 0;
    } else if (next_length_ != entry.length) {
        header.flags |= wire::flag::extent;
    }
    header.message_length = entry.length;
    header.offset = vi.cut;
    if (placed) {
        copy_imported(vi, entry);
        header.flags |= wire::flag::placed;
    }
    if (!asks)
        fill(room, vi.gather, next_length_);
    else if (is_atomic(entry))
        std::memcpy(room.payload, words_of(work.current()), next_length_);
    wire::emit(header, room.header);  // last: who polls its line would take it away meanwhile
    counters_.add(Counter::bytes_sent, next_length_);
    vi.reply_next = true;
    if (!last) {
        vi.cut += next_length_;
        return;
    }
    vi.cut = 0;
    vi.begun = false;
    vi.credits.used += consumes_receive(entry) ? 1 : 0;
    entry.message = vi.next_message++;
    work.start_next();
    if (operation == queue::control::rdma_write && !placed) vi.write_by_frames = entry.message;
    if (asks) {
        if (is_atomic(entry)) vi.write_by_frames = entry.message;
        ++vi.reads_in_flight;
    } else if (!vi.reliable() || (vi.attributes.reliability == Reliability::delivery &&
                                  (!paths_[vi.path].retransmits ||
                                   mutated(Mutation::complete_before_acknowledgement)))) {
        // Published on a lossless device is done (VIPL 4.25); told once it is published.
        entry.status = queue::status::done;
        emitted_.push_back(&vi);
    }
}

void Outbound::emit_read_reply(Vi& vi, const FrameRoom& room) {
    Vi::Read& read = vi.answers.reads[vi.answers.first];
    wire::Header header;
    header.vi = vi.remote_number;
    header.kind = wire::FrameKind::read_reply;
    header.message = read.number;
    header.flags = static_cast<std::uint8_t>(
        wire::flag::extent | wire::flag::remote | (read.done == 0 ? wire::flag::first : 0) |
        (read.done + next_length_ == read.length ? wire::flag::last : 0));
    header.message_length = read.length;
    header.offset = read.done;
    header.read_number = read.number;
    if (!next_allowed_)
        return emit_refusal(vi, header,
                            read.answer == Vi::Read::Answer::bytes
                                ? ErrorCode::rdma_read_protection
                                : ErrorCode::rdma_write_protection,
                            room);
    wire::emit(header, room.header);
    if (read.answer == Vi::Read::Answer::word) {
        std::memcpy(room.payload, &read.word, wire::atomic_length);
        counters_.add(Counter::bytes_sent, wire::atomic_length);
        return answered(vi);
    }
    const std::byte* const from = reinterpret_cast<const std::byte*>(read.address) + read.done;
    if (room.reference != nullptr) {
        // Its owner may write to it between checksum and sending: then the frame is lost, and
        // copied when it is sent again.
        *room.reference = from;
    } else {
        memory::gather(room.payload, from, next_length_, room.stream);
    }
    counters_.add(Counter::bytes_sent, next_length_);
    read.done += next_length_;
    vi.reply_next = false;
    if (read.done == read.length) answered(vi);
}

/// The room is lent already: the refusal travels in this frame's place.
void Outbound::emit_refusal(Vi& vi, wire::Header& header, ErrorCode event, const FrameRoom& room) {
    header.kind = wire::FrameKind::nak;
    header.immediate_or_code = static_cast<std::uint32_t>(wire::NakCode::protection);
    wire::emit(header, room.header);
    if (next_length_ != 0) std::memset(room.payload, 0, next_length_);
    counters_.add(Counter::rdma_refused);
    completions_.news().report(vi, event);
    connections_.leave_sending(vi);
}

/// The oldest of what the peer asked for has all of its answer.
void Outbound::answered(Vi& vi) {
    vi.reply_next = false;
    VIA_ASSERT(vi.reads_count != 0 && vi.reads_count <= Vi::reads_max);
    vi.answers.first = (vi.answers.first + 1) % Vi::reads_max;
    --vi.reads_count;
}

/// Moves the bytes of the current message to or from the segment.
void Outbound::copy_imported(Vi& vi, const queue::WorkEntry& entry) {
    VIA_ASSERT(direct_ != nullptr);
    std::byte* remote = std::exchange(direct_, nullptr);
    const bool write = operation_of(entry) == queue::control::rdma_write;
    const std::uint32_t less = mutated(Mutation::direct_too_little) && entry.length != 0 ? 1 : 0;
    vi.gather.take(entry.length - less, [&](std::byte* local, std::size_t length) {
        if (write)
            memory::place(remote, local, length);
        else
            memory::place(local, remote, length);
        remote += length;
    });
    counters_.add(Counter::direct_transfers);
    counters_.add(write ? Counter::bytes_sent : Counter::bytes_received, entry.length);
}

void Outbound::carry_out(PathId id) {
    Path& path = paths_[id];
    Vi& vi = *path.active.front();
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = work.current().cell();
    copy_imported(vi, entry);
    entry.message = vi.next_message;  // it takes none: only its place in the order
    entry.status = queue::status::done;
    work.start_next();
    completions_.drain_sends(vi);
    if (static_cast<ActiveLink&>(vi).linked()) path.active.pop_front();
    if (has_to_send(vi) && vi.state_now() == ViState::connected) path.active.push_back(vi);
}

void Outbound::on_transmitted() {
    for (Vi* vi : emitted_) completions_.drain_sends(*vi);
    emitted_.clear();
}

// What the peer answers ---------------------------------------------------------------------------

/// Messages below that number were placed: those that waited for it are done.
void Outbound::mark_acknowledged(Vi& vi, std::uint32_t below) {
    queue::WorkQueue& work = vi.send.work;
    for (queue::Cursor at = work.oldest(); at.position() != work.current().position();) {
        queue::WorkEntry& entry = at.cell();
        if (static_cast<std::int32_t>(entry.message - below) >= 0) break;
        if (!is_answered(entry)) entry.status |= queue::status::done;
        at.pass();
    }
}

void Outbound::placed_below(Vi& vi, std::uint32_t message) {
    if (static_cast<std::int32_t>(message - vi.placed_message) > 0) vi.placed_message = message;
    if (vi.write_by_frames && static_cast<std::int32_t>(message - *vi.write_by_frames) > 0)
        vi.write_by_frames.reset();
}

FrameVerdict Outbound::on_ack(Vi& vi, const wire::Header& header) {
    const std::uint32_t below = header.message + 1;
    if (vi.attributes.reliability != Reliability::reception ||
        below - vi.placed_message > vi.next_message - vi.placed_message)
        return connections_.break_rule(vi, header, "an acknowledgement of what was not sent");
    mark_acknowledged(vi, below);
    placed_below(vi, below);
    completions_.drain_sends(vi);
    return FrameVerdict::taken;
}

FrameVerdict Outbound::on_nak(Vi& vi, const wire::Header& header) {
    const auto ahead = static_cast<std::int32_t>(header.message - vi.next_message);
    if (!vi.reliable() || ahead > 0 || (ahead == 0 && vi.cut == 0 && !vi.begun))
        return connections_.break_rule(vi, header, "a refusal of what was not sent");
    queue::WorkQueue& work = vi.send.work;
    mark_acknowledged(vi, header.message);
    completions_.drain_sends(vi);
    const std::uint32_t bits =
        header.immediate_or_code == static_cast<std::uint32_t>(wire::NakCode::no_receive)
            ? queue::status::remote_descriptor_error
        : header.immediate_or_code == static_cast<std::uint32_t>(wire::NakCode::protection)
            ? queue::status::rdma_protection_error
            : queue::status::transport_error;
    // A message still being cut is guilty before it is started in the queue's sense.
    if ((vi.cut != 0 || vi.begun) && header.message == vi.next_message) {
        work.current().cell().message = header.message;
        work.start_next();
    }
    bool found = false;
    for (queue::Cursor at = work.oldest(); at.position() != work.current().position() && !found;) {
        queue::WorkEntry& entry = at.cell();
        if (entry.message == header.message && (entry.status & queue::status::done) == 0) {
            entry.status = bits | queue::status::done;
            found = true;
        }
        at.pass();
    }
    if (!found && work.has_outstanding()) {
        if (!work.has_started()) work.start_next();
        queue::WorkEntry& oldest = work.oldest().cell();  // a fault of its own is its own
        const std::uint32_t fault = oldest.status & queue::status::error_mask;
        oldest.status = (fault != 0 ? fault : queue::status::transport_error) | queue::status::done;
    }
    // Who refused an answer that was lost does not know whether we had it (recovery.cpp).
    if (paths_[vi.path].retransmits)
        paths_.notify(vi.path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message,
                      header.immediate_or_code);
    connections_.lose(vi);
    return FrameVerdict::taken;
}

FrameVerdict Outbound::on_disconnect(const Path& path, const wire::Header& header) {
    Vi* vi = vis_.connected(path.id, header.vi);
    if (vi == nullptr) return FrameVerdict::stale;
    // Who did not get the refused answer says so; else it had arrived, and nothing was refused.
    if (vi->answers.refused &&
        header.immediate_or_code == static_cast<std::uint32_t>(wire::NakCode::protection))
        completions_.news().report(*vi, ErrorCode::rdma_read_protection);
    // What the peer had is done, though its acknowledgement was lost or overtaken (VIPL 4.18).
    if (vi->reliable() && static_cast<std::int32_t>(header.message - vi->next_message) <= 0) {
        mark_acknowledged(*vi, header.message);
        completions_.drain_sends(*vi);
    }
    connections_.lose(*vi);
    return FrameVerdict::taken;
}

}  // namespace via::engine
