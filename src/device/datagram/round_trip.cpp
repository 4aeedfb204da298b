#include "device/datagram/round_trip.hpp"

#include <algorithm>
#include <cstdlib>

#include "device/datagram/constants.hpp"

namespace via::device::datagram {

void RoundTrip::suppose(Duration sample) {
    smoothed_ = sample;
    deviation_ = {sample.ns / 2};
    latest_ = sample;
}

void RoundTrip::add(Duration sample, Duration delay, Duration late, Time now) {
    sample.ns = std::max<std::int64_t>(sample.ns, 1);
    if (now >= half_ends_) {
        const bool long_ago = now - half_ends_ >= Duration{round_trip_memory.ns / 2};
        least_before_ = long_ago ? sample : least_now_;
        least_now_ = sample;
        half_ends_ = now + Duration{round_trip_memory.ns / 2};
    }
    least_now_ = std::min(least_now_, sample);
    latest_ = std::max(Duration{sample.ns - delay.ns - late.ns}, least());
    // Who was away will be again, and timers have to wait for him: RFC 9002, 5.3.
    delay = std::min(delay, ack_delay_max);
    if (sample.ns - delay.ns >= least().ns) sample.ns -= delay.ns;
    if (!known_) {  // RFC 6298, 2.2
        known_ = true;
        smoothed_ = sample;
        deviation_ = {sample.ns / 2};
        return;
    }
    // RFC 6298, 2.3
    deviation_.ns += (std::abs(smoothed_.ns - sample.ns) - deviation_.ns) / 4;
    smoothed_.ns += (sample.ns - smoothed_.ns) / 8;
}

}  // namespace via::device::datagram
