// Completion queues and listeners that a program watches with poll(2) and its kin: each has an
// eventfd that is readable while the queue has entries, or requests wait. The program sleeps
// outside of the library, so the progress thread serves the NIC at once and stays armed while the
// program looks now and then; beside a listener's alone, unless it polls steadily.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "base/atomic.hpp"
#include "base/status.hpp"
#include "engine/engine.hpp"
#include "nic/nic.hpp"
#include "queue/completion_queue.hpp"

namespace via::agent {

/// Owns the descriptors. Its mutex is taken under the turn, and nothing under it.
class WatchedObjects {
public:
    explicit WatchedObjects(nic::Nic& nic) : nic_(nic) {}

    /// As Agent::watch_queue() and watch_listener().
    Status watch_queue(std::uint64_t name, int& descriptor);
    Status watch_listener(std::uint64_t name, int& descriptor);
    /// The program has taken its last entry.
    void queue_is_empty(queue::CompletionQueue& queue);
    /// Under the turn, all three.
    void entry_came(queue::CompletionQueue& queue);
    void requests_changed(engine::Backlog& backlog);
    void end_watching(const void* object);
    /// The NIC is closed.
    void close_all();

    bool has_queues() const { return queues_.load() != 0; }
    /// Would the program hear of what it watches outside of the library too late without the
    /// progress thread?
    bool need_service(std::uint64_t polls_since) const {
        return has_queues() || (listeners_.load() != 0 && polls_since < polls_min);
    }

private:
    /// Turns of who only takes and answers requests of a listener that it watches are fewer; who
    /// polls more brings the requests himself.
    static constexpr std::uint64_t polls_min = 4;

    struct Watched {
        int descriptor = -1;  ///< eventfd
        bool readable = false;
        bool is_queue = false;
    };
    Watched* begin_to_watch(const void* object, bool is_queue);
    static void make_readable(Watched& watched);
    static void make_unreadable(Watched& watched);

    nic::Nic& nic_;
    std::mutex mutex_;
    std::map<const void*, Watched> watched_;  ///< by completion queue or listener
    Atomic<std::uint32_t> queues_{0};
    Atomic<std::uint32_t> listeners_{0};
};

}  // namespace via::agent
