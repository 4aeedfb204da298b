// Relays of a world whose hosts are of two networks: what they pass on, when they die and come
// back, and the tables of all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/datagram/port.hpp"
#include "device/sim/datagram_network.hpp"
#include "relay/forwarder.hpp"
#include "relay/relayed_port.hpp"
#include "sim/parameters.hpp"

namespace via::sim {

class Relays {
public:
    /// `world` has relays and, as `network` does, outlives them.
    Relays(const DatagramWorld& world, device::sim::DatagramNetwork& network);

    /// The port of a NIC on that host, with the host's table in front of it.
    std::unique_ptr<device::datagram::Port> wrap(std::unique_ptr<device::datagram::Port> port,
                                                 std::uint32_t host, device::sim::SocketId socket);
    /// When something comes to a relay, or one dies or comes back; never() if nothing will.
    Time next() const;
    /// Lets happen what happens at next(), and moves the clock there.
    void run();
    /// No further one dies; those that are dead come back, but for who is gone for good.
    void heal();
    /// Relays between two hosts, at most.
    std::int64_t between() const { return world_.relays.in_a_row ? 2 : 1; }
    /// Was a relay dead at any moment since then?
    bool was_one_dead_since(Time since) const;
    /// Is there no way from one of the two to the other any more, for good?
    bool are_cut_off(std::uint32_t host, std::uint32_t other) const;
    /// Is the way of a datagram from one of the two to the other over a relay?
    static bool are_apart(std::uint32_t host, std::uint32_t other) {
        return network_of_host(host) != network_of_host(other);
    }
    /// Datagrams so far.
    std::uint64_t passed_on() const;

private:
    /// In one network.
    struct Door {
        HostAddress address;
        device::sim::SocketId socket = 0;
    };
    struct Relay {
        Relay(relay::Ways ways) : forwarder(std::move(ways)) {}
        relay::Forwarder forwarder;
        std::array<Door, 2> doors;
        bool is_alive = false;
        bool is_gone = false;  ///< for good
    };
    static std::uint32_t network_of_host(std::uint32_t host) { return host % 2; }
    std::uint32_t network_of_door(std::uint32_t relay, std::uint32_t side) const;
    bool reaches(const HostAddress& from, const HostAddress& to) const;
    relay::Ways table_of_host(std::uint32_t host) const;
    relay::Ways table_of_relay(std::uint32_t relay) const;
    void begin(Relay& relay);
    void end(Relay& relay, device::sim::Ending ending);
    void take(Relay& relay, const Door& door);
    void send(const Relay& relay, const relay::Forwarder::Notice& notice);
    const Door* door_at(const Relay& relay, const HostAddress& address) const;

    const DatagramWorld& world_;
    device::sim::DatagramNetwork& network_;
    std::vector<Relay> relays_;
    std::vector<RelayDeath> deaths_;  ///< to come, or not over
    Time last_dead_{};
};

}  // namespace via::sim
