// Spreads what is sent over the round trip: 5/4 of the window in each, in bursts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

class Pacer {
public:
    /// How fast from now on; a round trip of 0 is not known, and then nothing waits.
    void set_pace(std::uint64_t window, Duration round_trip, std::uint32_t datagram_max) {
        window_ = window;
        round_trip_ = round_trip;
        burst_ = static_cast<std::int64_t>(
            std::max(std::min(window, burst_bytes_max), std::uint64_t{2} * datagram_max));
    }
    bool may_send(Time now) {
        refill(now);
        return round_trip_.ns == 0 || tokens_ > 0;
    }
    void sent(std::uint32_t bytes) {
        if (round_trip_.ns != 0) tokens_ -= bytes;
    }
    /// When half a burst may leave: fewer, larger bursts cost a sleeper less.
    Time next_burst() const {
        const std::int64_t wanted = std::max<std::int64_t>(burst_ / 2 - tokens_, 0);
        const auto span = static_cast<unsigned __int128>(wanted) * 4 *
                          static_cast<std::uint64_t>(round_trip_.ns) / (window_ * 5 + 1);
        return refilled_ + Duration{static_cast<std::int64_t>(span) + 1};
    }

private:
    void refill(Time now) {
        if (round_trip_.ns == 0 || now <= refilled_) return;
        const std::int64_t elapsed = std::min(now.ns - refilled_.ns, round_trip_.ns);
        const auto came = static_cast<unsigned __int128>(elapsed) * window_ * 5 /
                          (4 * static_cast<std::uint64_t>(round_trip_.ns));
        if (came == 0) return;  // too little time for a byte: it goes on counting
        tokens_ = std::min(tokens_ + static_cast<std::int64_t>(came), burst_);
        refilled_ = now;
    }

    std::uint64_t window_ = 0;
    Duration round_trip_{};
    std::int64_t burst_ = static_cast<std::int64_t>(burst_bytes_max);
    std::int64_t tokens_ = static_cast<std::int64_t>(burst_bytes_max);
    Time refilled_{};
};

}  // namespace via::device::datagram
