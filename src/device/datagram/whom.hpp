// Paths by whom they lead to: what anybody may send is looked up here, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "base/address.hpp"
#include "device/device.hpp"

namespace via::device::datagram {

/// A peer's address with a number that it chose: its instance, or an identifier.
struct Whom {
    HostAddress peer;
    std::uint64_t number = 0;
    bool asked_by_us = false;  ///< of a path to ourselves, which has two ends here

    friend bool operator<(const Whom& a, const Whom& b) {
        if (!(a.peer == b.peer))
            return std::lexicographical_compare(
                a.peer.bytes.begin(), a.peer.bytes.begin() + a.peer.length, b.peer.bytes.begin(),
                b.peer.bytes.begin() + b.peer.length);
        return std::tie(a.number, a.asked_by_us) < std::tie(b.number, b.asked_by_us);
    }
};
using PathsByWhom = std::map<Whom, PathId>;

}  // namespace via::device::datagram
