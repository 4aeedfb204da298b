// Hosts on one machine: network namespaces, joined by a cable (veth), by a switch (a bridge, in a
// namespace of its own), or by a wire with bad weather (via-weather). The parent makes them,
// children enter them. Names carry the parent's process number, so that tests do not meet.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "support/child.hpp"

namespace system_test {

enum class Joined : std::uint8_t { by_cable, by_switch, not_yet };

class Networks {
public:
    /// `by_cable` joins two hosts only.
    explicit Networks(Joined joined = Joined::by_cable, int hosts = 2);
    ~Networks();
    Networks(const Networks&) = delete;
    Networks& operator=(const Networks&) = delete;

    /// Empty, or why there are none here: a reason to skip the test.
    const std::string& why_not() const { return why_not_; }
    const std::string& name(int host) const { return names_[static_cast<std::size_t>(host)]; }
    static std::string address(int host) { return "10.97.42." + std::to_string(host + 1); }
    static std::string address_ipv6(int host) { return "fd97::" + std::to_string(host + 1); }
    /// Its interface is called via0. Runs "ip -n NAME arguments" of that host.
    void ip(int host, const std::vector<std::string>& arguments) const;
    void set_up(int host, bool up) const;
    void set_mtu(int host, int mtu) const;
    /// An interface that was down, or too short, has lost its IPv6 address.
    void give_ipv6_address(int host) const;
    /// A bucket of tokens: what leaves that host leaves at this rate, and waits in a queue.
    void shape(int host, int megabits, int queue_bytes) const;
    /// The same of another interface of it than via0.
    void shape_interface(int host, const std::string& interface, int megabits,
                         int queue_bytes) const;
    /// The same of what the switch sends to that host.
    void shape_port(int host, int megabits, int queue_bytes) const;
    void remove(int host) const;

private:
    bool join(Joined joined) const;

    std::vector<std::string> names_;  ///< of the hosts, then of the switch
    int hosts_;
    std::string why_not_;
};

/// A wire with bad weather between hosts 0 and 1 of `networks`, until the object goes, when it
/// tells what it did. Their interfaces are called via0.
class BadWeather {
public:
    /// `weather`: options of via-weather.
    BadWeather(const Networks& networks, const std::vector<std::string>& weather);
    ~BadWeather();
    BadWeather(const BadWeather&) = delete;
    BadWeather& operator=(const BadWeather&) = delete;

    static std::string address(int host) { return "10.78.0." + std::to_string(host + 1); }
    static std::string address_ipv6(int host) { return "fd78::" + std::to_string(host + 1); }

private:
    pid_t pid_ = -1;
    std::FILE* told_ = nullptr;  ///< what via-weather says
    char line_[256] = {};
};

/// In a child, before it opens a NIC: it is on that host from now on.
void enter_network(const std::string& name);

}  // namespace system_test
