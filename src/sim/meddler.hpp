// A stranger on the way between hosts who have keys: he sees and keeps every datagram, says it
// again, changes, cuts, lengthens and joins them, and forges what version 1 would believe. What he
// does not have is a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "device/sim/datagram_network.hpp"

namespace via::sim {

class Meddler {
public:
    /// `network` remembers datagrams, and outlives it.
    Meddler(device::sim::DatagramNetwork& network, std::uint64_t seed)
        : network_(network), random_(seed) {}

    /// One datagram of his. `stranger`: an address of his own.
    void act(const HostAddress& stranger);

private:
    using Bytes = std::vector<std::byte>;

    void change(Bytes& bytes);
    void change_header(Bytes& bytes);
    void join(Bytes& bytes);
    void forge(Bytes& bytes);

    device::sim::DatagramNetwork& network_;
    Random random_;
};

}  // namespace via::sim
