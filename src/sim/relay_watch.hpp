// What a NIC is told of its peers over relays, for those who watch: the network says it of relays.
#pragma once

#include <memory>
#include <utility>

#include "device/datagram/port_decorator.hpp"
#include "device/sim/datagram_network.hpp"

namespace via::sim {

class RelayWatch final : public device::datagram::PortDecorator {
public:
    /// `socket` is that of the port at the bottom; the network outlives both.
    RelayWatch(std::unique_ptr<device::datagram::Port> inner, device::sim::DatagramNetwork& network,
               device::sim::SocketId socket)
        : PortDecorator(std::move(inner)), network_(network), socket_(socket) {}

    bool next_network_error(device::datagram::NetworkError& error) override {
        if (!inner().next_network_error(error)) return false;
        if (error.kind == device::datagram::NetworkErrorKind::port_unreachable)
            network_.note_told_unreachable(socket_, error.to);
        return true;
    }

private:
    device::sim::DatagramNetwork& network_;
    device::sim::SocketId socket_;
};

}  // namespace via::sim
