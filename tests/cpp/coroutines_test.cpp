// Completions by co_await.
#include "scene.hpp"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

using namespace via;
using namespace via::test;

namespace coroutines_test {
namespace {

/// One NIC's share of a scene: queue, reactor, buffers, one VI.
struct End {
    End(Nic& nic, Executor* executor)
        : pool(must(BufferPool::create(nic, {.buffers = 16, .size = 64}))),
          queue(must(CompletionQueue::create(nic))),
          reactor(queue, executor),
          async(std::in_place, reactor,
                must(Vi::create(nic, {.sends = &queue, .receives = &queue}))) {
        for (int n = 0; n < 8; ++n) must(vi().post_receive(pool.take()));
    }
    Vi& vi() { return async->vi(); }
    AsyncVi& operator*() { return *async; }

    BufferPool pool;
    CompletionQueue queue;
    Reactor reactor;
    std::optional<AsyncVi> async;
};

class Coroutines : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Coroutines, media());

/// Sends back what comes, until the connection ends.
Detached echo(End& end, bool& ended) {
    for (;;) {
        const auto message = co_await (*end).receive();
        if (!message) break;
        const Buffer buffer = end.pool.reclaim(*message);
        const auto length = message->length();
        EXPECT_TRUE(co_await (*end).send(buffer.descriptor().send(buffer.segment(length))));
        EXPECT_TRUE(end.vi().post_receive(end.pool.take()));
    }
    ended = true;
}

Detached ask(End& end, int rounds, int& answered) {
    for (int n = 0; n < rounds; ++n) {
        Buffer buffer = end.pool.take();
        write_text(buffer.bytes(), std::to_string(n));
        const auto length = std::to_string(n).size();
        const auto sent = co_await (*end).send(buffer.descriptor().send(buffer.segment(length)));
        EXPECT_TRUE(sent);
        const auto answer = co_await (*end).receive();
        if (!answer) co_return;
        EXPECT_EQ(std::to_string(n), text_of_bytes(answer->bytes()));
        EXPECT_TRUE(end.vi().post_receive(end.pool.reclaim(*answer)));
        ++answered;
    }
}

/// Runs what is to be resumed when it is told to.
class Later final : public Executor {
public:
    void resume_later(std::coroutine_handle<> coroutine) noexcept override {
        waiting_.push_back(coroutine);
    }
    std::size_t run() {
        std::size_t count = 0;
        for (; !waiting_.empty(); ++count) {
            const auto next = waiting_.front();
            waiting_.pop_front();
            next.resume();
        }
        return count;
    }

private:
    std::deque<std::coroutine_handle<>> waiting_;
};

TEST_P(Coroutines, EchoByPollingInOneThread) {
    End here(near(), nullptr);
    End there(far(), nullptr);
    connect(here.vi(), there.vi());
    must(far().on_error([](const AsyncError&) {}));
    bool ended = false;
    int answered = 0;
    echo(there, ended);
    ask(here, 100, answered);
    while (answered < 100) {
        must(here.reactor.poll());
        must(there.reactor.poll());
    }
    EXPECT_FALSE(ended);
    here.async.reset();
    while (!ended) must(there.reactor.wait(patience));
}

TEST_P(Coroutines, EchoByWaitingInTwoThreads) {
    End here(near(), nullptr);
    End there(far(), nullptr);
    connect(here.vi(), there.vi());
    must(far().on_error([](const AsyncError&) {}));
    bool ended = false;
    int answered = 0;
    std::thread serving([&] {
        echo(there, ended);
        while (!ended) must(there.reactor.wait(patience));
    });
    ask(here, 100, answered);
    while (answered < 100) must(here.reactor.wait(patience));
    here.async.reset();
    serving.join();
    EXPECT_TRUE(ended);
}

TEST_P(Coroutines, AnExecutorResumesWhenItLikes) {
    Later later;
    End here(near(), &later);
    End there(far(), nullptr);
    connect(here.vi(), there.vi());
    must(far().on_error([](const AsyncError&) {}));
    bool ended = false;
    int answered = 0;
    echo(there, ended);
    ask(here, 3, answered);
    std::size_t resumed = 0;
    while (answered < 3) {
        must(there.reactor.poll());
        const int before = answered;
        must(here.reactor.poll());
        EXPECT_EQ(before, answered) << "the reactor itself resumes nothing";
        resumed += later.run();
    }
    EXPECT_GE(resumed, 3U);
    here.async.reset();
    while (!ended) must(there.reactor.wait(patience));
}

/// A thread that resumes what the reactor hands over.
class Worker final : public Executor {
public:
    ~Worker() override {
        resume_later({});
        thread_.join();
    }
    void resume_later(std::coroutine_handle<> coroutine) noexcept override {
        const std::lock_guard guard(mutex_);
        waiting_.push_back(coroutine);
        changed_.notify_one();
    }

private:
    void run() {
        for (;;) {
            std::unique_lock guard(mutex_);
            changed_.wait(guard, [this] { return !waiting_.empty(); });
            const auto next = waiting_.front();
            waiting_.pop_front();
            guard.unlock();
            if (!next) return;
            next.resume();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::coroutine_handle<>> waiting_;
    std::thread thread_{[this] { run(); }};
};

Detached ask_and_tell(End& end, int rounds, std::promise<int> told) {
    int answered = 0;
    for (; answered < rounds; ++answered) {
        Buffer buffer = end.pool.take();
        if (!co_await (*end).send(buffer.descriptor().send(buffer.segment(1)))) break;
        const auto answer = co_await (*end).receive();
        if (!answer || !end.vi().post_receive(end.pool.reclaim(*answer))) break;
    }
    told.set_value(answered);
}

TEST_P(Coroutines, AnExecutorMayResumeOnAnotherThread) {
    Worker worker;
    End here(near(), &worker);
    End there(far(), nullptr);
    connect(here.vi(), there.vi());
    must(far().on_error([](const AsyncError&) {}));
    bool ended = false;
    echo(there, ended);
    std::promise<int> told;
    auto answered = told.get_future();
    ask_and_tell(here, 100, std::move(told));
    while (answered.wait_for(0s) != std::future_status::ready) {
        must(here.reactor.poll());
        must(there.reactor.poll());
    }
    EXPECT_EQ(100, answered.get());
    here.async.reset();
    while (!ended) must(there.reactor.wait(patience));
}

Detached take_one(AsyncVi& vi, std::vector<int>& order, int name, VIP_RETURN& code) {
    const auto got = co_await vi.receive();
    order.push_back(name);
    code = got ? VIP_SUCCESS : got.error().code();
}

TEST_P(Coroutines, WhoCameFirstIsServedFirstAndNobodyWaitsForEver) {
    auto queue = must(CompletionQueue::create(near()));
    auto pool = must(BufferPool::create(near()));
    Reactor reactor(queue);
    AsyncVi vi(reactor, must(Vi::create(near(), {.sends = &queue, .receives = &queue})));
    std::vector<int> order;
    VIP_RETURN nobody = VIP_SUCCESS;
    take_one(vi, order, 0, nobody);
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, nobody) << "nothing is posted: answered at once";
    must(vi.vi().post_receive(pool.take()));
    VIP_RETURN first = VIP_SUCCESS;
    VIP_RETURN second = VIP_SUCCESS;
    take_one(vi, order, 1, first);
    take_one(vi, order, 2, second);
    EXPECT_EQ(1U, order.size());
    must(vi.vi().disconnect());  // one flushed receive for two who wait
    while (order.size() < 3) must(reactor.wait(patience));
    EXPECT_EQ((std::vector{0, 1, 2}), order);
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, first);
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, second);
}

TEST_P(Coroutines, ASendThatCannotBePostedIsAnsweredAtOnce) {
    auto queue = must(CompletionQueue::create(near()));
    Reactor reactor(queue);
    AsyncVi vi(reactor, must(Vi::create(near(), {.sends = &queue, .receives = &queue})));
    VIP_RETURN code = VIP_SUCCESS;
    [](AsyncVi& on, VIP_RETURN& answer) -> Detached {
        answer = (co_await on.send(Descriptor(nullptr, 0))).error().code();
    }(vi, code);
    EXPECT_EQ(VIP_INVALID_PARAMETER, code);
}

/// A coroutine that its owner may end.
struct Owned {
    struct promise_type {
        Owned get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

TEST_P(Coroutines, OneThatIsDestroyedWhileItWaitsIsForgotten) {
    auto queue = must(CompletionQueue::create(near()));
    auto pool = must(BufferPool::create(near()));
    Reactor reactor(queue);
    AsyncVi vi(reactor, must(Vi::create(near(), {.sends = &queue, .receives = &queue})));
    must(vi.vi().post_receive(pool.take()));
    const Owned waits = [](AsyncVi& on) -> Owned {
        co_await on.receive();
        ADD_FAILURE() << "it was destroyed";
    }(vi);
    std::vector<int> order;
    VIP_RETURN code = VIP_SUCCESS;
    take_one(vi, order, 1, code);
    waits.handle.destroy();
    must(vi.vi().disconnect());
    while (order.empty()) must(reactor.wait(patience));
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, code);
}

/// Each client that comes is one more coroutine, all of them in one thread that sleeps in between.
Detached accept_all(Nic& nic, AsyncListener& listener, Reactor& reactor, int clients, int& met) {
    for (int n = 0; n < clients; ++n) {
        auto request = co_await listener.accept();
        if (!request) {
            ADD_FAILURE() << request.error().message();
            co_return;
        }
        EXPECT_TRUE(*request);
        EXPECT_EQ(std::to_string(n), text_of_bytes(request->private_data()));
        auto vi = must(Vi::create(nic, {.sends = &reactor.queue(), .receives = &reactor.queue()}));
        must(request->accept(vi));
        ++met;
        vi.disconnect();
    }
}

TEST_P(Coroutines, AcceptInTheThreadThatSleepsForCompletions) {
    const std::string name = discriminator("awaited");
    static constexpr int clients = 20;
    auto queue = must(CompletionQueue::create(far()));
    must(near().on_error([](const AsyncError&) {}));
    must(far().on_error([](const AsyncError&) {}));
    Reactor reactor(queue);
    AsyncListener listener(reactor, Listener(far(), name));
    int met = 0;
    accept_all(far(), listener, reactor, clients, met);
    const Address there = must(far().address(name));
    std::thread asking([&] {
        for (int n = 0; n < clients; ++n) {
            auto vi = must(Vi::create(near()));
            const std::string number = std::to_string(n);
            must(vi.connect(there,
                            {.timeout = patience,
                             .data = std::as_bytes(std::span(number.data(), number.size()))}));
        }
    });
    while (met < clients) must(reactor.wait(patience));
    asking.join();
}

TEST_P(Coroutines, RequestsAreHandedOutByPollingAndCompletionsBesideThem) {
    const std::string name = discriminator("polled");
    End here(near(), nullptr);
    End there(far(), nullptr);
    connect(here.vi(), there.vi());
    must(near().on_error([](const AsyncError&) {}));
    must(far().on_error([](const AsyncError&) {}));
    AsyncListener listener(there.reactor, Listener(far(), name));
    int met = 0;
    accept_all(far(), listener, there.reactor, 1, met);
    bool ended = false;
    int answered = 0;
    echo(there, ended);
    ask(here, 10, answered);
    std::thread asking([&, address = must(far().address(name))] {
        auto vi = must(Vi::create(near()));
        must(vi.connect(address, {.timeout = patience, .data = std::as_bytes(std::span("0", 1))}));
    });
    while (answered < 10 || met < 1) {
        must(here.reactor.poll());
        must(there.reactor.poll());
    }
    asking.join();
    here.async.reset();
    while (!ended) must(there.reactor.wait(patience));
}

TEST_P(Coroutines, WhatIsWrongWithAListenerIsToldToWhoAwaits) {
    auto queue = must(CompletionQueue::create(far()));
    Reactor reactor(queue);
    AsyncListener listener(reactor, Listener(far(), std::string(65, 'x')));
    VIP_RETURN code = VIP_SUCCESS;
    [](AsyncListener& from, VIP_RETURN& to) -> Detached {
        const auto request = co_await from.accept();
        to = request ? VIP_SUCCESS : request.error().code();
    }(listener, code);
    EXPECT_EQ(VIP_INVALID_PARAMETER, code);
    EXPECT_EQ(0U, must(reactor.wait(0ms)));
}

}  // namespace
}  // namespace coroutines_test
