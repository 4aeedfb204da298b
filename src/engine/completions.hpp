// How descriptors end: the outcome is written back, then the completion queue hears of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/counters.hpp"
#include "base/limits.hpp"
#include "engine/mutation.hpp"
#include "engine/news.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"

namespace via::engine {

/// Owns the ends of descriptors: their entries that wait for room in completion queues, and what is
/// told of all that was done.
class Completions {
public:
    Completions(const NicLimits& limits, const memory::MemoryTable& memory, Counters& counters,
                const ViTable& vis)
        : news_(memory), limits_(limits), counters_(counters), vis_(vis) {}

    News& news() { return news_; }
    const News& news() const { return news_; }

    /// Completes the oldest entry. Status is the last thing written to the program's descriptor:
    /// from then on it is the program's again (VIPL 4.9).
    void complete(Vi& vi, ViQueue& queue, std::uint32_t status_bits);
    /// complete() for the current entry, of one cell and without a fault, when nothing before it is
    /// outstanding.
    [[gnu::always_inline]] void complete_current(Vi& vi, ViQueue& queue, queue::WorkEntry& entry,
                                                 std::uint32_t status_bits) {
        entry.status = status_bits | queue::status::done;
        __atomic_store_n(&entry.descriptor->control.status, entry.status, __ATOMIC_RELEASE);
        queue.work.complete_current();
        news_.completed();
        if (queue.completions != nullptr && !mutated(Mutation::complete_small_unheard))
            enter(vi, queue);
    }
    void complete_receive(Vi& vi, std::uint32_t status_bits, std::uint32_t length,
                          const std::uint32_t* immediate);
    /// Completes finished sends from the oldest on: always in posting order (VIPL 4.15).
    void drain_sends(Vi& vi);
    /// Of a VI that is not connected: both queues.
    void flush(Vi& vi);
    void flush_queue(Vi& vi, ViQueue& queue);

    /// Completions that wait for room in their queues enter.
    void pump() {
        if (!overrun_.empty()) pump_overrun();
    }
    bool any_waits() const { return !overrun_.empty(); }
    /// Completions wait in this queue since it was made smaller.
    void watch(queue::CompletionQueue& queue) {
        if (std::find(overrun_.begin(), overrun_.end(), &queue) == overrun_.end())
            overrun_.push_back(&queue);
        news_.chore_came();
    }
    /// The queue is about to be destroyed.
    void forget(const queue::CompletionQueue& queue);

private:
    /// The completion queue hears of what complete() just ended.
    [[gnu::always_inline]] void enter(Vi& vi, ViQueue& queue) {
        const queue::Completion completion = completion_of(vi, queue);
        const std::uint32_t nth = queue.work.completed_count();
        queue::CompletionQueue& completions = *queue.completions;
        if (!completions.push_at_once(completion, nth)) [[unlikely]]
            enter_behind(completion, nth, completions);
        if (mutated(Mutation::enter_completion_twice)) (void)completions.push(completion, nth);
        if (completions.watched()) [[unlikely]]
            news_.signal(completions);
    }
    static queue::Completion completion_of(const Vi& vi, const ViQueue& queue) {
        return {(std::uint64_t{vi.generation.load(std::memory_order_relaxed)} << 16) | vi.index,
                &queue == &vi.receive};
    }
    [[gnu::noinline]] void enter_behind(const queue::Completion& completion, std::uint32_t nth,
                                        queue::CompletionQueue& completions);
    void pump_overrun();

    News news_;
    const NicLimits& limits_;
    Counters& counters_;
    const ViTable& vis_;
    std::vector<queue::CompletionQueue*> overrun_;  ///< queues in which completions wait
};

}  // namespace via::engine
