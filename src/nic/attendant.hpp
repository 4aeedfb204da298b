// What a NIC asks of its operating system's side.
#pragma once

#include "base/time.hpp"
#include "engine/listening.hpp"
#include "engine/news.hpp"
#include "engine/page_miss.hpp"
#include "queue/completion_queue.hpp"

namespace via::nic {

/// What the agent does for the NIC outside the turn. Implementations may make system calls.
class Attendant {
public:
    virtual ~Attendant() = default;
    /// A turn made progress (completions, states, events) while somebody waits, or the program
    /// polls while the agent sleeps. Called without the turn, by whoever took it.
    virtual void attend() = 0;
    /// Posted work is left that no poll of the program may come to continue. Called without the
    /// turn.
    virtual void work_is_left() {}
    /// A poll moved nothing, and polls_yield says that it shall end so. Called without the turn.
    virtual void yield() {}
    /// A peer's message broke a rule and its connection ended. Called under the turn.
    virtual void refused(const char* /*why*/) {}
    /// Once: an access was refused that whole pages of its region would allow.
    virtual void missed_by_a_page(const engine::PageMiss& /*miss*/) {}
    /// Is there room for one more report()? While not, errors wait in the engine, which keeps each
    /// once per VI. Called under the turn.
    virtual bool wants_reports() { return true; }
    /// A completion queue that the program watches has entries. Called under the turn.
    virtual void entry_came(queue::CompletionQueue& /*queue*/) {}
    /// A completion queue is destroyed. Called under the turn.
    virtual void queue_goes(const queue::CompletionQueue& /*queue*/) {}
    /// In a listener that the program watches there are more requests or fewer than before. Called
    /// under the turn.
    virtual void requests_changed(engine::Backlog& /*backlog*/) {}
    /// A listener is destroyed. Called under the turn.
    virtual void listener_goes(const engine::Backlog& /*backlog*/) {}
    /// An error for the program. Called under the turn: must not call back.
    virtual void report(const engine::ErrorEvent& event) = 0;
    /// The present moment; read only while a deadline is pending.
    virtual Time now() = 0;
};

}  // namespace via::nic
