// To whom nearly all datagrams go: a majority vote in one pass (Boyer and Moore's), in which one
// to somebody else counts three times. Only what we send counts, so that no stranger decides it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/address.hpp"

namespace via::device::udp {

class BusyPeer {
public:
    /// `enough`: datagrams to one peer, those to others deducted, until it counts as busy; from 2.
    explicit BusyPeer(std::uint32_t enough) : enough_(enough) {}

    /// So many went to the same one. Returns whether it is `address()` that they go to.
    bool count(const HostAddress& to, std::uint32_t times = 1) {
        if (to == peer_) {
            score_ = std::min(score_ + times, enough_);
            busy_ = busy_ || score_ == enough_;
            return true;
        }
        if (score_ > price_of_another * times) {
            score_ -= price_of_another * times;
            return false;
        }
        peer_ = to;
        score_ = std::min(times, enough_ - 1);
        busy_ = false;  // and so it was for a moment, whatever comes next
        return true;
    }
    /// Is there one? From when it got `enough` until less than three of four go to it, for as long
    /// as that takes to use up its score.
    bool is_there() const { return busy_; }
    const HostAddress& address() const { return peer_; }
    void forget() {
        score_ = 0;
        busy_ = false;
    }

private:
    static constexpr std::uint32_t price_of_another = 3;

    HostAddress peer_;
    std::uint32_t score_ = 0;
    std::uint32_t enough_;
    bool busy_ = false;
};

}  // namespace via::device::udp
