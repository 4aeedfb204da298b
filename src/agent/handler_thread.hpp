// The program's handlers, of errors (VIPL 4.4) and of notifications (4.17), run one after another
// on a thread of their own, with no lock of ours held.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "agent/agent.hpp"
#include "agent/notifications.hpp"
#include "agent/waiters.hpp"
#include "base/atomic.hpp"
#include "engine/engine.hpp"
#include "nic/nic.hpp"

namespace via::agent {

/// Owns the thread that runs handlers, and what they are to be told. Lock order: its mutex, then
/// the waiters'.
class HandlerThread {
public:
    /// All outlive it. `attendant` hears when errors that the NIC kept back have room.
    HandlerThread(nic::Nic& nic, nic::Attendant& attendant, Waiters& waiters)
        : nic_(nic), attendant_(attendant), waiters_(waiters) {}

    /// Throws std::system_error.
    void start();
    /// What runs has ended then, unless it is the caller.
    void stop();
    /// The thread does not touch us any more.
    bool is_over() const { return over_.load(); }

    /// False: a program whose handler does not keep up gets further errors later, none is lost.
    bool wants_errors() const { return errors_waiting_.load() < errors_waiting_max; }
    /// Under the turn: only hands over.
    void report(const engine::ErrorEvent& error);
    /// As Agent::set_error_handler().
    Handler set_error_handler(Handler handler);

    /// As in agent.hpp.
    Status notify(std::unique_ptr<Notification> notification);
    void cancel_notifications(std::uint64_t object);
    /// Somebody's turn made progress.
    void look_for_notifications() {
        if (notified_.load()) look_for_ready();
    }
    bool has_notifications() const { return notified_.load(); }

private:
    static constexpr std::uint32_t errors_waiting_max = 4096;

    void run();
    void run_error_handler(std::unique_lock<std::mutex>& guard);
    bool run_notification(std::unique_lock<std::mutex>& guard);
    void handler_ended();
    void wait_for_handler(std::unique_lock<std::mutex>& guard);
    void look_for_ready();
    void notifications_changed();

    nic::Nic& nic_;
    nic::Attendant& attendant_;
    Waiters& waiters_;

    std::mutex mutex_;  ///< guards what follows, but for atomics
    std::condition_variable changed_;
    std::deque<engine::ErrorEvent> errors_;
    Atomic<std::uint32_t> errors_waiting_{0};  ///< how many there are
    Handler handler_{};
    Notifications notifications_;
    Atomic<bool> notified_{false};  ///< there are notifications
    bool look_ = false;             ///< one of them may be ready
    bool running_ = false;          ///< a handler, of errors or of a notification
    std::uint64_t ended_ = 0;       ///< how many did
    bool stop_ = false;
    std::thread::id id_;  ///< of the thread, also when it was detached
    Atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace via::agent
