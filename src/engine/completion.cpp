// How descriptors end: the outcome is written back, then the completion queue hears of it.
#include <algorithm>

#include "base/assert.hpp"
#include "engine/engine.hpp"

namespace via::engine {

namespace {

std::uint32_t operation_bits(const queue::WorkEntry& entry) {
    namespace control = queue::control;
    namespace status = queue::status;
    static_assert(status::operation_send == control::send_receive * status::operation_rdma_write &&
                  status::operation_rdma_read == control::rdma_read * status::operation_rdma_write);
    if (is_atomic(entry)) [[unlikely]]
        return (entry.control & control::adds) != 0 ? status::operation_fetch_add
                                                    : status::operation_compare_swap;
    return operation_of(entry) * status::operation_rdma_write;
}

Counter counter_of(const queue::WorkEntry& entry) {
    const std::uint16_t operation = operation_of(entry);
    return operation == queue::control::send_receive ? Counter::sends
           : operation == queue::control::rdma_write ? Counter::rdma_writes
           : operation == queue::control::rdma_read  ? Counter::rdma_reads
                                                     : Counter::atomics;
}

}  // namespace

/// Completes the oldest entry. Status is the last thing written to the program's descriptor: from
/// then on it is the program's again (VIPL 4.9).
void Engine::complete(Vi& vi, ViQueue& queue, std::uint32_t status_bits) {
    VIA_ASSERT(queue.work.has_outstanding());
    queue::WorkEntry& entry = queue.work.oldest().cell();
    if (!queue.work.has_started()) queue.work.start_next();
    entry.status = status_bits | queue::status::done;
    if ((status_bits & queue::status::error_mask) != 0)
        counters_.add((status_bits & queue::status::flushed) != 0 ? Counter::descriptors_flushed
                                                                  : Counter::descriptors_failed);
    __atomic_store_n(&entry.descriptor->control.status, entry.status, __ATOMIC_RELEASE);
    queue.work.complete_oldest();
    news_.completed();
    if (queue.completions != nullptr) enter(vi, queue);
}

/// Where there is no room, or others wait.
void Engine::enter_behind(const queue::Completion& completion, std::uint32_t nth,
                          queue::CompletionQueue& completions) {
    if (completions.push(completion, nth)) {
        counters_.add(Counter::completion_queue_overruns);
        overrun_.push_back(&completions);
        news_.overran(completions);
        news_.chore_came();
    }
    if (completions.waiting() <= limits_.completion_queue_entries_max) return;
    // Bounded by what is outstanding: forget completions whose descriptor was taken directly.
    completions.drop_taken([this](const queue::Completion& waiting) {
        Vi& owner = vis_[static_cast<std::uint32_t>(waiting.vi & 0xFFFF)];
        return (waiting.receive ? owner.receive : owner.send).work.taken_count();
    });
}

void Engine::pump_overrun() {
    std::erase_if(overrun_, [this](queue::CompletionQueue* queue) {
        const std::size_t before = queue->waiting();
        queue->pump();
        if (queue->waiting() != before) {
            news_.progressed();
            if (queue->watched()) news_.signal(*queue);
        }
        return queue->waiting() == 0;
    });
}

void Engine::forget(const queue::CompletionQueue& queue) {
    std::erase(overrun_, &queue);
    news_.forget(queue);
}

void Engine::complete_receive(Vi& vi, std::uint32_t status_bits, std::uint32_t length,
                              const std::uint32_t* immediate) {
    queue::Descriptor& descriptor = *vi.receive.work.oldest().cell().descriptor;
    descriptor.control.length = length;
    if (immediate != nullptr) {
        descriptor.control.immediate_data = *immediate;
        status_bits |= queue::status::immediate;
    }
    if ((status_bits & queue::status::error_mask) == 0) counters_.add(Counter::receives);
    complete(vi, vi.receive, status_bits);
}

/// Completes finished sends from the oldest on: always in posting order (VIPL 4.15).
void Engine::drain_sends(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    while (work.has_started()) {
        const queue::WorkEntry& entry = work.oldest().cell();
        if ((entry.status & queue::status::done) == 0) return;
        if ((entry.status & queue::status::error_mask) == 0) counters_.add(counter_of(entry));
        complete(vi, vi.send, entry.status | operation_bits(entry));
    }
}

void Engine::flush_queue(Vi& vi, ViQueue& queue) {
    const bool receive = &queue == &vi.receive;
    while (queue.work.has_outstanding()) {
        queue::WorkEntry& entry = queue.work.oldest().cell();
        const std::uint32_t operation =
            receive ? queue::status::operation_receive : operation_bits(entry);
        // What was decided before the end keeps its own outcome.
        const bool decided = queue.work.has_started() && (entry.status & queue::status::done) != 0;
        if (receive && (entry.status & queue::status::error_mask) != 0)
            ++vi.receive_faults_completed;
        VIA_ASSERT(static_cast<std::int32_t>(vi.receive_faults.load(std::memory_order_relaxed) -
                                             vi.receive_faults_completed) >= 0);
        complete(vi, queue, (decided ? entry.status : queue::status::flushed) | operation);
    }
}

void Engine::flush(Vi& vi) {
    VIA_ASSERT(vi.state_now() != ViState::connected && vi.path == no_path);
    drain_sends(vi);
    flush_queue(vi, vi.send);
    flush_queue(vi, vi.receive);
}

/// A receive that was posted with a fault completes as soon as it is the oldest.
void Engine::complete_faulty_receives(Vi& vi) {
    queue::WorkQueue& work = vi.receive.work;
    bool failed = false;
    while (vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed &&
           work.has_current() && !work.has_started()) {
        const std::uint32_t fault = work.current().cell().status & queue::status::error_mask;
        if (fault == 0) break;
        ++vi.receive_faults_completed;
        complete(vi, vi.receive, fault | queue::status::operation_receive);
        failed = true;
    }
    if (failed && vi.reliable() && vi.state_now() == ViState::connected) break_off(vi);
}

void Engine::fail(Vi& vi, wire::FrameKind kind, std::uint32_t message, std::uint32_t code) {
    paths_.notify(vi.path, kind, vi.remote_number, message, code);
    leave(vi, ViState::error);
    flush(vi);
}

/// As fail(): for a reason that is none of the peer's.
void Engine::break_off(Vi& vi) { fail(vi, wire::FrameKind::disconnect, vi.expected_message, 0); }

/// As break_off(), while frames are being made. Those before may still be read until the devices
/// were notified; then their bytes are the program's again.
void Engine::break_off_sending(Vi& vi) {
    const Path& path = paths_[vi.path];
    paths_.notify(vi.path, wire::FrameKind::disconnect, vi.remote_number, vi.expected_message);
    leave(vi, ViState::error);
    flush_behind(vi, path);
}

void Engine::flush_behind(Vi& vi, const Path& path) {
    if (!path.retransmits) return flush(vi);
    late_flushes_.push_back(&vi);
}

void Engine::flush_late() {
    for (Vi* vi : late_flushes_) flush(*vi);
    late_flushes_.clear();
}

void Engine::lose(Vi& vi) {
    drain_sends(vi);
    // Receives that wait for messages lose nothing.
    if (vi.send.work.has_outstanding() || vi.receive.work.has_started())
        vi.events |= Vi::lost_descriptors;
    leave(vi, ViState::error);
    flush(vi);
    news_.report(vi, ErrorCode::connection_lost);
    counters_.add(Counter::connections_lost);
}

}  // namespace via::engine
