// What keys promise, checked at both sides of each SecurePort of a world: what comes out of one as
// a peer's word was said by a peer, and comes out once; and no number of a packet is used twice.
#pragma once

#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "device/datagram/port_decorator.hpp"
#include "device/datagram/secure_session.hpp"
#include "device/sim/datagram_network.hpp"

namespace via::sim {

/// Of a whole world.
class SealRecord {
public:
    /// A device said it, and its port took it.
    void note_said(const device::datagram::Outgoing& said);
    /// A port handed it to its device.
    void note_heard(const device::datagram::Incoming& heard);
    /// A socket has these keys from now on for what it sends to a path.
    void note_keys(device::sim::SocketId of, const device::datagram::LoggedKeys& keys);
    /// A socket sent it: the number's order is that of a direction of a path.
    void note_sent(device::sim::SocketId from, std::span<const std::byte> sealed);
    /// What was wrong first; nullptr: nothing.
    const char* complaint() const { return complaint_; }
    std::uint64_t heard() const { return heard_; }  ///< that a key vouched for

private:
    void complain(const char* what) {
        if (complaint_ == nullptr) complaint_ = what;
    }

    std::unordered_map<std::uint64_t, std::uint32_t> said_;  ///< how often, and not heard so far
    /// By whose they are, and to which path: the next one.
    std::map<std::pair<device::sim::SocketId, std::uint64_t>, std::uint64_t> numbers_;
    std::set<std::uint64_t> keys_;  ///< hashes of all that were
    const char* complaint_ = nullptr;
    std::uint64_t heard_ = 0;
};

/// Between a device and its SecurePort.
class SealWatch final : public device::datagram::PortDecorator {
public:
    /// `record` outlives it.
    SealWatch(std::unique_ptr<device::datagram::Port> inner, SealRecord& record)
        : PortDecorator(std::move(inner)), record_(record) {}

    std::size_t send(std::span<const device::datagram::Outgoing> datagrams) override;
    std::size_t receive(std::span<device::datagram::Incoming> datagrams) override;

private:
    SealRecord& record_;
};

}  // namespace via::sim
