// A coroutine of the laboratory: a program, a firmware's loop, an engine. It starts when somebody
// awaits it, or when Schedule::spawn() lets it run by itself.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "base/assert.hpp"

namespace via::lab {

/// What promises of all tasks have in common: who goes on when this one has ended.
struct TaskPromise {
    struct Ending {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
            return ended.promise().next;
        }
        void await_resume() const noexcept {}
    };

    std::suspend_always initial_suspend() const noexcept { return {}; }
    Ending final_suspend() const noexcept { return {}; }
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

    std::coroutine_handle<> next = std::noop_coroutine();
};

/// What the promise of a task that returns a T has of its own.
template <class T>
struct Returns : TaskPromise {
    void return_value(T value) { result = std::move(value); }
    T take() { return std::move(result); }
    T result{};
};
template <>
struct Returns<void> : TaskPromise {
    void return_void() const noexcept {}
    void take() const noexcept {}
};

/// Owns its coroutine. Whoever awaits it gets what it returns.
template <class T = void>
class [[nodiscard]] Task {
public:
    struct Promise : Returns<T> {
        Task get_return_object() { return Task(Handle::from_promise(*this)); }
    };
    using promise_type = Promise;  // as the language wants it
    using Handle = std::coroutine_handle<Promise>;

    explicit Task(Handle handle) : handle_(handle) {}
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
        handle_.promise().next = caller;
        return handle_;
    }
    T await_resume() { return handle_.promise().take(); }

    /// For who runs it without awaiting it.
    std::coroutine_handle<> handle() const { return handle_; }
    bool done() const { return handle_.done(); }

private:
    Handle handle_;
};

}  // namespace via::lab
