// SPDX-License-Identifier: Apache-2.0
// libfabric's addresses and VIA's: the IP address names the NIC, the port a discriminator on it.
#pragma once

#include <netinet/in.h>

#include <cstring>
#include <string>

#include <via/address.hpp>

namespace via::fabric {

/// In host byte order.
inline std::uint16_t port_of(const sockaddr_in& address) { return ntohs(address.sin_port); }

/// 4 bytes of address and 2 of the NIC's own port, which is the same on all NICs that meet.
inline Address via_address(const sockaddr_in& address, std::uint16_t nic_port) {
    std::byte host[6];
    std::memcpy(host, &address.sin_addr, 4);
    host[4] = static_cast<std::byte>(nic_port >> 8);
    host[5] = static_cast<std::byte>(nic_port & 0xFF);
    return Address(host, "libfabric:" + std::to_string(port_of(address)));
}

/// The NIC's IP address with that port. `host`: 6 bytes, as VIA's NICs over IPv4 have.
inline sockaddr_in socket_address(const void* host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    std::memcpy(&address.sin_addr, host, 4);
    return address;
}

/// Does the program's address have room for what it is said to be?
inline bool is_socket_address(const void* address, std::size_t length) {
    return address != nullptr && length >= sizeof(sockaddr_in) &&
           static_cast<const sockaddr_in*>(address)->sin_family == AF_INET;
}

/// Copies as much as there is room for, and says how much there is.
inline int write_address(const sockaddr_in& from, void* address, std::size_t* length) {
    const std::size_t room = *length;
    *length = sizeof from;
    std::memcpy(address, &from, std::min(room, sizeof from));
    return room < sizeof from ? -1 : 0;
}

}  // namespace via::fabric
