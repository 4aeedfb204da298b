// What the VIs of a NIC have posted to receive, for whoever carries its frames.
#pragma once

#include "device/sim/carrier.hpp"
#include "nic/nic.hpp"

namespace via::sim {

class PostedReceives final : public device::sim::Receives {
public:
    /// The NIC outlives it, but for its devices.
    explicit PostedReceives(nic::Nic& nic) : nic_(nic) {}
    std::uint32_t vis_end() const override;
    std::uint32_t outstanding(std::uint32_t vi) const override;
    Extent posted(std::uint32_t vi, std::uint32_t nth) const override;

private:
    nic::Nic& nic_;
    mutable std::uint32_t vis_end_ = 0;
};

}  // namespace via::sim
