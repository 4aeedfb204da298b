#include "engine/completions.hpp"

#include "base/assert.hpp"

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

void Completions::complete(Vi& vi, ViQueue& queue, std::uint32_t status_bits) {
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
void Completions::enter_behind(const queue::Completion& completion, std::uint32_t nth,
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

void Completions::pump_overrun() {
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

void Completions::forget(const queue::CompletionQueue& queue) {
    std::erase(overrun_, &queue);
    news_.forget(queue);
}

void Completions::complete_receive(Vi& vi, std::uint32_t status_bits, std::uint32_t length,
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

void Completions::drain_sends(Vi& vi) {
    queue::WorkQueue& work = vi.send.work;
    while (work.has_started()) {
        const queue::WorkEntry& entry = work.oldest().cell();
        if ((entry.status & queue::status::done) == 0) return;
        if ((entry.status & queue::status::error_mask) == 0) counters_.add(counter_of(entry));
        complete(vi, vi.send, entry.status | operation_bits(entry));
    }
}

void Completions::flush_queue(Vi& vi, ViQueue& queue) {
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

void Completions::flush(Vi& vi) {
    VIA_ASSERT(vi.state_now() != ViState::connected && vi.path == no_path);
    drain_sends(vi);
    flush_queue(vi, vi.send);
    flush_queue(vi, vi.receive);
}

}  // namespace via::engine
