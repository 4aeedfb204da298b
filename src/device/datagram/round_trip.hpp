// The round trip of a path as RFC 6298 has it, and the least one of late.
#pragma once

#include "base/time.hpp"

namespace via::device::datagram {

class RoundTrip {
public:
    /// What the other side of meeting suggests, until the first true sample.
    void suppose(Duration sample);
    /// `delay`: what the peer may have taken to answer, as it says; `late`: how long the answer may
    /// have waited for us.
    void add(Duration sample, Duration delay, Duration late, Time now);

    bool known() const { return known_; }
    Duration smoothed() const { return smoothed_; }
    Duration deviation() const { return deviation_; }
    /// The way's part of the last one, never below the least: who was away says nothing of it.
    Duration latest() const { return latest_; }
    /// Of the last 10 s, at least of the last five.
    Duration least() const { return least_now_ < least_before_ ? least_now_ : least_before_; }

private:
    bool known_ = false;
    Duration smoothed_{};
    Duration deviation_{};
    Duration latest_{};
    Duration least_now_ = seconds(3600);     ///< of the present half of the memory
    Duration least_before_ = seconds(3600);  ///< of the half before
    Time half_ends_{};
};

}  // namespace via::device::datagram
