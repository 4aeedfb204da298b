// NIC addresses as sockets know them, and sockets at them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/address.hpp"
#include "device/udp/system.hpp"

namespace via::device::udp {

struct SocketAddress {
    union {
        sockaddr any;
        sockaddr_in ipv4;
        sockaddr_in6 ipv6;
    };
    socklen_t length = 0;

    SocketAddress() : ipv6{} {}
};

inline bool is_ipv6(const HostAddress& address) { return address.length == 18; }
/// Of one link only: other interfaces may have it, too.
inline bool is_link_local(const HostAddress& address) {
    return is_ipv6(address) && address.bytes[0] == 0xFE && (address.bytes[1] & 0xC0) == 0x80;
}

/// Of IPv4 or IPv6, and UDP.
constexpr std::uint32_t headers_length(bool ipv6) { return ipv6 ? 48 : 28; }

/// `scope`: index of the interface at which link-local IPv6 addresses are meant. Of an address of
/// neither length: length 0.
SocketAddress to_socket(const HostAddress& address, unsigned scope);
/// Of neither family: an address of length 0.
void from_socket(const sockaddr& from, HostAddress& address);
inline HostAddress from_socket(const sockaddr& from) {
    HostAddress address;
    from_socket(from, address);
    return address;
}

/// With another socket of this user, if that says so, too (SO_REUSEPORT).
enum class SharesPort : bool { no, yes };
/// For datagrams, at that address. Not valid and errno: why not.
Descriptor bind_socket(System& system, const HostAddress& address, unsigned scope,
                       SharesPort shares);
/// One that connections' datagrams come to: room, joined datagrams, the network's errors, and none
/// is cut on the way.
bool set_up_socket(System& system, const Descriptor& socket, bool ipv6);

}  // namespace via::device::udp
