// SPDX-License-Identifier: Apache-2.0
// The threads that connect: asking for a connection sleeps in VIPL, and fi_connect must not.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace via::fabric {

/// Whoever asks for a connection. Its memory outlives Connector::cancel().
class Asking {
public:
    /// On a thread of the connector: asks the peer, sleeping, and tells the outcome.
    virtual void connect_now() = 0;
    /// Wakes who is in connect_now(); any thread.
    virtual void interrupt() = 0;
    /// It has returned, and no thread knows of this any more: it may be destroyed.
    virtual void finished() noexcept {}

protected:
    virtual ~Asking() = default;
};

/// Begins a thread that takes no signals of the program.
std::thread start_thread(void (*work)(void*), void* argument);

class Connector {
public:
    Connector() = default;
    ~Connector();
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

    /// Has a thread call asking.connect_now(). Each request holds a thread until the peer's
    /// program answers; beyond 64 they wait for one another.
    void start(Asking& asking);
    /// When it returns nobody connects `asking` any more.
    void cancel(Asking& asking);

private:
    static constexpr std::size_t threads_max = 64;
    static void run(void* self);
    void serve();

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<Asking*> waiting_;
    /// Who was refused may ask again before the thread that told so has let go of it: it is here
    /// twice.
    std::multiset<Asking*> running_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool stopping_ = false;
};

}  // namespace via::fabric
