#include "agent/watched_objects.hpp"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/event.hpp"
#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

Status WatchedObjects::watch_queue(std::uint64_t name, int& descriptor) {
    // Entries come under the turn: each finds the queue watched, or we find it. A queue goes under
    // it, too, and takes its descriptor along.
    return nic_.holding_turn([&] {
        queue::CompletionQueue* queue = nic_.completion_queue(name);
        if (queue == nullptr) return Status::invalid_parameter;
        std::lock_guard guard(mutex_);
        Watched* watched = begin_to_watch(queue, true);
        if (watched == nullptr) return Status::error_resource;
        queue->watch();
        // Entries that came before nobody tells of.
        if (queue->has_entry()) make_readable(*watched);
        descriptor = watched->descriptor;
        return Status::success;
    });
}

/// Requests come and are taken under the turn, and what became of their number is told under it.
Status WatchedObjects::watch_listener(std::uint64_t name, int& descriptor) {
    return nic_.holding_turn([&] {
        engine::Backlog* backlog = nic_.listener(name);
        if (backlog == nullptr) return Status::invalid_parameter;
        std::lock_guard guard(mutex_);
        Watched* watched = begin_to_watch(backlog, false);
        if (watched == nullptr) return Status::error_resource;
        backlog->watched = true;
        if (backlog->waiting.load() != 0) make_readable(*watched);
        descriptor = watched->descriptor;
        return Status::success;
    });
}

// The caller of these three holds mutex_.

/// nullptr: there is no descriptor for it.
WatchedObjects::Watched* WatchedObjects::begin_to_watch(const void* object, bool is_queue) {
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
    (is_queue ? queues_ : listeners_).fetch_add(1);
    return &watched;
}

void WatchedObjects::make_readable(Watched& watched) {
    if (watched.readable) return;
    watched.readable = true;
    if (!set_event(watched.descriptor))
        log(0, "cannot make a program's descriptor readable (write): %s", strerror(errno));
}

void WatchedObjects::make_unreadable(Watched& watched) {
    if (!watched.readable) return;
    if (!clear_event(watched.descriptor))
        log(0, "cannot read a program's descriptor (read): %s", strerror(errno));
    watched.readable = false;
}

void WatchedObjects::end_watching(const void* object) {
    std::lock_guard guard(mutex_);
    const auto at = watched_.find(object);
    if (at == watched_.end()) return;
    posix::close_uncancelled(at->second.descriptor);
    (at->second.is_queue ? queues_ : listeners_).fetch_sub(1);
    watched_.erase(at);
}

void WatchedObjects::close_all() {
    std::lock_guard guard(mutex_);
    for (const auto& [object, watched] : watched_) ::close(watched.descriptor);
    watched_.clear();
}

void WatchedObjects::entry_came(queue::CompletionQueue& queue) {
    std::lock_guard guard(mutex_);
    const auto at = watched_.find(&queue);
    // The program may have taken the entry already: then there is nothing to tell.
    if (at != watched_.end() && queue.has_entry()) make_readable(at->second);
}

void WatchedObjects::queue_is_empty(queue::CompletionQueue& queue) {
    std::lock_guard guard(mutex_);
    const auto at = watched_.find(&queue);
    // An entry that comes after this look is told of after we let the lock go.
    if (at != watched_.end() && !queue.has_entry()) make_unreadable(at->second);
}

void WatchedObjects::requests_changed(engine::Backlog& backlog) {
    std::lock_guard guard(mutex_);
    const auto at = watched_.find(&backlog);
    if (at == watched_.end()) return;
    if (backlog.waiting.load(std::memory_order_relaxed) != 0)
        make_readable(at->second);
    else
        make_unreadable(at->second);
}

}  // namespace via::agent
