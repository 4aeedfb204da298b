// SPDX-License-Identifier: Apache-2.0
// A counter of completions.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "common.hpp"

namespace via::fabric {

class Domain;

class Counter : public fid_cntr {
public:
    static int open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter,
                    void* context);

    /// What counts is found by look(object); the same one may be named several times.
    void watch(void* object, void (*look)(void* object));
    void unwatch(const void* object);
    /// fi_ep_bind(): for each of `kinds` that is among `flags` into the place beside it. 0, or an
    /// error of libfabric's.
    int bind(std::span<const std::uint64_t> kinds, std::span<Counter*> places, std::uint64_t flags);
    /// Makes progress. Has it counted anything that the program has not read?
    bool has_news();
    void count(bool error) { (error ? errors_ : value_).fetch_add(1, std::memory_order_release); }
    Users users;

private:
    friend struct CounterOperations;
    Counter(Domain& domain, void* context);
    ~Counter();
    struct Source {
        void* object;
        void (*look)(void* object);
    };
    void progress();
    int wait(std::uint64_t threshold, int timeout_ms);

    Domain& domain_;
    std::mutex lock_;
    std::vector<Source> sources_;
    std::atomic<std::uint64_t> value_{0};
    std::atomic<std::uint64_t> errors_{0};
    std::atomic<std::uint64_t> value_read_{0};
    std::atomic<std::uint64_t> errors_read_{0};
};

}  // namespace via::fabric
