// What few common messages need (fast_path.hpp).
#include "engine/fast_path.hpp"

namespace via::engine {

/// An RDMA write to a segment of the peer that we have: no frame is needed.
bool Engine::next_goes_direct(Vi& vi) {
    if (common_->segment_count != 2 || vi.imports.empty() || Segments::wait_for_writes(vi) ||
        Segments::are_awaited(vi))
        return false;
    direct_ = Segments::imported(vi, *common_);
    return direct_ != nullptr;
}

/// What is kept of a frame that may be lost.
void Engine::record_common(Vi& vi, Path& path, std::uint32_t number) {
    queue::WorkQueue& work = vi.send.work;
    FrameRecord& record = path.under_way.add(number);
    record.header.kind = wire::FrameKind::send;
    record.header.flags = wire::flag::first | wire::flag::last;
    record.header.vi = vi.remote_number;
    record.header.message = vi.next_message;
    record.source = FrameRecord::Source::entry;
    record.entry = work.current();
    record.vi = vi.number();
    record.payload_length = common_->length;
    record.completes = !mutated(Mutation::record_common_without_end);
}

void Engine::carry_out_common(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    queue::WorkEntry& entry = *common_;
    memory::place(
        std::exchange(direct_, nullptr),
        reinterpret_cast<const std::byte*>(entry.segments[1].address),
        entry.length - (mutated(Mutation::direct_common_too_little) && entry.length != 0 ? 1 : 0));
    counters_.add(Counter::direct_transfers);
    counters_.add(Counter::bytes_sent, entry.length);
    entry.message = vi.next_message;  // as in carry_out()
    if (!work.has_started()) [[likely]] {
        counters_.add(Counter::rdma_writes);
        completions_.complete_current(vi, vi.send, entry, queue::status::operation_rdma_write);
        return;
    }
    entry.status = queue::status::done;
    work.start_next();
    completions_.drain_sends(vi);
}

}  // namespace via::engine
