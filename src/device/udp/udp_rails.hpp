// UDP ports in several networks as one, with one handle to sleep on.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "device/datagram/rails_port.hpp"
#include "device/udp/interface.hpp"
#include "device/udp/system.hpp"
#include "device/udp/wait_set.hpp"

namespace via::device::udp {

/// Why a NIC cannot be at all these places at once; empty: it can.
std::string what_is_wrong_with_rails(const std::vector<Place>& places);

/// Owns the handle that tells of all of them.
class UdpRails final : public datagram::RailsPort {
public:
    /// The first one answers for the host. error: what failed, and why.
    static std::expected<std::unique_ptr<UdpRails>, std::string> open(
        System& system, std::vector<std::unique_ptr<datagram::Port>> ports);

    int wait_handle() const override { return wait_set_.handle(); }

private:
    UdpRails(System& system, std::vector<std::unique_ptr<datagram::Port>> ports)
        : RailsPort(std::move(ports)), wait_set_(system) {}

    WaitSet wait_set_;
};

}  // namespace via::device::udp
