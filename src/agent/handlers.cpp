// The program's error handler runs on a thread of its own, with no lock of ours held (VIPL 4.4).
#include "agent/host_agent.hpp"
#include "agent/process.hpp"

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
        handler_changed_.wait(guard, [this] { return handlers_stop_ || !events_.empty(); });
        if (handlers_stop_) return;
        const engine::ErrorEvent event = events_.front();
        events_.pop_front();
        // The engine may have kept back what there was no room for.
        if (events_waiting_.fetch_sub(1) == events_waiting_max) kick();
        const Handler handler = handler_;
        handler_running_ = true;
        guard.unlock();
        if (handler.run != nullptr) {
            handler.run(handler.context, event);
        } else {
            log(1, "NIC %s, VI %u: %s", nic_.name().c_str(),
                event.vi == nullptr ? 0 : event.vi->index,
                error_texts[static_cast<std::size_t>(event.code)]);
        }
        guard.lock();
        handler_running_ = false;
        handler_changed_.notify_all();
    }
}

Handler HostAgent::set_error_handler(Handler handler) {
    std::unique_lock guard(handler_mutex_);
    std::swap(handler, handler_);
    if (std::this_thread::get_id() != handlers_id_)
        handler_changed_.wait(guard, [this] { return !handler_running_; });
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
