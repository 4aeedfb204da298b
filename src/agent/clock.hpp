// The time in which the agent thinks, and the NIC.
#pragma once

#include <time.h>

#include "base/time.hpp"

namespace via::agent {

inline Time clock_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {now.tv_sec * 1'000'000'000 + now.tv_nsec};
}

}  // namespace via::agent
