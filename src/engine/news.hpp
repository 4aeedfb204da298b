// What few turns have to tell, and to do: one look finds that there is nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/list.hpp"
#include "engine/listening.hpp"
#include "engine/page_miss.hpp"
#include "engine/vi.hpp"
#include "memory/table.hpp"
#include "queue/completion_queue.hpp"

namespace via::engine {

/// An asynchronous error for the program (VIPL 1.6).
struct ErrorEvent {
    ErrorCode code{};
    Vi* vi = nullptr;
    std::uint32_t vi_generation = 0;
    bool with_descriptors = false;  ///< of a lost connection: something under way was lost with it
    queue::CompletionQueue* completion_queue = nullptr;
    std::uint64_t completion_queue_name = 0;  ///< filled in by the NIC, which knows names
};

/// Owns what is told of what was done: progress, errors, queues and backlogs that somebody watches.
class News {
public:
    explicit News(const memory::MemoryTable& memory) : page_misses_(memory) {}
    ~News();
    News(const News&) = delete;
    News& operator=(const News&) = delete;

    /// Counts completions and state changes; whoever waits looks again when it moved.
    std::uint64_t progress() const { return progress_; }
    void completed() { ++progress_; }
    /// By something that is no completion of a descriptor.
    void progressed() {
        ++progress_;
        progressed_ = any_ = true;
    }

    /// Anything for next_event(), next_signal(), next_changed() or take_page_miss(), or progress()
    /// that was no completion of a descriptor? One look; settle() afterwards, which is true in the
    /// latter case.
    bool any() const { return any_; }
    bool settle() {
        any_ = has_event() || !signals_.empty() || !changed_.empty() || page_misses_.any();
        return std::exchange(progressed_, false);
    }

    /// A turn has something to do that few turns have: pulls, questions, peers to be forgotten,
    /// completions that wait for room. One look; settle_chores() afterwards.
    bool has_chores() const { return chores_; }
    void chore_came() { chores_ = true; }
    void settle_chores(bool left) { chores_ = left; }

    // Errors --------------------------------------------------------------------------------------
    void report(Vi& vi, ErrorCode code);
    /// A completion found no room in its queue (VIPL 4.16).
    void overran(queue::CompletionQueue& queue);
    bool has_event() const { return !eventful_.empty() || !overruns_.empty(); }
    bool next_event(ErrorEvent& event);
    /// An access that was refused, for whatever reason; page_miss.hpp says what of it is told.
    void note_refused(memory::MemoryHandle handle, std::uint64_t address, std::uint64_t length,
                      memory::ProtectionTag tag, memory::Access access) noexcept {
        if (page_misses_.note(handle, address, length, tag, access)) any_ = true;
    }
    std::optional<PageMiss> take_page_miss() { return page_misses_.take(); }

    // What the program watches --------------------------------------------------------------------
    void signal(queue::CompletionQueue& queue) {
        if (signals_.empty() || signals_.back() != &queue) signals_.push_back(&queue);
        any_ = true;
    }
    /// A watched queue that got entries, or nullptr.
    queue::CompletionQueue* next_signal() {
        if (signals_.empty()) [[likely]]
            return nullptr;
        queue::CompletionQueue* queue = signals_.back();
        signals_.pop_back();
        return queue;
    }
    void changed(Backlog& backlog) {
        if (static_cast<ChangedLink&>(backlog).linked()) return;
        changed_.push_back(backlog);
        any_ = true;
    }
    /// A watched backlog in which the number of requests changed, or nullptr.
    Backlog* next_changed() { return changed_.pop_front(); }

    /// They are about to be destroyed.
    void forget(const queue::CompletionQueue& queue);
    static void forget(Vi& vi);
    static void forget(Backlog& backlog) { List<Backlog, ChangedLink>::remove_if_linked(backlog); }

private:
    /// VI_OVERRUN of a queue, so often (VIPL 4.16).
    struct Overruns {
        queue::CompletionQueue* queue;
        std::uint64_t count;
    };

    std::uint64_t progress_ = 0;
    bool any_ = false;
    bool progressed_ = false;  ///< by more than completions
    bool chores_ = false;
    bool queue_told_ = false;  ///< the last event was of a queue
    List<Vi, EventLink> eventful_;
    std::deque<Overruns> overruns_;                 ///< each queue's once
    std::vector<queue::CompletionQueue*> signals_;  ///< watched queues that got entries
    List<Backlog, ChangedLink> changed_;
    PageMisses page_misses_;
};

}  // namespace via::engine
