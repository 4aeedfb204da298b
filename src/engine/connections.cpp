#include "engine/connections.hpp"

#include <utility>

#include "base/assert.hpp"
#include "engine/connect_message.hpp"

namespace via::engine {

void Connections::enter(Vi& vi, PathId path, const wire::ConnectMessage& message,
                        std::uint32_t understood) {
    VIA_ASSERT(paths_[path].up && vi.epoch != 0 &&
               (vi.state_now() == ViState::idle || vi.state_now() == ViState::connect_pending));
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    vi.path = path;
    vi.remote_number = message.vi;
    vi.remote = attributes_of(message);
    vi.next_message = vi.placed_message = vi.expected_message = 0;
    vi.placing.given_up = false;
    vi.peer_knows_atomics.store((understood & wire::understood::atomics) != 0,
                                std::memory_order_relaxed);  // before posters see the state
    vi.state.store(ViState::connected);
    vi.fast_in = fast_path_ && vi.reliable() ? fast_path_of(path, vi.number()) : no_fast_path;
    vi.fast_out = fast_path_;
    vi.small_out = fast_path_ && !paths_[path].retransmits &&
                   vi.attributes.reliability != Reliability::reception;
    vi.receive.takes_shared.store(vi.shared != nullptr, std::memory_order_relaxed);
    credits_.begin(vi, message);
    counters_.add(Counter::connections_made);
    completions_.news().progressed();
}

void Connections::leave(Vi& vi, ViState state) {
    List<Vi, ActiveLink>::remove_if_linked(vi);
    vi.path = no_path;
    vi.cut = 0;
    vi.ack_due = vi.placing.active = vi.placing.discards = vi.reply_next = false;
    vi.reads_in_flight = vi.reads_count = vi.answers.first = vi.reading.placed = vi.placing.placed =
        0;
    vi.receive.takes_shared.store(false, std::memory_order_release);
    credits_.end(vi);
    vi.answers.refused = false;
    vi.begun = vi.pulling = false;
    vi.pull_proof.store(0, std::memory_order_release);  // before the program has its bytes again
    List<Vi, PullLink>::remove_if_linked(vi);
    segments_.leave(vi);
    vi.fast_in = no_fast_path;
    vi.fast_out = vi.small_out = false;
    vi.state.store(state, std::memory_order_release);
    bool fenced = false;
    vi.send.work.wait_for_posters(fenced);
    vi.receive.work.wait_for_posters(fenced);
    VIA_ASSERT(vi.send.work.is_in_order() && vi.receive.work.is_in_order());
    completions_.news().progressed();
}

void Connections::complete_faulty_receives(Vi& vi) {
    queue::WorkQueue& work = vi.receive.work;
    bool failed = false;
    while (vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed &&
           work.has_current() && !work.has_started()) {
        const std::uint32_t fault = work.current().cell().status & queue::status::error_mask;
        if (fault == 0) break;
        ++vi.receive_faults_completed;
        completions_.complete(vi, vi.receive, fault | queue::status::operation_receive);
        failed = true;
    }
    if (failed && vi.reliable() && vi.state_now() == ViState::connected) break_off(vi);
}

void Connections::fail(Vi& vi, wire::FrameKind kind, std::uint32_t message, std::uint32_t code) {
    paths_.notify(vi.path, kind, vi.remote_number, message, code);
    leave(vi, ViState::error);
    completions_.flush(vi);
}

void Connections::break_off_sending(Vi& vi) {
    paths_.notify(vi.path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message);
    leave_sending(vi);
}

void Connections::leave_sending(Vi& vi) {
    const Path& path = paths_[vi.path];
    leave(vi, ViState::error);
    if (path.retransmits)
        late_flushes_.push_back(&vi);
    else
        completions_.flush(vi);
}

FrameVerdict Connections::break_rule(Vi& vi, const wire::Header& header, const char* why) {
    refusals_.note(why);
    paths_.notify(vi.path, wire::FrameKind::nak, vi.remote_number, header.message,
                  static_cast<std::uint32_t>(wire::NakCode::protocol));
    lose(vi);
    return FrameVerdict::refused;
}

void Connections::flush_late() {
    for (Vi* vi : late_flushes_) completions_.flush(*vi);
    late_flushes_.clear();
}

void Connections::lose(Vi& vi) {
    completions_.drain_sends(vi);
    // Receives that wait for messages lose nothing.
    if (vi.send.work.has_outstanding() || vi.receive.work.has_started())
        vi.events |= Vi::lost_descriptors;
    leave(vi, ViState::error);
    completions_.flush(vi);
    if (!mutated(Mutation::lose_silently))
        completions_.news().report(vi, ErrorCode::connection_lost);
    counters_.add(Counter::connections_lost);
}

}  // namespace via::engine
