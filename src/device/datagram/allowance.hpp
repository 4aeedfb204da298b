// How often in a second something is done for others: those whom a hash of their address puts
// together get no more of it in a tenth of a second than they leave. So one who asks without end
// has half, and what comes evenly finds something at any moment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.hpp"

namespace via::device::datagram {

class Allowance {
public:
    /// After a time in which nobody asked, `at_once` may come together.
    Allowance(std::uint32_t per_second, std::uint32_t at_once)
        : each_(Duration{seconds(1).ns / per_second}), most_(at_once), left_(at_once) {}

    /// False: not now. `who`: a hash.
    bool take(std::uint64_t who, Time now) {
        refill(now);
        std::uint32_t& taken = taken_[who % taken_.size()];
        if (taken >= left_) return false;
        ++taken;
        --left_;
        return true;
    }

private:
    void refill(Time now) {
        if (const std::int64_t more = (now - refilled_).ns / each_.ns; more >= most_) {
            left_ = most_;
            refilled_ = now;
        } else if (more > 0) {
            left_ = std::min(left_ + static_cast<std::uint32_t>(more), most_);
            refilled_ = refilled_ + Duration{more * each_.ns};
        }
        if (now - counted_from_ < milliseconds(100)) return;
        counted_from_ = now;
        taken_.fill(0);
    }

    Duration each_;
    std::uint32_t most_;
    std::uint32_t left_;
    Time refilled_{};
    Time counted_from_{};
    std::array<std::uint32_t, 64> taken_{};
};

}  // namespace via::device::datagram
