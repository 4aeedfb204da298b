#include "sim/host/remote_wire.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>

namespace via::sim::remote {

static_assert(std::is_trivially_copyable_v<Packet>);

Line::~Line() { ::close(descriptor_); }

bool Line::send(Packet packet, std::span<const std::byte> payload) {
    packet.payload_length = static_cast<std::uint32_t>(payload.size());
    iovec parts[2] = {{&packet, sizeof packet},
                      {const_cast<std::byte*>(payload.data()), payload.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = payload.empty() ? 1 : 2;
    ssize_t sent = 0;
    do sent = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(sizeof packet + payload.size());
}

bool Line::receive(Packet& packet, std::vector<std::byte>& payload) {
    ssize_t length = 0;
    do length = ::recv(descriptor_, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    while (length < 0 && errno == EINTR);
    if (length < static_cast<ssize_t>(sizeof packet)) return false;
    payload.resize(static_cast<std::size_t>(length) - sizeof packet);
    iovec parts[2] = {{&packet, sizeof packet}, {payload.data(), payload.size()}};
    if (::readv(descriptor_, parts, 2) != length) return false;
    return packet.payload_length == payload.size() && packet.header_length <= sizeof packet.header;
}

}  // namespace via::sim::remote
