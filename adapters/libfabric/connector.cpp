// SPDX-License-Identifier: Apache-2.0
#include "connector.hpp"

#include <signal.h>

#include <chrono>

namespace via::fabric {

std::thread start_thread(void (*work)(void*), void* argument) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
        sigset_t* mask;
        ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
    } restore{&before};
    return std::thread(work, argument);
}

Connector::~Connector() {
    {
        const std::lock_guard guard(lock_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Connector::start(Asking& asking) {
    const std::lock_guard guard(lock_);
    waiting_.push_back(&asking);
    if (idle_ >= waiting_.size() || threads_.size() == threads_max) {
        changed_.notify_all();
        return;
    }
    try {
        threads_.push_back(start_thread(run, this));
    } catch (...) {
        if (!threads_.empty()) return;  // one of the others will come to it
        waiting_.pop_back();
        throw;
    }
}

void Connector::cancel(Asking& asking) {
    std::unique_lock guard(lock_);
    std::erase(waiting_, &asking);
    while (running_.contains(&asking)) {
        // Again and again: the thread may be just about to ask.
        guard.unlock();
        asking.interrupt();
        guard.lock();
        changed_.wait_for(guard, std::chrono::milliseconds(1));
    }
}

void Connector::run(void* self) { static_cast<Connector*>(self)->serve(); }

void Connector::serve() {
    std::unique_lock guard(lock_);
    for (;;) {
        ++idle_;
        changed_.wait(guard, [&] { return stopping_ || !waiting_.empty(); });
        --idle_;
        if (stopping_) return;
        Asking& asking = *waiting_.front();
        waiting_.pop_front();
        running_.insert(&asking);
        guard.unlock();
        asking.connect_now();
        guard.lock();
        running_.erase(running_.find(&asking));
        asking.finished();
        changed_.notify_all();
    }
}

}  // namespace via::fabric
