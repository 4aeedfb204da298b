// What of a call waits for all stores before it, each time that it is carried out. To step through
// a call lasts a millisecond, and for so long the NIC's own thread leaves no program alone: it
// looks, takes the turn away, or takes a program that does nothing for one that stands still. So
// the library's threads get what this one leaves of a processor: next to nothing. And each call is
// tried until it has been without all that once, or, where others want the processor, too, until
// nothing of it was there each time: what is always there is found.
#pragma once

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "single_step.hpp"

/// Without it the library makes the fences itself.
inline bool has_membarrier() {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// Threads but this one run where it runs, and when it does not. Its own end: this one may run
/// anywhere again.
class OthersHeldStill {
public:
    OthersHeldStill() {
        held_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
        cpu_set_t here;
        CPU_ZERO(&here);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
        held_ = held_ && sched_setaffinity(0, sizeof here, &here) == 0;
        const sched_param none{};
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            const pid_t thread = std::atoi(task.path().filename().c_str());
            if (thread == gettid()) continue;
            held_ = held_ && sched_setaffinity(thread, sizeof here, &here) == 0 &&
                    sched_setscheduler(thread, SCHED_IDLE, &none) == 0;
        }
    }
    ~OthersHeldStill() { sched_setaffinity(0, sizeof before_, &before_); }
    OthersHeldStill(const OthersHeldStill&) = delete;
    OthersHeldStill& operator=(const OthersHeldStill&) = delete;

    /// False: the system did not let us.
    bool all() const { return held_; }

private:
    cpu_set_t before_{};
    bool held_ = false;
};

/// Which instructions that wait were there in all tries so far; of one that is executed twice, two.
class Always {
public:
    void note(const Steps& one) {
        std::vector<const std::uint8_t*> places(
            one.at.begin(), one.at.begin() + std::min<std::size_t>(one.waits, one.at.size()));
        std::ranges::sort(places);
        if (tries_++ == 0) {
            places_ = places;
            return;
        }
        std::vector<const std::uint8_t*> both;
        std::ranges::set_intersection(places_, places, std::back_inserter(both));
        places_ = both;
    }
    const std::vector<const std::uint8_t*>& places() const { return places_; }

private:
    unsigned tries_ = 0;
    std::vector<const std::uint8_t*> places_;
};

struct Fewest {
    Steps best{~0U, 0, {}};                   ///< no instructions: it was never carried out in full
    std::vector<const std::uint8_t*> always;  ///< instructions that wait
    bool is_at_most(unsigned allowed) const {
        return best.instructions != 0 && (best.waits <= allowed || always.size() <= allowed);
    }
};

/// try_once() passes messages, and looks at a call of the last one. `least`: instructions; a call
/// of fewer found that somebody else had done its work. `allowed`: instructions that wait.
template <class Try>
Fewest step_again_and_again(unsigned least, unsigned allowed, Try try_once) {
    constexpr unsigned tries_max = 200;
    Fewest found;
    Always always;
    for (unsigned tries = 0; tries < tries_max && found.best.waits > allowed; ++tries) {
        const Steps one = try_once();
        if (one.instructions < least) continue;
        always.note(one);
        if (one.waits < found.best.waits) found.best = one;
    }
    found.always = always.places();
    return found;
}
