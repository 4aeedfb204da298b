// Somebody else who wants a processor and never gives it back: what is measured must share it.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "bench/clock.hpp"

namespace via::bench {

// While it lives, a thread spins on the processors that the maker may run on.
class Spinner {
public:
    Spinner()
        : thread_([this] {
              while (!ended_.load(std::memory_order_relaxed)) relax();
          }) {}
    Spinner(const Spinner&) = delete;
    Spinner& operator=(const Spinner&) = delete;
    ~Spinner() {
        ended_.store(true, std::memory_order_relaxed);
        thread_.join();
    }

private:
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

}  // namespace via::bench
