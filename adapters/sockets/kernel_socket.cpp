#include "kernel_socket.hpp"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include <cstring>

namespace via::sockets {

namespace {

std::optional<tcp_info> info_of(int fd) {
    tcp_info info{};
    socklen_t length = sizeof info;
    if (real().getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return std::nullopt;
    if (length < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return std::nullopt;
    return info;
}

Address address_of(const sockaddr_storage& from) {
    Address to;
    if (from.ss_family == AF_INET) {
        const auto& four = reinterpret_cast<const sockaddr_in&>(from);
        to.host[10] = to.host[11] = 0xFF;
        std::memcpy(to.host.data() + 12, &four.sin_addr, 4);
        to.port = ntohs(four.sin_port);
    } else {
        const auto& six = reinterpret_cast<const sockaddr_in6&>(from);
        std::memcpy(to.host.data(), &six.sin6_addr, 16);
        to.port = ntohs(six.sin6_port);
    }
    return to;
}

}  // namespace

int queue_of(int fd, unsigned long which) {
    int bytes = 0;
    return real().ioctl(fd, which, &bytes) == 0 ? bytes : -1;
}

/// Bytes that the program ever gave to the kernel. The SYN of who connects counts as one that was
/// acknowledged.
std::optional<std::uint64_t> sent_position(int fd, int side) {
    for (int tries = 0; tries < 100; ++tries) {
        const auto first = info_of(fd);
        const int queued = queue_of(fd, SIOCOUTQ);
        const auto second = info_of(fd);
        if (!first || !second || queued < 0) return std::nullopt;
        if (first->tcpi_bytes_acked != second->tcpi_bytes_acked) continue;
        const std::uint64_t quirk = side == 0 ? 1 : 0;
        if (first->tcpi_bytes_acked < quirk) return std::nullopt;
        return first->tcpi_bytes_acked - quirk + static_cast<std::uint64_t>(queued);
    }
    return std::nullopt;
}

/// Bytes that the program ever read from the kernel. A FIN counts as one that was received.
/// After a reset nobody tells whether one came before it, but the peer: `said_fin`.
std::optional<std::uint64_t> received_position(int fd, bool said_fin) {
    const unsigned after_fin = 1u << 8 | 1u << 9 | 1u << 11 | 1u << 6 | (said_fin ? 1u << 7 : 0);
    for (int tries = 0; tries < 100; ++tries) {
        const auto first = info_of(fd);
        const int queued = queue_of(fd, SIOCINQ);
        const auto second = info_of(fd);
        if (!first || !second || queued < 0) return std::nullopt;
        if (first->tcpi_bytes_received != second->tcpi_bytes_received ||
            first->tcpi_state != second->tcpi_state)
            continue;
        const std::uint64_t fin = (after_fin >> first->tcpi_state & 1) != 0 ? 1 : 0;
        return first->tcpi_bytes_received - fin - static_cast<std::uint64_t>(queued);
    }
    return std::nullopt;
}

/// Of an established TCP connection.
std::optional<Ends> ends_of(int fd) {
    const auto info = info_of(fd);
    if (!info || info->tcpi_state != 1) return std::nullopt;
    sockaddr_storage local{};
    sockaddr_storage remote{};
    socklen_t length = sizeof local;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &length) < 0) return std::nullopt;
    length = sizeof remote;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &length) < 0) return std::nullopt;
    Ends ends{address_of(local), address_of(remote), 0};
    ends.network = option_of<std::uint64_t>(fd, SOL_SOCKET, SO_NETNS_COOKIE, 0);
    if (ends.network == 0) return std::nullopt;
    return ends;
}

bool leaves_host(int fd) {
    constexpr std::uint32_t of_loopback = 65535;
    const auto info = info_of(fd);
    return info && info->tcpi_pmtu < of_loopback;
}

/// What is no ordinary stream of bytes.
bool is_unusual(int fd) {
    return option_of<int>(fd, SOL_SOCKET, SO_RCVLOWAT, 2) > 1 ||
           option_of<int>(fd, SOL_SOCKET, SO_ZEROCOPY, 0) != 0 ||
           option_of<int>(fd, IPPROTO_TCP, TCP_CORK, 1) != 0 ||
           option_of<int>(fd, IPPROTO_TCP, TCP_INQ, 0) != 0 ||
           (real().fcntl(fd, F_GETFL) & O_ASYNC) != 0;
}

/// A call with one part spares the kernel a msghdr to copy in.
ssize_t kernel_receive(int fd, const iovec* parts, int count, int flags) {
    if (count == 1) return real().recv(fd, parts->iov_base, parts->iov_len, flags);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<std::size_t>(count);
    return real().recvmsg(fd, &message, flags);
}

ssize_t kernel_send(int fd, const iovec* parts, int count, int flags) {
    if (count == 1) return real().send(fd, parts->iov_base, parts->iov_len, flags);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<std::size_t>(count);
    return real().sendmsg(fd, &message, flags);
}

/// All of it goes, whatever the kernel has room for now.
void send_all(int fd, const std::byte* bytes, std::size_t length) {
    while (length > 0) {
        const long sent = raw_send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return;  // the peer is gone
        if (sent < 0) {
            pollfd wait{fd, POLLOUT, 0};
            real().poll(&wait, 1, 10);
            continue;
        }
        bytes += sent;
        length -= static_cast<std::size_t>(sent);
    }
}

/// What the kernel takes without a reader.
std::size_t room_in_kernel(int fd) {
    constexpr int receiver_has = 1 << 16;
    const int size = option_of<int>(fd, SOL_SOCKET, SO_SNDBUF, 0);
    const int queued = std::max(queue_of(fd, SIOCOUTQ), 0);
    return static_cast<std::size_t>(std::max(size / 4 * 3 + receiver_has - queued, 0));
}

}  // namespace via::sockets
