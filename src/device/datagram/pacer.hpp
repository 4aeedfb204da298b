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
        const std::uint64_t while_busy = std::min(
            std::uint64_t{burst_of_fast_way_max},
            window / 4 * 5 / static_cast<std::uint64_t>(round_trip.ns / burst_time.ns + 1));
        burst_ = static_cast<std::int64_t>(std::max(
            {std::min(window, burst_bytes_max), while_busy, std::uint64_t{2} * datagram_max}));
    }
    /// `staged`: bytes that are to leave before. False: ask may_send(), which wants the time.
    bool has_tokens(std::uint64_t staged) const {
        return round_trip_.ns == 0 || tokens_ > static_cast<std::int64_t>(staged);
    }
    /// Packets of that length for which it has them. The last one may go beyond.
    std::uint64_t packets_allowed(std::uint64_t staged, std::uint32_t length) const {
        if (round_trip_.ns == 0) return ~std::uint64_t{0};
        const std::int64_t left = tokens_ - static_cast<std::int64_t>(staged);
        return left <= 0 ? 0 : (static_cast<std::uint64_t>(left) + length - 1) / length;
    }
    bool may_send(std::uint64_t staged, Time now) {
        if (!has_tokens(staged)) refill(now);
        return has_tokens(staged);
    }
    /// What time has brought. Others that get `now` do so by themselves.
    void refill(Time now) {
        if (round_trip_.ns == 0 || now <= refilled_) return;
        const std::int64_t elapsed =
            std::min({now.ns - refilled_.ns, round_trip_.ns, round_trip_greatest.ns});
        // As parts of a round trip in 1/2^28, which with the greatest window fits into 64 bits.
        const std::uint64_t parts = (static_cast<std::uint64_t>(elapsed) << 28) /
                                    static_cast<std::uint64_t>(round_trip_.ns);
        const std::uint64_t came = (parts * window_ / 4 * 5) >> 28;
        if (came == 0) return;  // too little time for a byte: it goes on counting
        tokens_ = std::min(tokens_ + static_cast<std::int64_t>(came), burst_);
        refilled_ = now;
    }
    void sent(std::uint64_t bytes, Time now) {
        if (round_trip_.ns == 0) return;
        refill(now);
        tokens_ -= static_cast<std::int64_t>(bytes);
    }
    /// When half a burst may leave: fewer, larger bursts cost a sleeper less.
    Time next_burst() const {
        const auto wanted =
            static_cast<std::uint64_t>(std::max<std::int64_t>(burst_ / 2 - tokens_, 0));
        const std::uint64_t span =
            wanted * 4 * static_cast<std::uint64_t>(round_trip_.ns) / (window_ * 5 + 1);
        return refilled_ + Duration{static_cast<std::int64_t>(span) + 1};
    }

private:
    static constexpr Duration round_trip_greatest = seconds(16);

    std::uint64_t window_ = 0;
    Duration round_trip_{};
    std::int64_t burst_ = static_cast<std::int64_t>(burst_bytes_max);
    std::int64_t tokens_ = static_cast<std::int64_t>(burst_bytes_max);
    Time refilled_{};
};

}  // namespace via::device::datagram
