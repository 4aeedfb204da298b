// What a relay passed on, for each pair of hosts, for people.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "device/types.hpp"
#include "relay/forwarder.hpp"
#include "relay/ways.hpp"

namespace via::relay {

/// Both hosts of a pair stand in the relay's table; so strangers cannot fill it.
class Streams {
public:
    static constexpr std::size_t streams_max = 1024;

    /// A datagram of so many bytes went on. Of more pairs than streams_max the later ones are not
    /// told apart, and left out.
    void note(const Forwarder::Onward& onward, std::size_t bytes);
    /// In the order in which they began. Their ports are 0, but for the relay's that comes next.
    const std::vector<device::Way>& ways() const { return ways_; }

private:
    device::Way* find(const Forwarder::Onward& onward);

    std::vector<device::Way> ways_;
    std::map<std::pair<HostOnly, HostOnly>, std::size_t> places_;
    std::size_t last_ = 0;  ///< place of the one that was found last
};

}  // namespace via::relay
