// Puts the wire's keys between the protocol of hosts and its sockets.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "agent/nic_options.hpp"
#include "device/datagram/datagram_device.hpp"

namespace via {

/// The port itself where no key is configured, or none is wanted (NIC option `secure`). Error: a
/// key is wanted and cannot be had, and why; the wire is not left open then.
std::expected<std::unique_ptr<device::datagram::Port>, std::string> protect(
    std::unique_ptr<device::datagram::Port> port, const device::datagram::DatagramOptions& options,
    agent::Secure wanted);

}  // namespace via
