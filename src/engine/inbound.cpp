#include "engine/inbound.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "engine/mutation.hpp"
#include "engine/outbound.hpp"
#include "memory/copy.hpp"

namespace via::engine {

FrameVerdict Inbound::on_skip(PathId path, const wire::Header& header) {
    if (Vi* vi = vis_.connected(path, header.vi)) {
        vi->placing.given_up = !mutated(Mutation::forget_given_up);
        vi->fast_in = no_fast_path;
    }
    return FrameVerdict::taken;
}

// Messages ----------------------------------------------------------------------------------------

/// Does the frame continue what came before, and do its numbers agree with each other?
FrameVerdict Inbound::check_sequence(Vi& vi, const wire::Header& header, std::size_t length) {
    const bool first = header.has(wire::flag::first);
    const bool last = header.has(wire::flag::last);
    const bool extent = header.has(wire::flag::extent);
    const std::uint64_t total = extent ? header.message_length : length;
    const std::uint64_t offset = extent ? header.offset : 0;
    if (header.message != vi.expected_message)
        return connections_.break_rule(vi, header, "a message out of sequence");
    if (first == vi.placing.active || (!first && header.kind != vi.placing.kind))
        return connections_.break_rule(vi, header, "a message that begins within another");
    if (offset != (first ? 0 : vi.placing.placed) || (!first && total != vi.placing.length))
        return connections_.break_rule(vi, header, "a piece of a message out of sequence");
    if (length > total - offset || (offset + length == total) != last ||
        (length == 0 && !last && !header.has(wire::flag::pull)))
        return connections_.break_rule(vi, header, "a message whose lengths disagree");
    if (total > vi.attributes.transfer_length_max)
        return connections_.break_rule(vi, header, "a message longer than agreed");
    if ((header.kind == wire::FrameKind::rdma_write) != header.has(wire::flag::remote))
        return connections_.break_rule(vi, header, "a message without its address");
    return FrameVerdict::taken;
}

FrameVerdict Inbound::on_message(Vi& vi, const wire::Header& header, const std::byte* payload,
                                 std::size_t length) {
    if (header.has(wire::flag::placed)) return on_placed(vi, header, length);
    if (!vi.reliable() && paths_[vi.path].retransmits && !fits_in(vi, header) &&
        !mutated(Mutation::take_broken_message))
        return FrameVerdict::stale;
    if (static_cast<PullLink&>(vi).linked())
        return connections_.break_rule(vi, header, "more while a message of it is pulled");
    const bool pull = header.has(wire::flag::pull);
    if (pull) {
        if (!vi.pull) vi.pull = std::make_unique<Pull>();
        if (!vi.reliable() || !header.has(wire::flag::first) ||
            !read_pull(header, payload, length, *vi.pull))
            return connections_.break_rule(vi, header, "a message to be pulled from nowhere");
        length = 0;
    }
    if (const FrameVerdict verdict = check_sequence(vi, header, length);
        verdict != FrameVerdict::taken)
        return verdict;
    const bool send = header.kind == wire::FrameKind::send;
    if (header.has(wire::flag::first)) {
        vi.placing.active = true;
        vi.placing.discards = false;
        vi.placing.kind = header.kind;
        vi.placing.placed = 0;
        vi.placing.length = header.has(wire::flag::extent) ? header.message_length
                                                           : static_cast<std::uint32_t>(length);
        vi.placing.target_address = header.remote_address;
        vi.placing.target_handle = header.remote_handle;
        if (mutated(Mutation::acknowledge_before_placing) &&
            vi.attributes.reliability == Reliability::reception) {
            vi.ack_due = true;
            paths_.activate(vi);
        }
        if (send) {
            connections_.complete_faulty_receives(
                vi);  // posted, but its doorbell was not heard yet
            if (vi.state_now() != ViState::connected) return FrameVerdict::taken;
        }
        if (send && !match_receive(vi)) {
            refuse_message(vi, header, wire::NakCode::no_receive, ErrorCode::receive_queue_empty);
            if (vi.state_now() != ViState::connected) return FrameVerdict::taken;
        }
    }
    if (!send && !vi.placing.discards && !check_target(vi, header, length)) {
        counters_.add(Counter::rdma_refused);
        completions_.news().note_refused(vi.placing.target_handle, vi.placing.target_address,
                                         vi.placing.length, vi.attributes.tag,
                                         memory::Access::remote_write);
        refuse_message(vi, header, wire::NakCode::protection, ErrorCode::rdma_write_protection);
        if (vi.state_now() != ViState::connected) return FrameVerdict::taken;
    }
    if (pull) {
        vi.pull->scatter = vi.placing.scatter;
        pulls_.push_back(vi);
        completions_.news().chore_came();
        return FrameVerdict::taken;
    }
    if (send && !vi.placing.discards && !translations_.reach(vi.placing.scatter, length)) {
        refuse_receive(vi, header);
        if (vi.state_now() != ViState::connected) return FrameVerdict::taken;
    }
    if (!vi.placing.discards) place_payload(vi, header, payload, length);
    vi.placing.placed += static_cast<std::uint32_t>(length);
    if (header.has(wire::flag::last)) {
        finish_message(vi, header);
        connections_.complete_faults_behind(vi);
    }
    return FrameVerdict::taken;
}

bool Inbound::take_inner(PathId id, const ReceivedFrame& frame) {
    Vi* const vi = vis_.connected(id, wire::get<std::uint32_t>(frame.header + 4));
    if (mutating() || !translations_.hold_all() || frame.payload == nullptr ||
        frame.payload_length == 0 || vi == nullptr || vi->placing.given_up || !vi->reliable())
        return false;
    const auto kind = static_cast<wire::FrameKind>(frame.header[0]);
    if (frame.header_length != wire::header_length(static_cast<std::uint8_t>(frame.header[1])))
        return false;
    if (kind == wire::FrameKind::read_reply) return take_inner_reply(*vi, frame);
    const std::uint64_t length = frame.count * std::uint64_t{frame.payload_length};
    if (!vi->placing.active || vi->placing.kind != kind || vi->placing.discards ||
        static_cast<PullLink&>(*vi).linked() ||
        wire::get<std::uint32_t>(frame.header + 8) != vi->expected_message ||
        wire::get<std::uint32_t>(frame.header + 16) != vi->placing.length ||
        wire::offset_of(frame.header) != vi->placing.placed ||
        length >= vi->placing.length - vi->placing.placed)
        return false;
    if (kind == wire::FrameKind::rdma_write) {
        if (!take_inner_write(*vi, frame)) return false;
    } else {
        place_run(frame, vi->placing.scatter);
    }
    if (!mutated(Mutation::take_inner_in_one_place))
        vi->placing.placed += static_cast<std::uint32_t>(length);
    counters_.add(Counter::bytes_received, length);
    return true;
}

/// One is placed while the lines of the next one come: inside a message another one always follows.
/// To memory that was not touched lately that takes two thirds of the time.
void Inbound::place_inner(std::byte* to, const std::byte* from, std::size_t length) {
    bring_to_write(to + length, length);
    memory::place(to, from, length);
}

void Inbound::place_run(const ReceivedFrame& frame, queue::ByteWalk& scatter) {
    for (std::uint32_t n = 0; n < frame.count; ++n) {
        const std::byte* from = frame.payload_of(mutated(Mutation::place_run_in_one_place) ? 0 : n);
        scatter.take(frame.payload_length, [&](std::byte* to, std::size_t bytes) {
            place_inner(to, from, bytes);
            from += bytes;
        });
    }
}

bool Inbound::take_inner_write(Vi& vi, const ReceivedFrame& frame) {
    const std::uint64_t to = vi.placing.target_address + vi.placing.placed;
    if (!memory_.check(vi.placing.target_handle, to, frame.count * frame.payload_length,
                       vi.attributes.tag, memory::Access::remote_write))
        return false;
    for (std::uint32_t n = 0; n < frame.count; ++n)
        place_inner(reinterpret_cast<std::byte*>(to) + n * frame.payload_length,
                    frame.payload_of(n), frame.payload_length);
    return true;
}

bool Inbound::take_inner_reply(Vi& vi, const ReceivedFrame& frame) {
    queue::Cursor at;
    if (vi.reading.placed == 0 || !find_read(vi, at)) return false;
    const queue::WorkEntry& entry = at.cell();
    const std::uint64_t length = frame.count * std::uint64_t{frame.payload_length};
    if (wire::get<std::uint32_t>(frame.header + 36) != entry.message ||
        wire::get<std::uint32_t>(frame.header + 16) != entry.length ||
        wire::offset_of(frame.header) != vi.reading.placed ||
        length >= entry.length - vi.reading.placed)
        return false;
    place_run(frame, vi.reading.scatter);
    vi.reading.placed += static_cast<std::uint32_t>(length);
    counters_.add(Counter::bytes_received, length);
    return true;
}

/// The peer wrote to a segment that it attached to, and tells the program by immediate data.
FrameVerdict Inbound::on_placed(Vi& vi, const wire::Header& header, std::size_t length) {
    constexpr std::uint8_t whole = wire::flag::first | wire::flag::last | wire::flag::immediate |
                                   wire::flag::extent | wire::flag::remote | wire::flag::placed;
    if (header.kind != wire::FrameKind::rdma_write || header.flags != whole || length != 0 ||
        header.offset != 0 || vi.placing.active || header.message != vi.expected_message ||
        header.message_length > vi.attributes.transfer_length_max || !vi.attributes.rdma_write)
        return connections_.break_rule(vi, header, "news of a message that make no sense");
    vi.placing.discards = false;
    vi.placing.placed = header.message_length;
    finish_message(vi, header);
    connections_.complete_faults_behind(vi);
    return FrameVerdict::taken;
}

/// Of a receive that cannot take a message of that length: it ends before, or its registered
/// memory does.
std::uint32_t Inbound::why_too_short(const Vi& vi, const queue::Cursor& receive,
                                     std::uint32_t length) {
    std::uint32_t left = length;
    for (queue::SegmentWalk walk(receive); !walk.done() && left != 0;) {
        const queue::Segment& segment = walk.next();
        const std::uint32_t bytes = std::min(left, segment.length);
        completions_.news().note_refused(segment.handle, segment.address, bytes, vi.attributes.tag,
                                         memory::Access::local_write);
        left -= bytes;
    }
    return left == 0 ? queue::status::protection_error : queue::status::length_error;
}

/// Is there a receive at current(), if need be one that others might have had?
bool Inbound::has_receive(Vi& vi) {
    return vi.receive.work.has_current() || (vi.shared != nullptr && shared_.give(vi));
}

/// Finds the receive for a message that begins. A receive that cannot hold it completes with its
/// own error; then, as when there is none, the message is refused.
bool Inbound::match_receive(Vi& vi) {
    if (!has_receive(vi)) return false;
    queue::WorkQueue& work = vi.receive.work;
    const queue::WorkEntry& entry = work.current().cell();
    // A receive's length is its capacity (check.hpp).
    const bool fits =
        vi.placing.length <= entry.length || mutated(Mutation::ignore_receive_capacity);
    vi.placing.scatter.begin(work.current(), 0);
    work.start_next();
    if (fits) return true;
    vi.placing.discards = true;
    completions_.complete_receive(
        vi, why_too_short(vi, work.oldest(), vi.placing.length) | queue::status::operation_receive,
        0, nullptr);
    return false;
}

/// The NIC cannot reach the receive's buffers: it fails, and the message with it.
void Inbound::refuse_receive(Vi& vi, const wire::Header& header) {
    vi.placing.discards = true;
    completions_.complete_receive(
        vi, queue::status::protection_error | queue::status::operation_receive, 0, nullptr);
    refuse_message(vi, header, wire::NakCode::no_receive, ErrorCode::receive_queue_empty);
}

namespace {

/// Of windows, as the mutations have it.
bool is_past_window(const memory::MemoryTable& memory, const Vi& vi, bool first) {
    if (!memory::is_window(vi.placing.target_handle)) return false;
    if (mutated(Mutation::write_past_window_end)) return !first;
    return mutated(Mutation::reach_beyond_window) &&
           memory.look(memory.region_of(vi.placing.target_handle))
               .covers(vi.placing.target_address, vi.placing.length);
}

}  // namespace

/// May the peer write here? Every frame asks: a region may go between two frames.
bool Inbound::check_target(Vi& vi, const wire::Header& header, std::size_t length) {
    const memory::ProtectionTag tag =
        mutated(Mutation::skip_tag_check) ? memory::no_tag : vi.attributes.tag;
    if (is_past_window(memory_, vi, header.has(wire::flag::first))) return true;
    if (header.has(wire::flag::first)) {
        if (!vi.attributes.rdma_write) return false;
        if (vi.placing.length != 0 &&
            !memory_.check(vi.placing.target_handle, vi.placing.target_address, vi.placing.length,
                           tag, memory::Access::remote_write))
            return false;
    }
    const std::uint64_t address = vi.placing.target_address + vi.placing.placed;
    return length == 0 || (memory_.check(vi.placing.target_handle, address, length, tag,
                                         memory::Access::remote_write) &&
                           translations_.reach(vi.placing.target_handle, address, length));
}

void Inbound::place_payload(Vi& vi, const wire::Header& header, const std::byte* payload,
                            std::size_t length) {
    counters_.add(Counter::bytes_received, length);
    if (header.kind == wire::FrameKind::rdma_write) {
        memory::place(reinterpret_cast<std::byte*>(vi.placing.target_address) + vi.placing.placed,
                      payload, length);
        return;
    }
    vi.placing.scatter.take(length, [&](std::byte* to, std::size_t bytes) {
        memory::place(to, payload, bytes);
        if (mutated(Mutation::place_beyond_segment)) memory::place(to + bytes, payload, 1);
        payload += bytes;
    });
}

/// The caller then looks at the next receive: connections_.complete_faults_behind().
void Inbound::finish_message(Vi& vi, const wire::Header& header) {
    const bool immediate = header.has(wire::flag::immediate);
    const bool send = header.kind == wire::FrameKind::send;
    vi.placing.active = false;
    if (send || immediate) ++vi.credits.taken;
    if (!vi.placing.discards && send) {
        completions_.complete_receive(vi, queue::status::operation_receive, vi.placing.placed,
                                      immediate ? &header.immediate_or_code : nullptr);
    } else if (!vi.placing.discards && immediate) {
        // An RDMA write with immediate data consumes a receive, whose buffers stay as they are.
        connections_.complete_faulty_receives(vi);
        if (vi.state_now() != ViState::connected) return;
        if (!has_receive(vi)) {
            refuse_message(vi, header, wire::NakCode::no_receive, ErrorCode::receive_queue_empty);
            if (vi.state_now() != ViState::connected) return;
        } else {
            vi.receive.work.start_next();
            completions_.complete_receive(vi, queue::status::operation_remote_rdma_write,
                                          vi.placing.placed, &header.immediate_or_code);
        }
    }
    ++vi.expected_message;
    if (vi.credits_agreed.load(std::memory_order_relaxed)) credits_.grant(vi);
    if (vi.attributes.reliability == Reliability::reception) {
        vi.ack_due = true;
        paths_.activate(vi);
    }
}

/// The message cannot be taken (VIPL 4.25): an unreliable VI drops it and stays connected, a
/// reliable one breaks and tells the sender.
void Inbound::refuse_message(Vi& vi, const wire::Header& header, wire::NakCode code,
                             ErrorCode event) {
    // A receive that was there and failed told the program already.
    const bool told = vi.placing.discards && event == ErrorCode::receive_queue_empty;
    if (event == ErrorCode::receive_queue_empty && !told)
        counters_.add(Counter::receive_queue_empty);
    if (!told) completions_.news().report(vi, event);
    vi.placing.discards = true;
    if (mutated(Mutation::lose_refusal)) return;
    if (vi.reliable() && vi.state_now() == ViState::connected)
        connections_.fail(vi, wire::FrameKind::nak, header.message,
                          static_cast<std::uint32_t>(code));
    connections_.complete_faults_behind(vi);
}

// RDMA reads --------------------------------------------------------------------------------------

FrameVerdict Inbound::on_read_request(Vi& vi, const wire::Header& header, std::size_t length) {
    if (header.message != vi.expected_message || vi.placing.active)
        return connections_.break_rule(vi, header, "a read request out of sequence");
    if (!header.has(wire::flag::remote) || length != 0 || header.offset != 0 ||
        header.read_number != header.message || !vi.reliable() ||
        header.message_length > vi.attributes.transfer_length_max)
        return connections_.break_rule(vi, header, "a read request that makes no sense");
    if (vi.reads_count == Vi::reads_max)
        return connections_.break_rule(vi, header, "more reads at once than agreed");
    // Behind others it is looked at when its turn comes: what was granted is answered first.
    if (!vi.attributes.rdma_read ||
        (header.message_length != 0 && vi.reads_count == 0 &&
         !memory_.check(header.remote_handle, header.remote_address, header.message_length,
                        vi.attributes.tag, memory::Access::remote_read))) {
        counters_.add(Counter::rdma_refused);
        completions_.news().note_refused(header.remote_handle, header.remote_address,
                                         header.message_length, vi.attributes.tag,
                                         memory::Access::remote_read);
        refuse_message(vi, header, wire::NakCode::protection, ErrorCode::rdma_read_protection);
        return FrameVerdict::taken;
    }
    ++vi.expected_message;
    vi.answers.reads[(vi.answers.first + vi.reads_count++) % Vi::reads_max] = {
        header.remote_address, header.remote_handle, header.message_length, header.read_number, 0};
    paths_.activate(vi);
    return FrameVerdict::taken;
}

// Atomic operations -------------------------------------------------------------------------------

/// It reads and writes: the VI allows both, and the region this.
bool Inbound::may_change(Vi& vi, const wire::Header& header) {
    return vi.attributes.rdma_read && vi.attributes.rdma_write &&
           header.remote_address % wire::atomic_length == 0 &&
           memory_.check(header.remote_handle, header.remote_address, wire::atomic_length,
                         vi.attributes.tag, memory::Access::remote_atomic) &&
           translations_.reach(header.remote_handle, header.remote_address, wire::atomic_length);
}

/// Carried out when it comes, as a write is: behind what the VI sent before, and before all that it
/// sends later. What was found goes back in turn with the answers to reads.
FrameVerdict Inbound::on_atomic(Vi& vi, const wire::Header& header, const std::byte* payload,
                                std::size_t length) {
    constexpr std::uint8_t whole =
        wire::flag::first | wire::flag::last | wire::flag::extent | wire::flag::remote;
    if (header.message != vi.expected_message || vi.placing.active)
        return connections_.break_rule(vi, header, "an atomic operation out of sequence");
    if (header.flags != whole || length != wire::operands_length(header.kind) ||
        header.offset != 0 || header.read_number != header.message ||
        header.message_length != wire::atomic_length || !vi.reliable())
        return connections_.break_rule(vi, header, "an atomic operation that makes no sense");
    if (vi.reads_count == Vi::reads_max)
        return connections_.break_rule(vi, header, "more atomic operations at once than agreed");
    if (!may_change(vi, header)) return refuse_atomic(vi, header);
    std::uint64_t words[2] = {};  // read once: the peer may change them
    std::memcpy(words, payload, length);
    const memory::WordChange change{header.kind == wire::FrameKind::fetch_add, words[0], words[1]};
    const std::uint64_t was = memory::change(header.remote_address, change);
    if (mutated(Mutation::change_word_twice)) memory::change(header.remote_address, change);
    counters_.add(Counter::bytes_received, length);
    ++vi.expected_message;
    vi.answers.reads[(vi.answers.first + vi.reads_count++) % Vi::reads_max] = {
        header.remote_address,
        header.remote_handle,
        wire::atomic_length,
        header.read_number,
        0,
        Vi::Read::Answer::word,
        was};
    paths_.activate(vi);
    return FrameVerdict::taken;
}

/// Behind others the refusal waits for its turn: what was granted is answered first. What the peer
/// sent later does not count.
FrameVerdict Inbound::refuse_atomic(Vi& vi, const wire::Header& header) {
    completions_.news().note_refused(header.remote_handle, header.remote_address,
                                     wire::atomic_length, vi.attributes.tag,
                                     memory::Access::remote_atomic);
    if (vi.reads_count == 0) {
        counters_.add(Counter::rdma_refused);
        refuse_message(vi, header, wire::NakCode::protection, ErrorCode::rdma_write_protection);
        return FrameVerdict::taken;
    }
    vi.answers.reads[(vi.answers.first + vi.reads_count++) % Vi::reads_max] = {
        header.remote_address,    header.remote_handle, wire::atomic_length, header.read_number, 0,
        Vi::Read::Answer::refusal};
    vi.placing.given_up = true;
    vi.fast_in = no_fast_path;
    paths_.activate(vi);
    return FrameVerdict::taken;
}

/// The oldest of our reads and atomic operations that waits for its answer, or for the rest of it.
/// False: none does.
bool Inbound::find_read(Vi& vi, queue::Cursor& at) {
    queue::WorkQueue& work = vi.send.work;
    for (at = work.oldest(); at.position() != work.current().position(); at.pass()) {
        const queue::WorkEntry& entry = at.cell();
        if (is_answered(entry) && (entry.status & queue::status::done) == 0) return true;
    }
    return false;
}

FrameVerdict Inbound::on_read_reply(Vi& vi, const wire::Header& header, const std::byte* payload,
                                    std::size_t length) {
    queue::Cursor at;
    if (!find_read(vi, at)) return connections_.break_rule(vi, header, "an answer to no read");
    queue::WorkEntry& entry = at.cell();
    const bool first = header.has(wire::flag::first);
    const bool last = header.has(wire::flag::last);
    if (!header.has(wire::flag::remote) || header.read_number != entry.message ||
        header.message_length != entry.length || header.offset != vi.reading.placed ||
        first != (vi.reading.placed == 0) || length > entry.length - vi.reading.placed ||
        (vi.reading.placed + length == entry.length) != last || (length == 0 && !last))
        return connections_.break_rule(vi, header, "an answer that does not fit its read");
    if (first) vi.reading.scatter.begin(at, 1);
    if (!translations_.reach(vi.reading.scatter, length)) {
        entry.status = queue::status::protection_error | queue::status::done;
        connections_.break_off(vi);
        return FrameVerdict::taken;
    }
    vi.reading.scatter.take(length, [&](std::byte* to, std::size_t bytes) {
        memory::place(to, payload, bytes);
        payload += bytes;
    });
    counters_.add(Counter::bytes_received, length);
    vi.reading.placed += static_cast<std::uint32_t>(length);
    if (!last) return FrameVerdict::taken;
    VIA_ASSERT(vi.reads_in_flight != 0);
    vi.reading.placed = 0;
    --vi.reads_in_flight;
    entry.status |= queue::status::done;
    Outbound::placed_below(vi, entry.message + (is_atomic(entry) ? 1 : 0));
    completions_.drain_sends(vi);
    paths_.activate(vi);  // a fence, or the limit on reads, may have held messages back
    return FrameVerdict::taken;
}

}  // namespace via::engine
