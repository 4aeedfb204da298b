// The time of a simulated network: stands still until somebody moves it on.
#pragma once

#include "base/assert.hpp"
#include "base/time.hpp"

namespace via::device::sim {

class VirtualClock {
public:
    Time now() const { return now_; }
    /// Never back.
    void advance_to(Time moment) {
        VIA_ASSERT(moment >= now_ && !moment.is_never());
        now_ = moment;
    }

private:
    Time now_{};
};

}  // namespace via::device::sim
