// SPDX-License-Identifier: Apache-2.0
#include "counter.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "domain.hpp"

namespace via::fabric {

struct CounterOperations {
    static Counter& of(fid_cntr* counter) { return *static_cast<Counter*>(counter); }
    static std::uint64_t read(fid_cntr* counter) {
        of(counter).progress();
        return of(counter).value_read_ = of(counter).value_.load(std::memory_order_acquire);
    }
    static std::uint64_t readerr(fid_cntr* counter) {
        of(counter).progress();
        return of(counter).errors_read_ = of(counter).errors_.load(std::memory_order_acquire);
    }
    static int add(fid_cntr* counter, std::uint64_t value) {
        of(counter).value_ += value;
        return 0;
    }
    static int set(fid_cntr* counter, std::uint64_t value) {
        of(counter).value_ = value;
        return 0;
    }
    static int wait(fid_cntr* counter, std::uint64_t threshold, int timeout_ms) {
        return of(counter).wait(threshold, timeout_ms);
    }
    static int adderr(fid_cntr* counter, std::uint64_t value) {
        of(counter).errors_ += value;
        return 0;
    }
    static int seterr(fid_cntr* counter, std::uint64_t value) {
        of(counter).errors_ = value;
        return 0;
    }
    static int close(fid* counter) {
        if (forked()) return -FI_EOPBADSTATE;
        Counter& object = of(reinterpret_cast<fid_cntr*>(counter));
        if (object.users.any()) return -FI_EBUSY;
        delete &object;
        return 0;
    }
};

namespace {

using Operations = CounterOperations;
fi_ops object_operations = {sizeof(fi_ops), Operations::close, unsupported, unsupported,
                            unsupported,    unsupported,       unsupported};
fi_ops_cntr counter_operations = {sizeof(fi_ops_cntr), Operations::read,  Operations::readerr,
                                  Operations::add,     Operations::set,   Operations::wait,
                                  Operations::adderr,  Operations::seterr};

}  // namespace

Counter::Counter(Domain& domain, void* context)
    : fid_cntr{{FI_CLASS_CNTR, context, &object_operations}, &counter_operations}, domain_(domain) {
    domain_.users.add();
}

Counter::~Counter() { domain_.users.remove(); }

int Counter::open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context) {
    return guarded([&] {
        if (attributes != nullptr &&
            (attributes->events != FI_CNTR_EVENTS_COMP ||
             (attributes->wait_obj != FI_WAIT_NONE && attributes->wait_obj != FI_WAIT_UNSPEC)))
            return -FI_ENOSYS;
        *counter = new Counter(*static_cast<Domain*>(domain), context);
        return 0;
    });
}

int Counter::bind(std::span<const std::uint64_t> kinds, std::span<Counter*> places,
                  std::uint64_t flags) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        if ((flags & kinds[kind]) == 0) continue;
        if (places[kind] != nullptr) return -FI_EINVAL;
        places[kind] = this;
        users.add();
    }
    return 0;
}

void Counter::watch(void* object, void (*look)(void* object)) {
    const std::lock_guard guard(lock_);
    sources_.push_back({object, look});
}

void Counter::unwatch(const void* object) {
    const std::lock_guard guard(lock_);
    const auto found = std::ranges::find(sources_, object, &Source::object);
    if (found != sources_.end()) sources_.erase(found);
}

void Counter::progress() {
    const YieldsLater later(domain_.is_shared());
    const std::lock_guard guard(lock_);
    for (const Source& source : sources_)
        guarded([&] {
            source.look(source.object);
            return 0;
        });
}

bool Counter::has_news() {
    progress();
    return value_ != value_read_ || errors_ != errors_read_;
}

/// -FI_EAVAIL: an error was counted meanwhile.
int Counter::wait(std::uint64_t threshold, int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
    const std::uint64_t errors = errors_.load();
    for (int looks = 0;; ++looks) {
        progress();
        if (value_.load(std::memory_order_acquire) >= threshold) return 0;
        if (errors_.load(std::memory_order_acquire) != errors) return -FI_EAVAIL;
        if (timeout_ms >= 0 && Clock::now() >= end) return -FI_ETIMEDOUT;
        // A counter has nothing to sleep on: what it counts may come from many.
        if (looks > 1000) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

}  // namespace via::fabric
