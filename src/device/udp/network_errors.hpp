// What the network told of datagrams that we sent: the error queues of sockets.
#pragma once

#include <time.h>  // before the next one, which needs it

#include <linux/errqueue.h>

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <utility>

#include "device/datagram/port.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class NetworkErrors {
public:
    explicit NetworkErrors(System& system) : system_(system) {}

    /// The beginning of a frame that a time stamp was asked for with.
    struct Shown {
        std::array<std::byte, 128> bytes{};
        std::size_t length = 0;
        unsigned interface = 0;  ///< index of the one it left by; 0: nothing was shown
    };
    /// Empties the socket's error queue, or a good part of it. `shown` becomes the first frame that
    /// is in it: as it was given to the interface that the route names. Others may follow, of those
    /// below it (of a bridge, a bond, a VLAN), where what these add is not seen.
    void read(int socket, Shown* shown = nullptr);
    /// Hears what the network quotes of datagrams that met a closed port; not what our own host
    /// says.
    using Quoted = std::function<void(std::span<const std::byte> quoted)>;
    void set_listener(Quoted listener) { quoted_ = std::move(listener); }
    /// Hints are not hoarded: more than a few are forgotten.
    void add(const datagram::NetworkError& error);
    bool empty() const { return waiting_.empty(); }
    bool next(datagram::NetworkError& error);

private:
    /// What an entry of the queue says.
    struct Entry {
        sock_extended_err error{};
        bool ipv6 = false;
        unsigned interface = 0;  ///< by which it left, where that is told
    };
    static Entry entry_of(msghdr& message);
    void understand(const Entry& entry, const HostAddress& to, std::span<const std::byte> quoted);

    System& system_;
    std::deque<datagram::NetworkError> waiting_;
    Quoted quoted_;  ///< empty: nobody
};

}  // namespace via::device::udp
