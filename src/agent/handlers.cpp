// The program's handlers, of errors (VIPL 4.4) and of notifications (4.17), run one after another
// on a thread of their own, with no lock of ours held.
#include "agent/host_agent.hpp"
#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"

#include <utility>

namespace via::agent {

namespace {

constexpr const char* error_texts[] = {
    "a descriptor could not be read",
    "the connection was lost",
    "a message found no receive posted",
    "a completion queue is full",
    "an RDMA write was refused by the protection of memory",
    "an RDMA write met a data error",
    "an RDMA write was aborted",
    "an RDMA read was refused by the protection of memory",
    "a completion could not be written",
    "an RDMA transfer failed",
    "catastrophic error",
};

}  // namespace

/// Called under the turn: only hands over.
void HostAgent::report(const engine::ErrorEvent& event) {
    std::lock_guard guard(handler_mutex_);
    events_.push_back(event);
    events_waiting_.fetch_add(1);
    handler_changed_.notify_all();
}

void HostAgent::run_handlers() {
    std::unique_lock guard(handler_mutex_);
    handlers_id_ = std::this_thread::get_id();
    for (;;) {
        handler_changed_.wait(guard,
                              [this] { return handlers_stop_ || !events_.empty() || look_; });
        if (handlers_stop_) return;
        if (!events_.empty()) run_error_handler(guard);
        if (look_) look_ = run_notification(guard);
    }
}

void HostAgent::run_error_handler(std::unique_lock<std::mutex>& guard) {
    const engine::ErrorEvent event = events_.front();
    events_.pop_front();
    const bool were_too_many = events_waiting_.fetch_sub(1) == events_waiting_max;
    const Handler handler = handler_;
    handler_running_ = true;
    guard.unlock();
    // The engine may have kept back what there was no room for.
    if (were_too_many) work_is_left();
    if (handler.run != nullptr) {
        handler.run(handler.context, event);
    } else {
        // The peer of a program that is done goes first as often as not.
        const bool usual =
            event.code == engine::ErrorCode::connection_lost && !event.with_descriptors;
        log(usual ? 2 : 1, "NIC %s, VI %u: %s%s", nic_.name().c_str(),
            event.vi == nullptr ? 0 : event.vi->index,
            error_texts[static_cast<std::size_t>(event.code)],
            event.with_descriptors ? ", and what was under way with it" : "");
    }
    guard.lock();
    handler_ended();
}

/// The caller holds handler_mutex_.
void HostAgent::handler_ended() {
    handler_running_ = false;
    ++handlers_ended_;
    handler_changed_.notify_all();
}

/// Of the handler that runs, if any: others may follow it at once.
void HostAgent::wait_for_handler(std::unique_lock<std::mutex>& guard) {
    if (!handler_running_ || std::this_thread::get_id() == handlers_id_) return;
    const posix::NotCancelled not_cancelled;
    const std::uint64_t ended = handlers_ended_;
    handler_changed_.wait(guard, [&] { return handlers_ended_ != ended; });
}

// Notifications (VIPL 4.17) -----------------------------------------------------------------------

/// True: there may be another one.
bool HostAgent::run_notification(std::unique_lock<std::mutex>& guard) {
    std::unique_ptr<Notification> notification = notifications_.take_ready();
    if (notification == nullptr) return false;
    handler_running_ = true;
    guard.unlock();
    const bool done = notification->run();
    guard.lock();
    notifications_.finish(std::move(notification), done);
    notifications_changed();
    handler_ended();
    return true;
}

/// The caller holds handler_mutex_. Who polls pays for notifications only while there are some.
void HostAgent::notifications_changed() {
    notified_.store(!notifications_.empty());
    if (!notifications_.empty()) return;
    std::lock_guard guard(waiters_mutex_);
    clear_attention();
}

Status HostAgent::notify(std::unique_ptr<Notification> notification) {
    {
        std::lock_guard guard(handler_mutex_);
        // Who ends the object cancels what waits for it afterwards.
        if (!notification->has_object()) return Status::invalid_parameter;
        if (!notifications_.add(std::move(notification))) return Status::error_resource;
        notified_.store(true);
    }
    nic_.call_for_attention(nic::Nic::anybody_waits);  // before the look below
    {
        std::lock_guard guard(handler_mutex_);
        look_ = true;
        handler_changed_.notify_all();
    }
    // The progress thread serves who cannot poll; it may be waiting for the program's next poll.
    kick();
    return Status::success;
}

/// Somebody's turn made progress.
void HostAgent::look_for_notifications() {
    std::lock_guard guard(handler_mutex_);
    if (look_ || !notifications_.any_ready()) return;
    look_ = true;
    handler_changed_.notify_all();
}

void HostAgent::cancel_notifications(std::uint64_t object) {
    std::unique_lock guard(handler_mutex_);
    const bool running = notifications_.cancel(object);
    if (notified_.load()) notifications_changed();
    if (running) wait_for_handler(guard);
}

Handler HostAgent::set_error_handler(Handler handler) {
    std::unique_lock guard(handler_mutex_);
    std::swap(handler, handler_);
    wait_for_handler(guard);
    return handler;
}

void HostAgent::stop_handlers() {
    {
        std::lock_guard guard(handler_mutex_);
        handlers_stop_ = true;
        handler_changed_.notify_all();
    }
    if (!handlers_.joinable()) return;
    if (std::this_thread::get_id() == handlers_.get_id()) {
        handlers_.detach();  // close() was called by the handler itself; it ends when that returns
    } else {
        handlers_.join();
    }
}

}  // namespace via::agent
