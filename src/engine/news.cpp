#include "engine/news.hpp"

namespace via::engine {

News::~News() {
    while (eventful_.pop_front() != nullptr) {
    }
}

void News::report(Vi& vi, ErrorCode code) {
    vi.events |= 1U << static_cast<unsigned>(code);
    if (!static_cast<EventLink&>(vi).linked()) eventful_.push_back(vi);
    progressed();
}

/// Counted, where nobody hears as fast as they come: a backlog must not grow without end.
void News::overran(queue::CompletionQueue& queue) {
    const auto told_of = std::find_if(overruns_.begin(), overruns_.end(),
                                      [&](const Overruns& of) { return of.queue == &queue; });
    if (told_of != overruns_.end())
        ++told_of->count;
    else
        overruns_.push_back({&queue, 1});
    any_ = true;
}

bool News::next_event(ErrorEvent& event) {
    event = {};
    // Queues and VIs in turn: neither hides the other's.
    queue_told_ = !overruns_.empty() && (eventful_.empty() || !queue_told_);
    if (queue_told_) {
        event.code = ErrorCode::vi_overrun;
        Overruns overruns = overruns_.front();
        overruns_.pop_front();
        event.completion_queue = overruns.queue;
        if (--overruns.count != 0) overruns_.push_back(overruns);
        return true;
    }
    Vi* vi = eventful_.front();
    if (vi == nullptr) return false;
    // A lost connection is told last: what led to it comes before (VIPL 4.18).
    constexpr std::uint32_t loss = (1U << static_cast<unsigned>(ErrorCode::connection_lost));
    std::uint32_t bits = vi->events & ~(loss | Vi::lost_descriptors);
    if (bits == 0) bits = vi->events;
    const auto code = static_cast<unsigned>(__builtin_ctz(bits));
    event.code = static_cast<ErrorCode>(code);
    if (event.code == ErrorCode::connection_lost)
        event.with_descriptors = std::exchange(vi->events, 0U) >> 31 != 0;
    vi->events &= ~(1U << code);
    event.vi = vi;
    event.vi_generation = vi->generation.load(std::memory_order_relaxed);
    if (vi->events == 0) List<Vi, EventLink>::remove(*vi);
    return true;
}

void News::forget(const queue::CompletionQueue& queue) {
    progressed();  // whoever waits for an entry finds that none will come
    std::erase_if(overruns_, [&](const Overruns& of) { return of.queue == &queue; });
    std::erase(signals_, &queue);
}

void News::forget(Vi& vi) {
    List<Vi, EventLink>::remove_if_linked(vi);
    vi.events = 0;
}

}  // namespace via::engine
