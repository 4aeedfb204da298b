// Flows of messages between pairs of NICs on two simulated hosts, under virtual time: whole NICs
// over DatagramDevices and SimPorts, which share one link each way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/sim/datagram_network.hpp"
#include "device/sim/sim_port.hpp"
#include "device/sim/stormy_weather.hpp"

namespace via::snapshots {

struct Setup {
    std::uint32_t flows = 1;
    Duration between_starts{};
    device::sim::LinkOptions link;
    std::uint32_t receive_room = 212'992;
};

class End;

class Flows {
public:
    explicit Flows(const Setup& setup);
    ~Flows();

    Time now() const { return clock_.now(); }
    void run(Duration time);
    /// Payload bytes that have come to the receiver of that flow.
    std::uint64_t received(std::uint32_t flow) const;

private:
    End* next(Time& moment);

    device::sim::VirtualClock clock_;
    device::sim::StormyWeather weather_;
    device::sim::DatagramNetwork network_;
    std::vector<std::unique_ptr<End>> receivers_;
    std::vector<std::unique_ptr<End>> senders_;
};

}  // namespace via::snapshots
