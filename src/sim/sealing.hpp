// Keys for the wire of a world: who has which, the strangers who have none, and what is to be seen
// of their work.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/random.hpp"
#include "device/datagram/datagram_device.hpp"
#include "secure/crypto.hpp"
#include "sim/meddler.hpp"
#include "sim/parameters.hpp"
#include "sim/seal_watch.hpp"

namespace via::sim {

/// The library of cryptography; the deterministic zone has none.
using CryptoMaker = std::function<std::unique_ptr<secure::Crypto>()>;

class Sealing {
public:
    /// `world` has keys and, as `network` does, outlives it.
    Sealing(const DatagramWorld& world, std::uint64_t seed, const CryptoMaker& crypto,
            device::sim::DatagramNetwork& network);

    /// The port of a NIC on that host, with keys in front of it.
    std::unique_ptr<device::datagram::Port> seal(std::unique_ptr<device::datagram::Port> port,
                                                 const device::datagram::DatagramOptions& options,
                                                 std::uint32_t host, device::sim::SocketId socket);
    Meddler& meddler() { return meddler_; }
    SealRecord& record() { return record_; }
    const SealRecord& record() const { return record_; }

private:
    secure::Secret key_of(std::uint64_t whose) const;

    const DatagramWorld& world_;
    CryptoMaker crypto_;
    std::uint64_t seed_;
    Random random_;
    Meddler meddler_;
    SealRecord record_;
};

}  // namespace via::sim
