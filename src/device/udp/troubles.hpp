// What the network told of datagrams that we sent: the error queues of sockets.
#pragma once

#include <deque>

#include "device/datagram/port.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

/// Of IPv4 or IPv6, and UDP.
constexpr std::uint32_t headers_length(bool ipv6) { return ipv6 ? 48 : 28; }

class Troubles {
public:
    explicit Troubles(System& system) : system_(system) {}

    /// Empties the socket's error queue, or a good part of it.
    void read(int socket);
    /// Hints are not hoarded: more than a few are forgotten.
    void add(const datagram::Trouble& trouble);
    bool empty() const { return waiting_.empty(); }
    bool next(datagram::Trouble& trouble);

private:
    void understand(msghdr& message);

    System& system_;
    std::deque<datagram::Trouble> waiting_;
};

}  // namespace via::device::udp
