// SPDX-License-Identifier: Apache-2.0
#include "rdm/progress_thread.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "connector.hpp"

namespace via::fabric::rdm {

void ProgressThread::start(std::function<void()> look) {
    look_ = std::move(look);
    stopping_ = false;
    thread_ = start_thread(run, this);
}

void ProgressThread::stop() noexcept {
    if (!thread_.joinable()) return;
    stopping_ = true;
    waiting_.show(true);
    thread_.join();
}

void ProgressThread::serve() {
    for (;;) {
        pollfd waited{waiting_.descriptor(), POLLIN, 0};
        if (::poll(&waited, 1, -1) < 0 && errno != EINTR) {
            refused(FI_LOG_EP_DATA, "progress (poll)");
            return;
        }
        // Taken down before it looks: what comes from here on shows itself.
        waiting_.show(false);
        if (stopping_) return;
        look_();
    }
}

}  // namespace via::fabric::rdm
