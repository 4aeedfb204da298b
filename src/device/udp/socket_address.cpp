#include "device/udp/socket_address.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>

namespace via::device::udp {

std::uint16_t port_of(const HostAddress& address) {
    const std::size_t at = address.length - 2U;
    return static_cast<std::uint16_t>(address.bytes[at] * 256 + address.bytes[at + 1]);
}

HostAddress with_port(HostAddress address, std::uint16_t port) {
    const std::size_t at = address.length - 2U;
    address.bytes[at] = static_cast<std::uint8_t>(port >> 8);
    address.bytes[at + 1] = static_cast<std::uint8_t>(port);
    return address;
}

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

}  // namespace via::device::udp
