#include "agent/handler_thread.hpp"

#include <utility>

#include "agent/process.hpp"
#include "agent/thread.hpp"
#include "posix/not_cancelled.hpp"

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

void HandlerThread::start() {
    thread_ = start_thread([this] {
        run();
        over_.store(true);
    });
}

void HandlerThread::report(const engine::ErrorEvent& error) {
    std::lock_guard guard(mutex_);
    errors_.push_back(error);
    errors_waiting_.fetch_add(1);
    changed_.notify_all();
}

void HandlerThread::run() {
    std::unique_lock guard(mutex_);
    id_ = std::this_thread::get_id();
    for (;;) {
        changed_.wait(guard, [this] { return stop_ || !errors_.empty() || look_; });
        if (stop_) return;
        if (!errors_.empty()) run_error_handler(guard);
        if (look_) look_ = run_notification(guard);
    }
}

void HandlerThread::run_error_handler(std::unique_lock<std::mutex>& guard) {
    const engine::ErrorEvent event = errors_.front();
    errors_.pop_front();
    const bool were_too_many = errors_waiting_.fetch_sub(1) == errors_waiting_max;
    const Handler handler = handler_;
    running_ = true;
    guard.unlock();
    // The engine may have kept back what there was no room for.
    if (were_too_many) attendant_.work_is_left();
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

/// The caller holds mutex_.
void HandlerThread::handler_ended() {
    running_ = false;
    ++ended_;
    changed_.notify_all();
}

/// Of the handler that runs, if any: others may follow it at once.
void HandlerThread::wait_for_handler(std::unique_lock<std::mutex>& guard) {
    if (!running_ || std::this_thread::get_id() == id_) return;
    const posix::NotCancelled not_cancelled;
    const std::uint64_t ended = ended_;
    changed_.wait(guard, [&] { return ended_ != ended; });
}

// Notifications (VIPL 4.17) -----------------------------------------------------------------------

/// True: there may be another one.
bool HandlerThread::run_notification(std::unique_lock<std::mutex>& guard) {
    std::unique_ptr<Notification> notification = notifications_.take_ready();
    if (notification == nullptr) return false;
    running_ = true;
    guard.unlock();
    const bool done = notification->run();
    guard.lock();
    notifications_.finish(std::move(notification), done);
    notifications_changed();
    handler_ended();
    return true;
}

/// The caller holds mutex_. Who polls pays for notifications only while there are some.
void HandlerThread::notifications_changed() {
    notified_.store(!notifications_.empty());
    if (notifications_.empty()) waiters_.clear_attention();
}

Status HandlerThread::notify(std::unique_ptr<Notification> notification) {
    {
        std::lock_guard guard(mutex_);
        // Who ends the object cancels what waits for it afterwards.
        if (!notification->has_object()) return Status::invalid_parameter;
        if (!notifications_.add(std::move(notification))) return Status::error_resource;
        notified_.store(true);
    }
    nic_.call_for_attention(nic::Nic::anybody_waits);  // before the look below
    {
        std::lock_guard guard(mutex_);
        look_ = true;
        changed_.notify_all();
    }
    return Status::success;
}

void HandlerThread::look_for_ready() {
    std::lock_guard guard(mutex_);
    if (look_ || !notifications_.any_ready()) return;
    look_ = true;
    changed_.notify_all();
}

void HandlerThread::cancel_notifications(std::uint64_t object) {
    std::unique_lock guard(mutex_);
    const bool running = notifications_.cancel(object);
    if (notified_.load()) notifications_changed();
    if (running) wait_for_handler(guard);
}

Handler HandlerThread::set_error_handler(Handler handler) {
    std::unique_lock guard(mutex_);
    std::swap(handler, handler_);
    wait_for_handler(guard);
    return handler;
}

void HandlerThread::stop() {
    {
        std::lock_guard guard(mutex_);
        stop_ = true;
        changed_.notify_all();
    }
    if (!thread_.joinable()) return;
    if (std::this_thread::get_id() == thread_.get_id()) {
        thread_.detach();  // close() was called by the handler itself; it ends when that returns
    } else {
        thread_.join();
    }
}

}  // namespace via::agent
