// Completion queues and listeners that a program watches with poll(2) and its kin: each has an
// eventfd that is readable while the queue has entries, or requests wait. The program sleeps
// outside of the library, so the progress thread serves the NIC at once and stays armed while the
// program looks now and then; beside a listener's alone, unless it polls steadily.
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/event.hpp"
#include "agent/host_agent.hpp"
#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

Status HostAgent::watch_queue(std::uint64_t name, int& descriptor) {
    // Entries come under the turn: each finds the queue watched, or we find it. A queue goes under
    // it, too, and takes its descriptor along.
    const Status status = nic_.holding_turn([&] {
        queue::CompletionQueue* queue = nic_.completion_queue(name);
        if (queue == nullptr) return Status::invalid_parameter;
        std::lock_guard guard(watched_mutex_);
        Watched* watched = begin_to_watch(queue, true);
        if (watched == nullptr) return Status::error_resource;
        queue->watch();
        // Entries that came before nobody tells of.
        if (queue->has_entry()) make_readable(*watched);
        descriptor = watched->descriptor;
        return Status::success;
    });
    if (status == Status::success) kick();
    return status;
}

/// Requests come and are taken under the turn, and what became of their number is told under it.
Status HostAgent::watch_listener(std::uint64_t name, int& descriptor) {
    const Status status = nic_.holding_turn([&] {
        engine::Backlog* backlog = nic_.listener(name);
        if (backlog == nullptr) return Status::invalid_parameter;
        std::lock_guard guard(watched_mutex_);
        Watched* watched = begin_to_watch(backlog, false);
        if (watched == nullptr) return Status::error_resource;
        backlog->watched = true;
        if (backlog->waiting.load() != 0) make_readable(*watched);
        descriptor = watched->descriptor;
        return Status::success;
    });
    if (status == Status::success) kick();
    return status;
}

// The caller of these four holds watched_mutex_.

/// nullptr: there is no descriptor for it.
HostAgent::Watched* HostAgent::begin_to_watch(const void* object, bool is_queue) {
    Watched& watched = watched_[object];
    if (watched.descriptor >= 0) return &watched;
    watched.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watched.descriptor < 0) {
        log(1, "NIC %s: no descriptor for a completion queue or listener (eventfd): %s",
            nic_.name().c_str(), strerror(errno));
        watched_.erase(object);
        return nullptr;
    }
    watched.is_queue = is_queue;
    (is_queue ? watched_queues_ : watched_listeners_).fetch_add(1);
    return &watched;
}

void HostAgent::make_readable(Watched& watched) {
    if (watched.readable) return;
    watched.readable = true;
    if (!set_event(watched.descriptor))
        log(0, "cannot make a program's descriptor readable (write): %s", strerror(errno));
}

void HostAgent::make_unreadable(Watched& watched) {
    if (!watched.readable) return;
    if (!clear_event(watched.descriptor))
        log(0, "cannot read a program's descriptor (read): %s", strerror(errno));
    watched.readable = false;
}

void HostAgent::end_watching(const void* object) {
    const auto at = watched_.find(object);
    if (at == watched_.end()) return;
    posix::close_uncancelled(at->second.descriptor);
    (at->second.is_queue ? watched_queues_ : watched_listeners_).fetch_sub(1);
    watched_.erase(at);
}

/// Under the turn.
void HostAgent::entry_came(queue::CompletionQueue& queue) {
    std::lock_guard guard(watched_mutex_);
    const auto at = watched_.find(&queue);
    // The program may have taken the entry already: then there is nothing to tell.
    if (at != watched_.end() && queue.has_entry()) make_readable(at->second);
}

void HostAgent::queue_is_empty(queue::CompletionQueue& queue) {
    std::lock_guard guard(watched_mutex_);
    const auto at = watched_.find(&queue);
    // An entry that comes after this look is told of after we let the lock go.
    if (at != watched_.end() && !queue.has_entry()) make_unreadable(at->second);
}

/// Under the turn.
void HostAgent::queue_goes(const queue::CompletionQueue& queue) {
    std::lock_guard guard(watched_mutex_);
    end_watching(&queue);
}

/// Under the turn.
void HostAgent::requests_changed(engine::Backlog& backlog) {
    std::lock_guard guard(watched_mutex_);
    const auto at = watched_.find(&backlog);
    if (at == watched_.end()) return;
    if (backlog.waiting.load(std::memory_order_relaxed) != 0)
        make_readable(at->second);
    else
        make_unreadable(at->second);
}

/// Under the turn.
void HostAgent::listener_goes(const engine::Backlog& backlog) {
    std::lock_guard guard(watched_mutex_);
    end_watching(&backlog);
}

}  // namespace via::agent
