// The way past UDP and IP to the busy peer, for those who may open packet sockets (CAP_NET_RAW):
// raw Ethernet frames, made as the kernel made one of its own a moment ago. The kernel is
// asked for one again and again, so that routes, neighbours, firewalls, address translation and
// encryption decide as ever, a moment later.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/address.hpp"
#include "base/counters.hpp"
#include "base/time.hpp"
#include "device/datagram/port.hpp"
#include "device/udp/ethernet_model.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/sender.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

class Ethernet {
public:
    /// `counters` of the NIC: own_frames, counted there; nullptr: nobody counts.
    Ethernet(System& system, NetworkErrors& network_errors, Sender& sender, Counters* counters)
        : system_(system), network_errors_(network_errors), sender_(sender), counters_(counters) {}
    Ethernet(const Ethernet&) = delete;

    /// `socket` is connected to the busy peer. Nothing happens where we may not.
    void begin(int socket, const HostAddress& from, const HostAddress& to);
    void end();

    /// The next datagram should leave by ask(). By the clock, before each of them: a program may
    /// have stood still for long, and nothing else of it have run since.
    bool is_due() const { return socket_ >= 0 && system_.recently() >= next_; }
    /// Frames may be sent, unless it is_due().
    bool is_ready() const { return model_.valid(); }
    /// Sends it through the socket, and has the kernel show how. False: it was not sent, errno says
    /// why.
    bool ask(const datagram::Outgoing& datagram);
    /// Returns how many were taken; fewer: one did not go, the socket may take it.
    std::size_t send(std::span<const datagram::Outgoing> datagrams);
    /// What goes there does not seem to come. After three times, between which no frame did that
    /// was sent since the kernel showed the last one, not by this way for a while, each time twice
    /// as long. `arrived`: when the newest was sent that did.
    void doubt(Time arrived);

private:
    void pause();
    bool bind_to(unsigned interface);

    System& system_;
    NetworkErrors& network_errors_;
    Sender& sender_;
    Counters* counters_;
    /// Kept: the kernel takes some milliseconds to close one.
    Descriptor packets_;
    unsigned bound_to_ = 0;
    int socket_ = -1;
    HostAddress from_, to_;
    EthernetModel model_;
    bool cuts_ = true;  ///< the kernel cuts frames for us
    Time shown_{};      ///< when the model was
    Time next_{};
    Duration pause_{};
    unsigned doubts_ = 0;
};

}  // namespace via::device::udp
