// SPDX-License-Identifier: Apache-2.0
// Progress of an endpoint whose program asked for it (FI_PROGRESS_AUTO), while that computes.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "wait_object.hpp"

namespace via::fabric::rdm {

class ProgressThread {
public:
    ProgressThread() = default;
    ~ProgressThread() { stop(); }
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

    /// What there is to do is shown here.
    WaitObject& waiting() { return waiting_; }
    /// Calls `look` whenever something is shown, from a thread of its own.
    void start(std::function<void()> look);
    /// It looks no more when this returns.
    void stop() noexcept;

private:
    static void run(void* self) { static_cast<ProgressThread*>(self)->serve(); }
    void serve();

    WaitObject waiting_;
    std::function<void()> look_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace via::fabric::rdm
