// The way to the peer to whom nearly all goes: a second socket of the data socket's address and
// port, connected to it, and past UDP and IP where that may be (ethernet.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "base/time.hpp"
#include "device/datagram/port.hpp"
#include "device/udp/busy_peer.hpp"
#include "device/udp/ethernet.hpp"
#include "device/udp/network_errors.hpp"
#include "device/udp/receiver.hpp"
#include "device/udp/sender.hpp"
#include "device/udp/system.hpp"
#include "device/udp/udp_config.hpp"

namespace via::device::udp {

/// Owns who is busy, the socket that is connected to it, and whether that is still of use.
class BusySocket {
public:
    BusySocket(System& system, const UdpConfig& config, NetworkErrors& network_errors,
               Sender& sender)
        : system_(system),
          config_(config),
          network_errors_(network_errors),
          sender_(sender),
          peer_(config.busy_after),
          ethernet_(system, network_errors, sender, config.counters) {}
    BusySocket(const BusySocket&) = delete;
    BusySocket& operator=(const BusySocket&) = delete;

    const Descriptor& socket() const { return socket_; }
    bool is_there() const { return state_ != State::none; }
    bool is_up() const { return state_ == State::up; }
    /// What was sent to it may still come, but nothing more is.
    bool is_gone() const { return state_ == State::gone; }
    bool makes_frames() const { return is_up() && ethernet_.is_ready(); }

    // Sending -------------------------------------------------------------------------------------
    void count(const HostAddress& to, std::uint32_t times = 1) { peer_.count(to, times); }
    /// If nobody is busy any more, nothing more is sent here.
    void leave_if_idle() {
        if (!is_up() || peer_.is_there()) return;
        state_ = State::going;
        ethernet_.end();
    }
    bool is_for(const HostAddress& to) const { return is_up() && to == peer_.address(); }
    /// The common datagram, for it. False: nothing was done, or an error was met that the general
    /// way looks at.
    bool send(const datagram::Outgoing& datagram);
    /// All are for it. `frame_max`: datagram that the interface carries.
    std::size_t send(std::span<const datagram::Outgoing> run, std::uint32_t frame_max);
    void doubt(const HostAddress& to, Time arrived) {
        if (is_for(to)) ethernet_.doubt(arrived);
    }

    // Making and closing --------------------------------------------------------------------------
    /// There is none, and somebody is busy.
    bool is_wanted() const { return !is_there() && peer_.is_there(); }
    /// `data`, at `here`, was just found empty. False: there is still none.
    bool connect(const Descriptor& data, const HostAddress& here);
    /// It was found empty, and nothing is sent by it any more. Connected elsewhere nothing comes to
    /// it, either; when it is found empty again it can close().
    void disconnect(const HostAddress& here);
    void close();

    // Receiving -----------------------------------------------------------------------------------
    Receiver::Habit& habit() { return habit_; }
    /// What others sent before it was connected is read by the time that it is empty.
    void expect_only_peer() { habit_.only_from = &connected_to_; }
    bool finds_lone_ones() const { return habit_.joining == Receiver::Joining::off; }

private:
    Descriptor make(const Descriptor& data, const HostAddress& at);

    enum class State : std::uint8_t {
        none,
        up,     ///< to peer_.address()
        going,  ///< nothing more is sent there
        gone,   ///< nothing more comes there, but what came may still wait
    };

    System& system_;
    const UdpConfig& config_;
    NetworkErrors& network_errors_;
    Sender& sender_;
    BusyPeer peer_;
    Ethernet ethernet_;
    Descriptor socket_;
    HostAddress connected_to_;
    State state_ = State::none;
    Receiver::Habit habit_;
};

}  // namespace via::device::udp
