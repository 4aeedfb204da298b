// Room for so many bytes, reserved before they come and given back when they have gone. What does
// not fit waits in the order of asking, or is refused; both are counted.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <deque>

#include "lab/schedule.hpp"

namespace via::lab {

class Fifo {
public:
    Fifo(Schedule& schedule, std::int64_t size) : schedule_(schedule), size_(size) {}

    struct Reserve {
        Fifo& fifo;
        std::int64_t bytes;
        bool waited = false;
        bool await_ready() {
            return fifo.waiting_.empty() && fifo.resuming_ == 0 && fifo.try_reserve(bytes);
        }
        void await_suspend(std::coroutine_handle<> handle) {
            waited = true;
            fifo.waiting_.push_back({handle, bytes});
        }
        void await_resume() {
            if (!waited) return;
            --fifo.resuming_;
            fifo.admit();
        }
    };
    /// Waits until there is room. More than there ever is, is a mistake of the caller.
    Reserve reserve(std::int64_t bytes) {
        VIA_ASSERT(bytes <= size_);
        return {*this, bytes};
    }
    /// False: there is no room now.
    bool try_reserve(std::int64_t bytes) {
        if (used_ + bytes > size_) {
            ++refusals_;
            return false;
        }
        used_ += bytes;
        used_max_ = std::max(used_max_, used_);
        return true;
    }
    void release(std::int64_t bytes) {
        VIA_ASSERT(bytes <= used_);
        used_ -= bytes;
        admit();
    }

    std::int64_t size() const { return size_; }
    std::int64_t used() const { return used_; }
    std::int64_t used_max() const { return used_max_; }
    std::uint64_t refusals() const { return refusals_; }

private:
    struct Waiting {
        std::coroutine_handle<> handle;
        std::int64_t bytes;
    };
    void admit() {
        while (!waiting_.empty() && used_ + waiting_.front().bytes <= size_) {
            used_ += waiting_.front().bytes;
            used_max_ = std::max(used_max_, used_);
            ++resuming_;
            schedule_.resume_at(schedule_.now(), waiting_.front().handle);
            waiting_.pop_front();
        }
    }

    Schedule& schedule_;
    std::int64_t size_;
    std::int64_t used_ = 0;
    std::int64_t used_max_ = 0;
    std::uint64_t refusals_ = 0;
    std::deque<Waiting> waiting_;
    int resuming_ = 0;  ///< that have room and have not run yet: nobody who asks now overtakes them
};

}  // namespace via::lab
