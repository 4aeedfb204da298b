// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/coroutine.hpp
 * @brief Completions and requests by co_await: via::Reactor, via::AsyncVi, via::AsyncListener,
 *        via::Executor.
 *
 *     via::Detached echo(via::AsyncVi& vi) {
 *         while (auto message = co_await vi.receive()) ...
 *     }
 *
 * A coroutine that awaits a completion costs no allocation: what the reactor must know of it lies
 * in the coroutine's own frame.
 */
#pragma once

#include <via/listener.hpp>

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <coroutine>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace via {

/**
 * Where coroutines go on; the program's own event loop or thread pool. Without one they go on
 * inside Reactor::poll() and Reactor::wait().
 */
class Executor {
public:
    virtual ~Executor() = default;
    /** Resumes the coroutine later, once, on whatever thread. Must not resume it at once. Called by
     *  the thread that is in the reactor, with no lock held. */
    virtual void resume_later(std::coroutine_handle<> coroutine) noexcept = 0;
};

/** The simplest coroutine: starts at once, nobody waits for it, it frees itself at its end. An
 *  exception that leaves it ends the program. */
struct Detached {
    /** @cond */
    struct promise_type {
        Detached get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    /** @endcond */
};

class AsyncVi;
class AsyncListener;

/** @cond */
namespace detail {

struct Waiter;

/// A list through the waiters themselves, in the order of their coming.
struct WaiterList {
    Waiter* first = nullptr;
    Waiter* last = nullptr;

    inline void append(Waiter& waiter) noexcept;
    inline void remove(Waiter& waiter) noexcept;
};

/// A coroutine that waits; lies in its frame.
struct Waiter {
    Waiter* next = nullptr;
    Waiter* previous = nullptr;
    WaiterList* in = nullptr;
    std::coroutine_handle<> coroutine;
};

/// And what for.
template <class T>
struct WaiterFor : Waiter {
    Expected<T> result;
};

inline void WaiterList::append(Waiter& waiter) noexcept {
    waiter.in = this;
    waiter.next = nullptr;
    waiter.previous = last;
    (last != nullptr ? last->next : first) = &waiter;
    last = &waiter;
}

inline void WaiterList::remove(Waiter& waiter) noexcept {
    (waiter.previous != nullptr ? waiter.previous->next : first) = waiter.next;
    (waiter.next != nullptr ? waiter.next->previous : last) = waiter.previous;
    waiter.in = nullptr;
}

/// A listener of a reactor; the reactor's lock guards it.
struct Listening {
    Listener listener;
    WaiterList waiting;
    int descriptor = -1;
    Expected<void> watched;  ///< in the reactor's epoll set; else why not
};

}  // namespace detail
/** @endcond */

/**
 * Takes completions off a completion queue, and requests off listeners, and lets the coroutines
 * that await them go on. The program calls poll() or wait(), from its event loop or a thread of its
 * own.
 *
 * Threads: any; a reactor's lock is held for a few instructions and never while a coroutine runs.
 * Order of destruction: after its AsyncVis and AsyncListeners, before its queue.
 */
class Reactor {
public:
    /**
     * @param queue     must outlive the reactor, which takes all its entries
     * @param executor  null: coroutines go on inside poll() and wait(); else must outlive it
     */
    explicit Reactor(CompletionQueue& queue, Executor* executor = nullptr) noexcept
        : queue_(queue), executor_(executor) {}
    ~Reactor() {
        if (set_ >= 0) close(set_);
    }
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    /** Takes what is there, without blocking, and lets coroutines go on.
     *  @return how many entries and requests there were */
    Expected<std::size_t> poll() {
        std::array<VIA_COMPLETION, 32> room;
        auto taken = queue_.entries(room);
        if (!taken) return std::unexpected(std::move(taken.error()));
        return serve(*taken);
    }

    /** Sleeps until something is complete, or a request that is awaited comes; then as poll().
     *  @param timeout  or via::forever; when it is over: 0 */
    Expected<std::size_t> wait(std::chrono::milliseconds timeout = forever) {
        int set = -1;
        {
            std::lock_guard guard(mutex_);
            set = listeners_.empty() ? -1 : set_;
        }
        if (set < 0) return wait_for_entry(timeout);
        const detail::Deadline deadline(timeout);
        for (;;) {
            auto served = wait_for_entry(std::chrono::milliseconds(0));  // polls for a moment
            if (served && *served == 0) served = poll();
            if (!served || *served != 0 || deadline.over()) return served;
            const auto left = std::min<std::chrono::milliseconds>(deadline.left(), longest_sleep);
            epoll_event event;
            epoll_wait(set, &event, 1, static_cast<int>(left.count()));
        }
    }

    /** The queue, for its descriptor() for instance. */
    CompletionQueue& queue() const noexcept { return queue_; }

private:
    friend class AsyncVi;
    friend class AsyncListener;
    static constexpr std::chrono::hours longest_sleep{1};
    struct Queues {
        detail::WaiterList sends;
        detail::WaiterList receives;
    };

    Expected<std::size_t> wait_for_entry(std::chrono::milliseconds timeout) {
        VIA_COMPLETION entry{};
        const VIP_RETURN code = VipCQWait(queue_.handle(), detail::timeout_ms(timeout),
                                          &entry.ViHandle, &entry.RecvQueue);
        if (code == VIP_TIMEOUT) return 0;
        if (code != VIP_SUCCESS) return detail::failure(code, "VipCQWait");
        const std::size_t served = serve({&entry, 1});
        auto others = poll();
        if (others) *others += served;
        return others;
    }
    /// An entry says where to look; whoever waits there gets what is done, in order. So do those
    /// who wait for requests.
    std::size_t serve(std::span<const VIA_COMPLETION> entries) {
        std::size_t served = entries.size();
        {
            std::lock_guard guard(mutex_);
            for (const VIA_COMPLETION& entry : entries) {
                const auto found = vis_.find(entry.ViHandle);
                if (found == vis_.end()) continue;
                const bool receive = entry.RecvQueue == VIP_TRUE;
                hand_out(entry.ViHandle, receive,
                         receive ? found->second.receives : found->second.sends);
            }
            for (detail::Listening* listening : listeners_) served += hand_out(*listening);
        }
        run_ready();
        return served;
    }
    /// The caller holds the lock.
    void hand_out(VIP_VI_HANDLE vi, bool receive, detail::WaiterList& waiting) {
        while (waiting.first != nullptr) {
            auto& waiter = static_cast<detail::WaiterFor<Completion>&>(*waiting.first);
            if (!try_take(vi, receive, waiter.result)) return;
            waiting.remove(waiter);
            ready_.append(waiter);
        }
    }
    /// The same for requests; how many there were.
    std::size_t hand_out(detail::Listening& listening) {
        std::size_t count = 0;
        for (; listening.waiting.first != nullptr; ++count) {
            auto& waiter = static_cast<detail::WaiterFor<Request>&>(*listening.waiting.first);
            if (!try_take(listening, waiter.result)) return count;
            listening.waiting.remove(waiter);
            ready_.append(waiter);
        }
        if (count != 0) watch(listening);
        return count;
    }
    static bool try_take(const detail::Listening& listening, Expected<Request>& result) {
        result = listening.listener.done();
        return !result || *result;
    }
    /// The set is ready for it while somebody waits for its requests. The caller holds the lock.
    void watch(detail::Listening& listening) noexcept {
        epoll_event event{};
        if (listening.waiting.first != nullptr) event.events = EPOLLIN;
        epoll_ctl(set_, EPOLL_CTL_MOD, listening.descriptor, &event);
    }
    /// Requests, too, wake who waits from now on.
    Expected<void> enter(detail::Listening& listening) {
        const auto of_listener = listening.listener.descriptor();
        if (!of_listener) return std::unexpected(of_listener.error());
        const auto of_queue = queue_.descriptor();
        if (!of_queue) return std::unexpected(of_queue.error());
        epoll_event event{};
        if (set_ < 0) {
            const int set = epoll_create1(EPOLL_CLOEXEC);
            event.events = EPOLLIN;
            if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, *of_queue, &event) != 0) {
                if (set >= 0) close(set);
                return detail::failure(VIP_ERROR_RESOURCE, "epoll_create1");
            }
            set_ = set;
        }
        event.events = 0;
        if (epoll_ctl(set_, EPOLL_CTL_ADD, *of_listener, &event) != 0)
            return detail::failure(VIP_ERROR_RESOURCE, "epoll_ctl");
        listening.descriptor = *of_listener;
        listeners_.push_back(&listening);
        return {};
    }
    void leave(detail::Listening& listening) noexcept {
        if (listening.descriptor < 0) return;
        epoll_ctl(set_, EPOLL_CTL_DEL, listening.descriptor, nullptr);
        std::erase(listeners_, &listening);
    }
    static bool try_take(VIP_VI_HANDLE vi, bool receive, Expected<Completion>& result) noexcept {
        VIP_DESCRIPTOR* descriptor = nullptr;
        const VIP_RETURN code =
            receive ? VipRecvDone(vi, &descriptor) : VipSendDone(vi, &descriptor);
        if (code == VIP_NOT_DONE) return false;
        result = detail::taken(code, receive ? "VipRecvDone" : "VipSendDone", descriptor, vi);
        return true;
    }
    /// One by one: a coroutine that goes on may end others that are ready.
    void run_ready() {
        for (;;) {
            std::coroutine_handle<> coroutine;
            {
                std::lock_guard guard(mutex_);
                if (ready_.first == nullptr) return;
                coroutine = ready_.first->coroutine;
                ready_.remove(*ready_.first);
            }
            if (executor_ != nullptr)
                executor_->resume_later(coroutine);
            else
                coroutine.resume();
        }
    }

    CompletionQueue& queue_;
    Executor* executor_;
    std::mutex mutex_;
    std::unordered_map<VIP_VI_HANDLE, Queues> vis_;
    std::vector<detail::Listening*> listeners_;
    int set_ = -1;  ///< epoll: the queue's descriptor and the listeners'
    detail::WaiterList ready_;
};

/**
 * A VI whose completions are awaited. Both its queues must complete on the reactor's queue.
 *
 * Several coroutines may await at once; each queue serves them in the order in which they came.
 * Awaiting on a queue where nothing is posted gives the error "nothing is posted", never an endless
 * wait; when the connection ends, whoever waits gets the error of a flushed descriptor.
 *
 * Threads: as Vi. Order of destruction: the coroutines that wait here end first, or are ended
 * (coroutine_handle::destroy) first; then this, then the reactor.
 */
class AsyncVi {
public:
    /** @param vi  made with ViOptions::sends and receives being the reactor's queue */
    AsyncVi(Reactor& reactor, Vi vi) : reactor_(reactor), vi_(std::move(vi)) {
        std::lock_guard guard(reactor_.mutex_);
        queues_ = &reactor_.vis_[vi_.handle()];
    }
    ~AsyncVi() {
        std::lock_guard guard(reactor_.mutex_);
        reactor_.vis_.erase(vi_.handle());
    }
    AsyncVi(const AsyncVi&) = delete;
    AsyncVi& operator=(const AsyncVi&) = delete;

    /** The VI, for posting and connecting; taking completions from it would take them away from
     *  the coroutines. */
    Vi& vi() noexcept { return vi_; }

    /** @cond */
    class Awaiter {
    public:
        Awaiter(AsyncVi& vi, bool receive, const Descriptor* post) noexcept
            : vi_(vi), receive_(receive), post_(post != nullptr, post) {}
        Awaiter(const Awaiter&) = delete;
        Awaiter& operator=(const Awaiter&) = delete;
        /// A coroutine that is destroyed while it waits leaves the queue.
        ~Awaiter() {
            if (!suspended_) return;
            std::lock_guard guard(vi_.reactor_.mutex_);
            if (waiter_.in != nullptr) waiter_.in->remove(waiter_);
        }

        bool await_ready() const noexcept { return false; }
        /// Not inline: another thread may end the coroutine before this returns, so nothing of this
        /// may lie in its frame.
        [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
            std::lock_guard guard(vi_.reactor_.mutex_);
            // Posted under the lock: sends complete in the order in which their coroutines wait.
            if (post_.wanted) {
                auto posted = vi_.vi_.post_send(post_.descriptor);
                if (!posted) {
                    waiter_.result = std::unexpected(std::move(posted.error()));
                    return false;
                }
            }
            detail::WaiterList& waiting = receive_ ? vi_.queues_->receives : vi_.queues_->sends;
            if (waiting.first == nullptr &&
                Reactor::try_take(vi_.vi_.handle(), receive_, waiter_.result))
                return false;
            waiter_.coroutine = coroutine;
            waiting.append(waiter_);
            suspended_ = true;
            return true;
        }
        Expected<Completion> await_resume() noexcept {
            suspended_ = false;
            return std::move(waiter_.result);
        }

    private:
        struct Post {
            Post(bool is_wanted, const Descriptor* what) noexcept
                : wanted(is_wanted), descriptor(is_wanted ? *what : Descriptor(nullptr, 0)) {}
            bool wanted;
            Descriptor descriptor;
        };
        AsyncVi& vi_;
        bool receive_;
        bool suspended_ = false;
        Post post_;
        detail::WaiterFor<Completion> waiter_;
    };
    /** @endcond */

    /** co_await gives the next receive that completes, as Vi::receive_wait(). */
    [[nodiscard]] Awaiter receive() noexcept { return {*this, true, nullptr}; }
    /** co_await gives the next send that completes, as Vi::send_wait(). */
    [[nodiscard]] Awaiter sent() noexcept { return {*this, false, nullptr}; }
    /** co_await posts a send, RDMA write or RDMA read and gives its completion. Do not mix with
     *  sends posted otherwise that nobody awaits. */
    [[nodiscard]] Awaiter send(const Descriptor& descriptor) noexcept {
        return {*this, false, &descriptor};
    }

private:
    Reactor& reactor_;
    Vi vi_;
    Reactor::Queues* queues_;
};

/**
 * A listener whose requests are awaited. Several coroutines may; they get requests in the order in
 * which they came to wait.
 *
 * Threads: as Listener. Make it before any thread is in the reactor's wait(), which does not hear
 * of it otherwise. Order of destruction: the coroutines that wait here end first, or are ended
 * (coroutine_handle::destroy) first; then this, then the reactor.
 */
class AsyncListener {
public:
    /** What goes wrong here, with the listener or its descriptor, accept() tells. */
    AsyncListener(Reactor& reactor, Listener listener)
        : reactor_(reactor), listening_{std::move(listener), {}, -1, {}} {
        std::lock_guard guard(reactor_.mutex_);
        listening_.watched = reactor_.enter(listening_);
    }
    ~AsyncListener() {
        std::lock_guard guard(reactor_.mutex_);
        reactor_.leave(listening_);
    }
    AsyncListener(const AsyncListener&) = delete;
    AsyncListener& operator=(const AsyncListener&) = delete;

    /** @cond */
    class Awaiter {
    public:
        explicit Awaiter(AsyncListener& listener) noexcept : listener_(listener) {}
        Awaiter(const Awaiter&) = delete;
        Awaiter& operator=(const Awaiter&) = delete;
        ~Awaiter() {
            if (!suspended_) return;
            std::lock_guard guard(listener_.reactor_.mutex_);
            if (waiter_.in == nullptr) return;
            waiter_.in->remove(waiter_);
            listener_.reactor_.watch(listener_.listening_);
        }

        bool await_ready() const noexcept { return false; }
        /// Not inline, as AsyncVi's.
        [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
            std::lock_guard guard(listener_.reactor_.mutex_);
            detail::Listening& listening = listener_.listening_;
            if (!listening.watched) {
                waiter_.result = std::unexpected(listening.watched.error());
                return false;
            }
            if (listening.waiting.first == nullptr && Reactor::try_take(listening, waiter_.result))
                return false;
            waiter_.coroutine = coroutine;
            listening.waiting.append(waiter_);
            suspended_ = true;
            listener_.reactor_.watch(listening);
            return true;
        }
        Expected<Request> await_resume() noexcept {
            suspended_ = false;
            return std::move(waiter_.result);
        }

    private:
        AsyncListener& listener_;
        bool suspended_ = false;
        detail::WaiterFor<Request> waiter_;
    };
    /** @endcond */

    /** co_await gives the next request, never an empty one. */
    [[nodiscard]] Awaiter accept() noexcept { return Awaiter(*this); }

private:
    Reactor& reactor_;
    detail::Listening listening_;
};

}  // namespace via
