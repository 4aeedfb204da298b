// Completion queues that a program watches with poll(2) and its kin: each has an eventfd that is
// readable while the queue has entries. The program sleeps outside of the library, so the progress
// thread serves the NIC at once and stays armed while the program looks now and then.
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/event.hpp"
#include "agent/host_agent.hpp"
#include "agent/not_cancelled.hpp"
#include "agent/process.hpp"

namespace via::agent {

Status HostAgent::watch_queue(std::uint64_t name, int& descriptor) {
    // Entries come under the turn: each finds the queue watched, or we find it. A queue goes under
    // it, too, and takes its descriptor along.
    const Status status = nic_.holding_turn([&] {
        queue::CompletionQueue* queue = nic_.completion_queue(name);
        return queue == nullptr ? Status::invalid_parameter : begin_to_watch(*queue, descriptor);
    });
    if (status == Status::success) kick();
    return status;
}

Status HostAgent::begin_to_watch(queue::CompletionQueue& queue, int& descriptor) {
    std::lock_guard guard(queues_mutex_);
    QueueDescriptor& watched = queues_[&queue];
    if (watched.descriptor < 0) {
        watched.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (watched.descriptor < 0) {
            log(1, "NIC %s: no descriptor for a completion queue: %s", nic_.name().c_str(),
                strerror(errno));
            queues_.erase(&queue);
            return Status::error_resource;
        }
        queues_watched_.fetch_add(1);
    }
    queue.watch();
    // Entries that came before nobody tells of.
    if (queue.has_entry()) make_readable(watched);
    descriptor = watched.descriptor;
    return Status::success;
}

/// The caller holds queues_mutex_.
void HostAgent::make_readable(QueueDescriptor& watched) {
    if (watched.readable) return;
    watched.readable = true;
    if (!set_event(watched.descriptor))
        log(0, "cannot make a completion queue's descriptor readable: %s", strerror(errno));
}

/// Under the turn.
void HostAgent::entry_came(queue::CompletionQueue& queue) {
    std::lock_guard guard(queues_mutex_);
    const auto at = queues_.find(&queue);
    // The program may have taken the entry already: then there is nothing to tell.
    if (at != queues_.end() && queue.has_entry()) make_readable(at->second);
}

void HostAgent::queue_is_empty(queue::CompletionQueue& queue) {
    std::lock_guard guard(queues_mutex_);
    const auto at = queues_.find(&queue);
    // An entry that comes after this look is told of after we let the lock go.
    if (at == queues_.end() || !at->second.readable || queue.has_entry()) return;
    if (!clear_event(at->second.descriptor))
        log(0, "cannot read a completion queue's descriptor: %s", strerror(errno));
    at->second.readable = false;
}

/// Under the turn.
void HostAgent::queue_goes(const queue::CompletionQueue& queue) {
    std::lock_guard guard(queues_mutex_);
    const auto at = queues_.find(&queue);
    if (at == queues_.end()) return;
    close_uncancelled(at->second.descriptor);
    queues_.erase(at);
    queues_watched_.fetch_sub(1);
}

}  // namespace via::agent
