// Handlers that are run once, when something is ready (VIPL 4.17): the queue of those that wait.
// Only a container; the agent that owns it has a lock around it and a thread that runs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <new>
#include <utility>

namespace via::agent {

class Notification {
public:
    /// `object` names what it waits for: notifications of one object run in order of their coming.
    explicit Notification(std::uint64_t object) : object_(object) {}
    virtual ~Notification() = default;
    Notification(const Notification&) = delete;
    Notification& operator=(const Notification&) = delete;

    std::uint64_t object() const { return object_; }
    /// The object is still there; looked at under the lock that cancel() is called with.
    virtual bool has_object() const { return true; }
    /// Any thread; must not block.
    virtual bool ready() const = 0;
    /// Takes what is ready and runs the program's handler, on the agent's thread with no lock held.
    /// False: somebody else was quicker, it goes on waiting.
    virtual bool run() = 0;

private:
    std::uint64_t object_;
};

class Notifications {
    template <class List>
    static auto first_ready(List& list) {
        // The first of its object only. Objects are few: most lists hold one or two.
        for (auto at = list.begin(); at != list.end(); ++at) {
            const auto same = [&](const auto& one) { return one->object() == (*at)->object(); };
            if ((*at)->ready() && std::find_if(list.begin(), at, same) == at) return at;
        }
        return list.end();
    }

public:
    /// More than that wait for nothing: the program has lost count.
    static constexpr std::size_t notifications_max = 65536;

    bool add(std::unique_ptr<Notification> notification) {
        if (waiting_.size() >= notifications_max) return false;
        try {
            waiting_.push_back(std::move(notification));
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }
    /// One that runs may go back to its place.
    bool empty() const { return waiting_.empty() && running_ == nothing; }
    bool any_ready() const { return first_ready(waiting_) != waiting_.end(); }
    /// The first that is ready, to be run; nullptr: none. finish() follows.
    std::unique_ptr<Notification> take_ready() {
        const auto at = first_ready(waiting_);
        if (at == waiting_.end()) return nullptr;
        std::unique_ptr<Notification> taken = std::move(*at);
        waiting_.erase(at);
        running_ = taken->object();
        return taken;
    }
    /// `done`: what its run() said.
    void finish(std::unique_ptr<Notification> notification, bool done) {
        const bool cancelled = running_ == nothing;
        running_ = nothing;
        if (!done && !cancelled) waiting_.push_front(std::move(notification));
    }
    /// Takes out all of an object. True: one of them is running.
    bool cancel(std::uint64_t object) {
        std::erase_if(waiting_, [&](const auto& one) { return one->object() == object; });
        return std::exchange(running_, running_ == object ? nothing : running_) == object;
    }
    void clear() { waiting_.clear(); }

private:
    static constexpr std::uint64_t nothing = 0;

    std::list<std::unique_ptr<Notification>> waiting_;
    std::uint64_t running_ = nothing;
};

}  // namespace via::agent
