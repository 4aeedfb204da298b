// For senders of several unreliable frames at once.
#pragma once

#include <sched.h>

#include "harness/check.hpp"

namespace conformance {

/// Keeps the calling thread on the processor that it runs on, until the object goes. The kernel's
/// loopback and cables (veth) keep the order of what one processor sends; a thread that is moved
/// while its last datagram waits there may overtake it, and an unreliable VI drops what comes late
/// (VIPL 4.25).
class OneProcessor {
public:
    OneProcessor() {
        require(sched_getaffinity(0, sizeof before_, &before_) == 0, "processors can be asked for");
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        require(sched_setaffinity(0, sizeof one, &one) == 0, "a processor can be kept");
    }
    OneProcessor(const OneProcessor&) = delete;
    ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }

private:
    cpu_set_t before_;
};

}  // namespace conformance
