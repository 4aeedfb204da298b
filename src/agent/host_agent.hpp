// The agent on a real host. One per open NIC; two threads: progress and handlers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.hpp"
#include "agent/ending.hpp"
#include "agent/handler_thread.hpp"
#include "agent/host_agent_options.hpp"
#include "agent/locked_lines.hpp"
#include "agent/locked_memory.hpp"
#include "agent/progress_thread.hpp"
#include "agent/statistics.hpp"
#include "agent/waiters.hpp"
#include "agent/watched_objects.hpp"
#include "nic/nic.hpp"

namespace via::agent {

/// Owns one open NIC, its two threads, and what surrounds them, and passes the calls of both sides
/// on. Lock order: the turn, the handlers' mutex, the waiters'; those of the progress thread and of
/// watched objects are taken last.
class HostAgent final : public Agent, private nic::Attendant {
public:
    /// Starts the progress thread. error: what failed and why.
    static OpenResult open(HostAgentOptions options,
                           std::vector<std::unique_ptr<device::Device>> devices,
                           std::unique_ptr<Statistics> statistics);
    ~HostAgent() override;

    nic::Nic& nic() override { return nic_; }
    Time now() override;
    const HostAddress& address() const override { return address_; }
    std::uint32_t payload_max() const override { return payload_max_; }
    Result<memory::MemoryHandle> register_memory(
        std::uint64_t address, std::uint64_t length,
        const memory::MemoryAttributes& attributes) override;
    Status deregister(memory::MemoryHandle region, std::uint64_t address) override;
    bool wait(const Condition& condition, Time deadline) override {
        return waiters_.wait(condition, deadline);
    }
    Handler set_error_handler(Handler handler) override {
        return handlers_.set_error_handler(handler);
    }
    Status watch_queue(std::uint64_t name, int& descriptor) override;
    void queue_is_empty(queue::CompletionQueue& queue) override { watched_.queue_is_empty(queue); }
    Status watch_listener(std::uint64_t name, int& descriptor) override;
    Result<Segment> make_segment(std::uint64_t length,
                                 const memory::MemoryAttributes& attributes) override;
    Status destroy_segment(const std::byte* base) override;
    Status notify(std::unique_ptr<Notification> notification) override;
    void cancel_notifications(std::uint64_t object) override {
        handlers_.cancel_notifications(object);
    }
    Status resolve_host(std::string_view name, std::uint32_t index, HostAddress& address) override;
    Status host_name(const HostAddress& address, std::string& name) override;
    void listens_here() override;
    void nobody_is_at(const HostAddress& address) override;
    std::vector<HostAddress> discover() override;
    bool close() override;
    bool leave() override;
    bool is_over() const override {
        return !ending_.leaving.load() && !abandoned_ && handlers_.is_over();
    }

private:
    HostAgent(HostAgentOptions options, std::unique_ptr<Statistics> statistics);

    // nic::Attendant
    void attend() override;
    void work_is_left() override;
    void yield() override;
    void refused(const char* why) override;
    void missed_by_a_page(const engine::PageMiss& miss) override;
    bool wants_reports() override { return handlers_.wants_errors(); }
    void report(const engine::ErrorEvent& event) override { handlers_.report(event); }
    void entry_came(queue::CompletionQueue& queue) override { watched_.entry_came(queue); }
    void queue_goes(const queue::CompletionQueue& queue) override { watched_.end_watching(&queue); }
    void requests_changed(engine::Backlog& backlog) override { watched_.requests_changed(backlog); }
    void listener_goes(const engine::Backlog& backlog) override { watched_.end_watching(&backlog); }

    bool allowed_by_pages(std::uint64_t address, std::uint64_t length,
                          memory::MemoryAttributes& attributes);
    bool leave_in_time();
    bool abandon();

    HostAgentOptions options_;
    std::unique_ptr<Statistics> statistics_;
    std::unique_ptr<LockedLines> lines_;  ///< of a NIC with a small table; the turn guards it
    nic::Nic nic_;
    RegionPins pins_;
    HostAddress address_;
    std::uint32_t payload_max_ = 0;

    Ending ending_;
    bool abandoned_ = false;                     ///< close() failed; written before anybody asks
    Atomic<std::int64_t> look_elsewhere_at_{0};  ///< ns: not before, for who is not met here
    ino_t network_ = 0;                          ///< namespace in which the NIC was opened
    Atomic<bool> left_network_{false};           ///< that was told

    WatchedObjects watched_{nic_};
    Waiters waiters_{nic_, progress_, handlers_, ending_, options_.period};
    HandlerThread handlers_{nic_, *this, waiters_};
    ProgressThread progress_{nic_, waiters_, watched_, *statistics_, options_, ending_};
};

}  // namespace via::agent
