// The network interfaces of this host: which one a NIC is at, by name or address.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

/// Where a NIC is.
struct Place {
    std::string interface;
    unsigned index = 0;   ///< of the interface
    HostAddress address;  ///< of the NIC, with its port
    unsigned prefix = 0;  ///< leading bits of the address that its network has in common
};

/// Is that host in the interface's network, with no router between?
bool is_in_network_of(const Place& place, const HostAddress& host);

/// As names of NICs have it: without a port, IPv6 in brackets.
std::string host_text(const HostAddress& address);

/// "INTERFACE", "ADDRESS", either with ":PORT"; in brackets for IPv6: "[INTERFACE]", "[ADDRESS]",
/// "[ADDRESS%INTERFACE]" where several interfaces have it.
/// error: what is wrong, and what there is.
std::expected<Place, std::string> find_place(System& system, std::string_view text,
                                             std::uint16_t default_port);

/// Is it an address of an interface that is up? Nothing: that cannot be seen now.
std::optional<bool> is_here(System& system, const HostAddress& address);

}  // namespace via::device::udp
