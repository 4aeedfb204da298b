// The common message, there and back: whole in one frame, of a segment or none into such, with
// nothing special about it and nobody waiting; or written to a segment of the peer's. A few
// looks tell; whatever they do not find so goes the general way (outbound.cpp, inbound.cpp), which
// this only shortens. In a header, since calls would be a good part of it.
#pragma once

#include "engine/engine.hpp"
#include "memory/copy.hpp"
#include "wire/bytes.hpp"

namespace via::engine {

/// Is something of the VI's begun or faulty, or has its path anything else to send, begun or due,
/// which keeps it in sending_?
[[gnu::always_inline]] inline bool Engine::is_occupied(const Vi& vi) {
    return paths_[vi.path].linked() || vi.pulling || vi.begun || vi.cut != 0 ||
           vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed;
}

/// The peer has a receive for the next message, if it tells of them; it hears of ours, if due.
[[gnu::always_inline]] inline bool Engine::has_credit(Vi& vi) {
    if (!vi.credits_agreed.load(std::memory_order_relaxed)) [[likely]]
        return true;
    credits_.grant(vi);
    return vi.credits.used != vi.credits.limit;
}

[[gnu::always_inline]] inline bool Engine::next_is_common(Vi& vi, FrameShape& shape) {
    if (!vi.fast_out || !has_credit(vi) || is_occupied(vi)) return false;
    const Path& path = paths_[vi.path];
    queue::WorkQueue& work = vi.send.work;
    if (!work.has_current()) return false;
    queue::WorkEntry& entry = work.current().cell();
    common_ = &entry;
    // Where frames share packets, several go the general way, by which they do.
    if (entry.status != 0 || (path.retransmits && !work.is_last_posted())) return false;
    shape.header_length = 0;
    if (entry.control == queue::control::rdma_write) return next_goes_direct(vi);
    if (entry.control != queue::control::send_receive || entry.segment_count > 1 ||
        entry.length > path.payload_max || entry.length >= pull_length_min)
        return false;
    shape.header_length = wire::header_length_base;
    shape.payload_length = entry.length;
    shape.must_arrive = vi.reliable();
    return true;
}

[[gnu::always_inline]] inline void Engine::emit_common(Vi& vi, const FrameRoom& room) {
    queue::WorkEntry& entry = *common_;
    Path& path = paths_[vi.path];
    if (path.retransmits && vi.reliable()) record_common(vi, path, room.number);
    const std::uint32_t length = entry.length;
    const auto* from = reinterpret_cast<const std::byte*>(entry.segments[0].address);
    if (length == 0) {
    } else if (room.reference != nullptr) {
        *room.reference = from;
    } else {
        memory::gather(room.payload, from, length, room.stream);
    }
    const std::uint32_t message = vi.next_message;
    // Last: who polls its line would take it away meanwhile.
    wire::emit_whole_send(vi.remote_number, message, room.header);
    counters_.add(Counter::frames_sent);
    counters_.add(Counter::bytes_sent, length);
    vi.reply_next = true;
    if (!mutated(Mutation::send_common_without_credit)) ++vi.credits.used;
    entry.message = message;
    vi.next_message = message + 1;
}

/// As on_transmitted() does after emit_message().
[[gnu::always_inline]] inline void Engine::common_transmitted(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = *common_;
    const bool done = !vi.reliable() || (vi.attributes.reliability == Reliability::delivery &&
                                         !paths_[vi.path].retransmits);
    if (done && !work.has_started()) [[likely]] {
        counters_.add(Counter::sends);
        completions_.complete_current(vi, vi.send, entry, queue::status::operation_send);
        return;
    }
    if (done) entry.status = queue::status::done;
    work.start_next();
    completions_.drain_sends(vi);
}

template <bool two_pieces>
[[gnu::always_inline]] inline bool Engine::next_is_small(Vi& vi) {
    if (!vi.small_out || !has_credit(vi) || is_occupied(vi)) return false;
    // Nothing before it is outstanding, so that it completes at once.
    queue::WorkEntry* entry = vi.send.work.oldest_current();
    if (mutated(Mutation::send_small_past_reads) && vi.send.work.has_current())
        entry = &vi.send.work.current().cell();
    common_ = entry;
    return entry != nullptr && entry->status == 0 &&
           (two_pieces ? entry->segment_count == 2 : entry->segment_count <= 1) &&
           entry->control == queue::control::send_receive &&
           entry->length <= paths_[vi.path].payload_max;
}

[[gnu::always_inline]] inline void Engine::small_sent(Vi& vi) {
    queue::WorkEntry& entry = *common_;
    Counters& counters = counters_;
    counters.add(Counter::frames_sent);
    counters.add(Counter::bytes_sent, entry.length);
    counters.add(Counter::sends);
    vi.reply_next = true;
    if (!mutated(Mutation::send_small_without_credit)) ++vi.credits.used;
    entry.message = vi.next_message++;
    completions_.complete_current(vi, vi.send, entry, queue::status::operation_send);
}

[[gnu::always_inline]] inline std::uint32_t Engine::take_common(PathId id, const std::byte* header,
                                                                std::size_t header_length,
                                                                const std::byte* payload,
                                                                std::size_t payload_length) {
    std::size_t length = payload_length;
    if (payload == nullptr) [[likely]] {
        payload = header + wire::header_length_base;
        length = header_length - wire::header_length_base;
    } else if (header_length != wire::header_length_base) {
        return not_common;
    }
    const auto number = wire::get<std::uint32_t>(header + 4);
    Vi* const vi = vis_.at(number & 0xFFFF);
    if (vi == nullptr || vi->fast_in != fast_path_of(id, number) || vi->placing.active ||
        static_cast<PullLink&>(*vi).linked() ||
        wire::get<std::uint32_t>(header + 8) != vi->expected_message ||
        length > vi->attributes.transfer_length_max ||
        vi->receive_faults.load(std::memory_order_relaxed) != vi->receive_faults_completed)
        return not_common;
    queue::WorkEntry* entry = vi->receive.work.oldest_current();
    if (entry == nullptr) [[unlikely]]
        entry = shared_receives_.oldest_for(*vi);
    if (entry == nullptr || entry->segment_count > 1 ||
        (length > entry->length && !mutated(Mutation::take_common_beyond_receive)))
        return not_common;
    memory::place(reinterpret_cast<std::byte*>(entry->segments[0].address), payload, length);
    entry->descriptor->control.length = static_cast<std::uint32_t>(length);
    ++vi->credits.taken;
    ++vi->expected_message;
    completions_.complete_current(*vi, vi->receive, *entry, queue::status::operation_receive);
    if (vi->credits_agreed.load(std::memory_order_relaxed)) [[unlikely]]
        credits_.grant(*vi);
    if (vi->attributes.reliability == Reliability::reception &&
        !mutated(Mutation::take_common_unacknowledged)) [[unlikely]] {
        vi->ack_due = true;
        paths_.activate(*vi);
    }
    return static_cast<std::uint32_t>(length);
}

}  // namespace via::engine
