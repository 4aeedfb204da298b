// Who answers for the host: the one that has its port. Binding it is the lock. The others watch
// whether that one ends, and ask now and then whether it answers; should it not, one joins it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "base/time.hpp"
#include "device/udp/holder_check.hpp"
#include "device/udp/presence.hpp"
#include "device/udp/socket_address.hpp"
#include "device/udp/system.hpp"
#include "device/udp/udp_config.hpp"
#include "device/udp/wait_set.hpp"

namespace via::device::udp {

/// Owns the host's socket, if this NIC has it, and else what is known of the one that has.
class HostPort {
public:
    HostPort(System& system, const UdpConfig& config, Presence& presence, WaitSet& wait_set)
        : system_(system),
          config_(config),
          presence_(presence),
          wait_set_(wait_set),
          check_(system, config.instance) {}
    HostPort(const HostPort&) = delete;
    HostPort& operator=(const HostPort&) = delete;

    /// error: nobody answers for the host, and why we cannot.
    std::expected<void, std::string> open();
    /// Not valid: another one has it.
    const Descriptor& socket() const { return socket_; }
    bool is_ours() const { return socket_.valid(); }
    /// May somebody look for this NIC?
    bool is_looked_for() const { return is_ours() || presence_.is_listened_to(); }
    /// Somebody needs the one that answers.
    void ask_soon() { check_.ask_soon(system_.now()); }
    void service(Time now);
    Time next_deadline() const { return earlier(next_try_, check_.next()); }

private:
    const HostAddress& address() const { return config_.place.address; }
    bool take(SharesPort beside);
    void try_to_take(Time now);
    bool is_answered();
    std::string who_has_it() const;
    bool watch_holder();
    void hear_of_holder(Time now);
    Duration check_interval() const;
    void check_holder_from(Time due);
    void replace_holder(Time now);
    void leave(Time now);

    System& system_;
    const UdpConfig& config_;
    Presence& presence_;
    WaitSet& wait_set_;
    Descriptor socket_;
    Descriptor inotify_;  ///< tells when the one ends that has the port
    HolderCheck check_;
    std::string holder_;             ///< whom it is about, if that is of this user
    Time next_try_ = Time::never();  ///< never: we have it
    Duration try_interval_{};
    Time replaced_look_{};      ///< due while we have it
    std::uint32_t chosen_ = 0;  ///< of those that share it, by choose_socket()
    bool told_of_silence_ = false;
};

}  // namespace via::device::udp
