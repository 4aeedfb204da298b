// The relay of a host: sockets at its addresses, and a thread that passes on what comes there.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/statistics.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/receiver.hpp"
#include "device/udp/sender.hpp"
#include "device/udp/system.hpp"
#include "relay/forwarder.hpp"
#include "relay/streams.hpp"

namespace via::viad {

class RelayServer {
public:
    /// Error: which address cannot be had, and why. `statistics`, unless null, is what others see
    /// of it.
    static std::expected<std::unique_ptr<RelayServer>, std::string> open(
        relay::Ways ways, Duration polls, std::unique_ptr<agent::Statistics> statistics);
    ~RelayServer();
    RelayServer(const RelayServer&) = delete;
    RelayServer& operator=(const RelayServer&) = delete;

    /// Passes on until it is asked to stop. Of one thread.
    void run(const std::stop_token& stop);

    struct Totals {
        relay::Totals forwarder;
        std::uint64_t no_room = 0;  ///< dropped since an interface's queue was full
    };
    /// As of a moment ago; of any thread.
    Totals totals() const;

private:
    using System = device::udp::System;
    /// One address of ours.
    struct Door {
        Door(System& system, const HostAddress& at)
            : address(at), errors(system), receiver(system), sender(system, errors, 0) {}
        HostAddress address;
        device::udp::Descriptor socket;
        device::udp::NetworkErrors errors;
        device::udp::Receiver receiver;
        device::udp::Receiver::Habit habit;
        device::udp::Sender sender;
    };

    RelayServer(relay::Ways ways, Duration polls, std::unique_ptr<agent::Statistics> statistics);
    std::expected<void, std::string> open_all();
    std::expected<void, std::string> open_door(const HostAddress& address);
    Door* door_at(const HostAddress& address);
    bool turn(Door& door);
    void pass_on(std::span<device::datagram::Incoming> came);
    void send(Door& door, std::span<const device::datagram::Outgoing> run);
    void send_notices();
    void publish();
    void answer_readers();
    void wake() const;
    void sleep();

    System& system_;
    relay::Forwarder forwarder_;
    relay::Streams streams_;
    Duration polls_;
    std::unique_ptr<agent::Statistics> statistics_;  ///< nullptr: nobody sees any
    std::vector<std::unique_ptr<Door>> doors_;
    std::vector<device::datagram::Outgoing> run_;  ///< that leave from one address
    std::vector<relay::Forwarder::Notice> notices_;
    device::udp::Descriptor wake_;
    std::uint64_t no_room_ = 0;
    mutable std::mutex mutex_;  ///< of published_
    Totals published_;
};

}  // namespace via::viad
