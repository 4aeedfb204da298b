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

class Endpoint;

/// Begins a thread that takes no signals of the program.
std::thread start_thread(void (*work)(void*), void* argument);

class Connector {
public:
    Connector() = default;
    ~Connector();
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

    /// Has a thread call endpoint.connect_now(). Each request holds a thread until the peer's
    /// program answers; beyond 64 they wait for one another.
    void start(Endpoint& endpoint);
    /// When it returns nobody connects `endpoint` any more.
    void cancel(Endpoint& endpoint);

private:
    static constexpr std::size_t threads_max = 64;
    static void run(void* self);
    void serve();

    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<Endpoint*> waiting_;
    std::set<Endpoint*> running_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool stopping_ = false;
};

}  // namespace via::fabric
