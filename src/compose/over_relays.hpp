// Puts ways over relays between the protocol of hosts and its sockets.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "device/datagram/port.hpp"

namespace via {

/// The port itself where `file` is empty (NIC option `ways`). Error: what is wrong with the file.
std::expected<std::unique_ptr<device::datagram::Port>, std::string> over_relays(
    std::unique_ptr<device::datagram::Port> port, const std::string& file);

}  // namespace via
