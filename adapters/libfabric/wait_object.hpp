// SPDX-License-Identifier: Apache-2.0
// What programs sleep on until a completion queue has something.
#pragma once

#include <chrono>
#include <mutex>

#include "common.hpp"

namespace via::fabric {

/// A descriptor that is readable while it shows that, or one that was added is.
class WaitObject {
public:
    WaitObject();
    ~WaitObject();
    WaitObject(const WaitObject&) = delete;
    WaitObject& operator=(const WaitObject&) = delete;

    int descriptor() const { return descriptor_; }
    /// It goes by itself when it is closed. False: the system refuses.
    bool add(int readable);
    /// Any thread.
    void show(bool wanted) noexcept;

    /// fi_cq_sread(): reads until that says anything but -FI_EAGAIN, it is `interrupted`, or the
    /// time is up.
    template <class Read, class Interrupted>
    ssize_t read(Read read, Interrupted interrupted, int timeout_ms) {
        const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
        for (;;) {
            const ssize_t got = read();
            if (got != -FI_EAGAIN || interrupted()) return got;
            if (const int error = sleep(end, timeout_ms < 0)) return error;
        }
    }

private:
    using Clock = std::chrono::steady_clock;
    /// -FI_EAGAIN: the time is up.
    int sleep(Clock::time_point end, bool for_good) const;

    std::mutex lock_;
    bool shown_ = false;
    int descriptor_ = -1;  ///< epoll
    int own_ = -1;
};

}  // namespace via::fabric
