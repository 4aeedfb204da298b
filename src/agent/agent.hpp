// The operating system's side of a NIC (VIA's kernel agent), as the C API layer sees it. HostAgent
// runs on a real host, SimAgent under virtual time. A call of the API blocks only through wait().
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/notifications.hpp"
#include "base/shared_memory.hpp"
#include "base/time.hpp"
#include "engine/engine.hpp"
#include "memory/table.hpp"
#include "nic/nic.hpp"
#include "queue/completion_queue.hpp"

namespace via::agent {

/// Something to wait for. `ready` is called with and without the turn, by any thread, and must not
/// block; it stays true until the waiter has acted on it.
struct Condition {
    bool (*ready)(const void* subject);
    const void* subject;
    bool by_completion = true;  ///< false: no completion of a descriptor makes it ready
};

/// Runs the program's handlers, one after another, on a thread of the agent, no lock held.
struct Handler {
    void (*run)(void* context, const engine::ErrorEvent& event);
    void* context;
};

/// Memory that was made to be shared, and its region.
struct Segment {
    std::byte* base;
    memory::MemoryHandle handle;
};

/// One open NIC and what surrounds it: progress, waiting, error handlers.
class Agent {
public:
    virtual ~Agent() = default;

    virtual nic::Nic& nic() = 0;
    virtual Time now() = 0;
    /// The NIC's address, and the payload bytes of one frame; constant.
    virtual const HostAddress& address() const = 0;
    virtual std::uint32_t payload_max() const = 0;

    /// Registers memory with the NIC (VIPL 4.6) and keeps its pages in place as the NIC's option
    /// `pin` says. error_resource also: they cannot be kept, though they must be. May wait for
    /// memory: never with the turn.
    virtual Result<memory::MemoryHandle> register_memory(
        std::uint64_t address, std::uint64_t length,
        const memory::MemoryAttributes& attributes) = 0;
    /// Ends that (VIPL 4.8); pages that no other region needs are let go.
    virtual Status deregister(memory::MemoryHandle region, std::uint64_t address) = 0;

    /// Returns when condition is ready (true), or at `deadline` or when the NIC closes (false).
    /// Makes progress meanwhile. Any thread; several at once.
    virtual bool wait(const Condition& condition, Time deadline) = 0;

    /// Who hears of asynchronous errors from now on; returns who did before. When it returns, the
    /// former one is not running, unless it is the caller.
    virtual Handler set_error_handler(Handler handler) = 0;
    /// Runs it once when it is ready, on the thread of the error handler. error_resource: too many.
    /// invalid_parameter: its object is gone.
    virtual Status notify(std::unique_ptr<Notification> notification) = 0;
    /// The object is gone: its notifications are, too, and none is running, unless it is the
    /// caller.
    virtual void cancel_notifications(std::uint64_t object) = 0;
    /// A descriptor that is readable while the queue has entries; the agent's, the same each time.
    /// error_resource: none to be had. error_not_supported: this agent has none. By the queue's
    /// name, since it may go until the turn is ours: invalid_parameter.
    virtual Status watch_queue(std::uint64_t name, int& descriptor) = 0;
    /// The program has taken the last entry of a watched queue.
    virtual void queue_is_empty(queue::CompletionQueue& queue) = 0;
    /// A descriptor that is readable while requests wait in the listener of that name; otherwise as
    /// watch_queue().
    virtual Status watch_listener(std::uint64_t name, int& descriptor) = 0;
    /// Memory that other processes can map, registered: zero, begins at a page. error_resource:
    /// none to be had, or as register_memory(); the log says why.
    virtual Result<Segment> make_segment(std::uint64_t length,
                                         const memory::MemoryAttributes& attributes) = 0;
    /// As Nic::remove_segment().
    virtual Status destroy_segment(const std::byte* base) = 0;
    /// Name of a host to the address of its NIC, and back; not found: error_name_service. May wait
    /// for the system's resolver for seconds: never with the turn, or with a lock held.
    virtual Status resolve_host(std::string_view name, std::uint32_t index,
                                HostAddress& address) = 0;
    virtual Status host_name(const HostAddress& address, std::string& name) = 0;
    /// A thread of the program begins to listen: in another network namespace than the NIC's, the
    /// log says so once.
    virtual void listens_here() {}
    /// A call of the program found nobody at that address (NO_MATCH): if there is somebody whom
    /// this process does not meet, the log says where, once. Not with the turn.
    virtual void nobody_is_at(const HostAddress&) {}
    /// Addresses of the NICs that are there now and can be found without asking the network, the
    /// own one included, each once.
    virtual std::vector<HostAddress> discover() = 0;
    /// After this every wait() has returned or returns at once; handlers have ended, but for one
    /// that is calling. The NIC's connections are closed and the peers know. False: the program has
    /// closed the NIC's descriptors, whose numbers may be its own by now; the NIC is left as by a
    /// process that is killed.
    virtual bool close() = 0;
    /// The process ends: the peers know and nothing is left behind, but no call that waits returns
    /// before its time, and no descriptor completes any more. The program's threads, and what it
    /// does last, see nothing of the NIC's end. False: a signal ends the process in the midst of
    /// a call, or one of another thread does not end; all is as if the process were killed, and
    /// calls may wait for ever.
    virtual bool leave() = 0;
    /// After close(): no thread of the agent's own is left, it may be destroyed. Never where that
    /// failed.
    virtual bool is_over() const { return true; }
};

/// Why a NIC could not be opened: invalid_parameter for a bad name, error_resource for the rest.
struct OpenError {
    Status status;
    std::string text;  ///< what is wrong, why, what to do
};
using OpenResult = std::expected<std::unique_ptr<Agent>, OpenError>;

}  // namespace via::agent
