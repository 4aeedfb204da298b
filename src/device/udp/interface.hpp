// The network interfaces of this host: which one a NIC is at, by name or address.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

/// Where a NIC is.
struct Place {
    std::string interface;
    unsigned index = 0;   ///< of the interface
    HostAddress address;  ///< of the NIC, with its port
};

/// As names of NICs have it: without a port, IPv6 in brackets.
std::string host_text(const HostAddress& address);

/// "INTERFACE", "ADDRESS", either with ":PORT"; in brackets for IPv6: "[INTERFACE]", "[ADDRESS]",
/// "[ADDRESS%INTERFACE]" where several interfaces have it.
/// error: what is wrong, and what there is.
std::expected<Place, std::string> find_place(System& system, std::string_view text,
                                             std::uint16_t default_port);

/// Is it an address of an interface that is up? Nothing: that cannot be seen now.
std::optional<bool> is_here(System& system, const HostAddress& address);
/// All addresses of interfaces that are up, the loopback's last.
std::vector<Place> all_places(System& system, std::uint16_t port);

}  // namespace via::device::udp
