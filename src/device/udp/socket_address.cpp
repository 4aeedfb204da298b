#include "device/udp/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <cerrno>
#include <cstring>

namespace via::device::udp {

SocketAddress to_socket(const HostAddress& address, unsigned scope) {
    SocketAddress result;
    if (address.length == 6) {
        result.ipv4.sin_family = AF_INET;
        std::memcpy(&result.ipv4.sin_port, address.bytes.data() + 4, 2);
        std::memcpy(&result.ipv4.sin_addr, address.bytes.data(), 4);
        result.length = sizeof result.ipv4;
    } else if (address.length == 18) {
        result.ipv6.sin6_family = AF_INET6;
        std::memcpy(&result.ipv6.sin6_port, address.bytes.data() + 16, 2);
        std::memcpy(&result.ipv6.sin6_addr, address.bytes.data(), 16);
        if (IN6_IS_ADDR_LINKLOCAL(&result.ipv6.sin6_addr)) result.ipv6.sin6_scope_id = scope;
        result.length = sizeof result.ipv6;
    }
    return result;
}

void from_socket(const sockaddr& from, HostAddress& address) {
    address = {};
    if (from.sa_family == AF_INET) {
        const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(from);
        std::memcpy(address.bytes.data(), &ipv4.sin_addr, 4);
        std::memcpy(address.bytes.data() + 4, &ipv4.sin_port, 2);
        address.length = 6;
    } else if (from.sa_family == AF_INET6) {
        const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(from);
        std::memcpy(address.bytes.data(), &ipv6.sin6_addr, 16);
        std::memcpy(address.bytes.data() + 16, &ipv6.sin6_port, 2);
        address.length = 18;
    }
}

Descriptor bind_socket(System& system, const HostAddress& address, unsigned scope,
                       SharesPort shares) {
    const SocketAddress at = to_socket(address, scope);
    Descriptor socket(system, system.socket(is_ipv6(address) ? AF_INET6 : AF_INET));
    if (!socket.valid()) return socket;
    const bool done = (shares == SharesPort::no ||
                       system.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1) == 0) &&
                      system.bind(socket.get(), &at.any, at.length) == 0;
    if (done) return socket;
    const int error = errno;
    socket.reset();
    errno = error;
    return socket;
}

bool set_up_socket(System& system, const Descriptor& socket, bool ipv6) {
    const int fd = socket.get();
    const int level = ipv6 ? SOL_IPV6 : SOL_IP;
    // Less room, or no joined datagrams: it works nevertheless.
    system.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, socket_bytes_wanted);
    system.setsockopt(fd, SOL_SOCKET, SO_SNDBUF, socket_bytes_wanted);
    system.setsockopt(fd, SOL_UDP, UDP_GRO, 1);
    return system.setsockopt(fd, level, ipv6 ? IPV6_RECVERR : IP_RECVERR, 1) == 0 &&
           system.setsockopt(fd, level, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
                             ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE) == 0;
}

}  // namespace via::device::udp
