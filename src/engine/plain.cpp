// The common message, there and back: whole in one frame, of one segment into one, with nothing
// special about it and nobody waiting; or written to a segment of the peer's. A few
// looks tell; whatever they do not find so goes the general way (outbound.cpp, inbound.cpp), which
// these two only shorten.
#include "engine/engine.hpp"
#include "engine/mutation.hpp"
#include "memory/copy.hpp"
#include "wire/bytes.hpp"

namespace via::engine {

bool Engine::next_is_plain(Vi& vi, FrameShape& shape) {
    if (mutating() || translations_ != nullptr || vi.state_now() != ViState::connected)
        return false;
    if (vi.credits_agreed.load(std::memory_order_relaxed)) {
        grant(vi);
        if (vi.credits_used == vi.credit_limit) return false;
    }
    // Who has anything else to send, begun or due, keeps the path in sending_.
    const Path& path = path_at(vi.path);
    if (path.linked() || vi.pulling || vi.begun || vi.cut != 0 ||
        vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed)
        return false;
    queue::WorkQueue& work = vi.send.work;
    if (!work.has_current()) return false;
    const queue::WorkEntry& entry = work.current().cell();
    // Where frames share packets, several go the general way, by which they do.
    if (entry.status != 0 || (path.retransmits && work.current().position() + 1 != work.posted()))
        return false;
    if (entry.control == queue::control::rdma_write) {
        if (entry.segment_count != 2 || vi.imports.empty() ||
            (vi.attach && vi.attach->status == Status::not_done))
            return false;
        direct_ = imported(vi, entry);
        shape.header_length = 0;
        return direct_ != nullptr;
    }
    if (entry.control != queue::control::send_receive || entry.segment_count != 1 ||
        entry.length > path.payload_max || entry.length >= fetch_length_min)
        return false;
    shape.header_length = wire::header_length_base;
    shape.payload_length = entry.length;
    shape.must_arrive = vi.reliable();
    return true;
}

void Engine::emit_plain(Vi& vi, const FrameRoom& room) {
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = work.current().cell();
    Path& path = path_at(vi.path);
    const bool recorded = path.retransmits && vi.reliable();
    if (recorded) {
        FrameRecord& record = path.under_way.add(room.number);
        record.header.kind = wire::FrameKind::send;
        record.header.flags = wire::flag::first | wire::flag::last;
        record.header.vi = vi.remote_number;
        record.header.message = vi.next_message;
        record.source = FrameRecord::Source::entry;
        record.entry = work.current();
        record.vi = vi.number();
        record.payload_length = entry.length;
        record.completes = true;
    }
    const auto* from = reinterpret_cast<const std::byte*>(entry.segments[0].address);
    if (entry.length == 0) {
    } else if (room.reference != nullptr) {
        *room.reference = from;
    } else {
        memory::gather(room.payload, from, entry.length, room.stream);
    }
    // Last: who polls its line would take it away meanwhile.
    wire::emit_whole_send(vi.remote_number, vi.next_message, room.header);
    counters_.add(Counter::frames_sent);
    counters_.add(Counter::bytes_sent, entry.length);
    vi.reply_next = true;
    ++vi.credits_used;
    entry.message = vi.next_message++;
    work.start_next();
    // As in emit_message(): told once it is published.
    if (!vi.reliable() || (!recorded && vi.attributes.reliability == Reliability::delivery))
        entry.status = queue::status::done;
}

void Engine::carry_out_plain(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = work.current().cell();
    memory::place(direct_, reinterpret_cast<const std::byte*>(entry.segments[1].address),
                  entry.length);
    counters_.add(Counter::direct_transfers);
    counters_.add(Counter::bytes_sent, entry.length);
    entry.message = vi.next_message;  // as in carry_out()
    entry.status = queue::status::done;
    work.start_next();
    drain_sends(vi);
}

bool Engine::take_plain(PathId id, const ReceivedFrame& frame) {
    const std::byte* payload = frame.payload;
    std::size_t length = frame.payload_length;
    if (payload == nullptr) {
        payload = frame.header + wire::header_length_base;
        length = frame.header_length - wire::header_length_base;
    } else if (frame.header_length != wire::header_length_base) {
        return false;
    }
    Vi* const vi = connected_vi(id, wire::get<std::uint32_t>(frame.header + 4));
    if (mutating() || translations_ != nullptr || vi == nullptr || vi->given_up || vi->placing ||
        !vi->reliable() || static_cast<FetchLink&>(*vi).linked() ||
        wire::get<std::uint32_t>(frame.header + 8) != vi->expected_message ||
        length > vi->attributes.transfer_length_max ||
        vi->receive_faults.load(std::memory_order_relaxed) != vi->receive_faults_completed)
        return false;
    queue::WorkQueue& work = vi->receive.work;
    if (!work.has_current()) return false;
    const queue::WorkEntry& entry = work.current().cell();
    if (entry.segment_count != 1 || length > entry.length) return false;
    work.start_next();
    counters_.add(Counter::bytes_received, length);
    memory::place(reinterpret_cast<std::byte*>(entry.segments[0].address), payload, length);
    ++vi->credits_taken;
    complete_receive(*vi, queue::status::operation_receive, static_cast<std::uint32_t>(length),
                     nullptr);
    if (vi->state_now() != ViState::connected) return true;
    ++vi->expected_message;
    if (vi->credits_agreed.load(std::memory_order_relaxed)) grant(*vi);
    if (vi->attributes.reliability == Reliability::reception) {
        vi->ack_due = true;
        activate(*vi);
    }
    return true;
}

}  // namespace via::engine
