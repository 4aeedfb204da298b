// How far the end of a NIC has come.
#pragma once

#include "base/atomic.hpp"

namespace via::agent {

struct Ending {
    Atomic<bool> closing{false};  ///< calls that wait return
    Atomic<bool> leaving{false};  ///< the process ends: nothing comes any more
};

}  // namespace via::agent
