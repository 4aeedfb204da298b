// What the kernel says of a connection, and its calls.
#pragma once

#include <optional>

#include "real.hpp"
#include "shared.hpp"

namespace via::sockets {

template <class Value>
Value option_of(int fd, int level, int name, Value otherwise) {
    Value value{};
    socklen_t length = sizeof value;
    return real().getsockopt(fd, level, name, &value, &length) == 0 ? value : otherwise;
}

/// SIOCINQ or SIOCOUTQ; -1: it does not say.
int queue_of(int fd, unsigned long which);
/// Bytes that the program ever gave to the kernel.
std::optional<std::uint64_t> sent_position(int fd, int side);
/// Bytes that the program ever read from the kernel. `said_fin`: the peer did, before a reset.
std::optional<std::uint64_t> received_position(int fd, bool said_fin = false);
/// Of an established TCP connection.
std::optional<Ends> ends_of(int fd);
/// Whether the peer of an established connection is on another host: what stays on this one goes
/// through its loopback interface, whose packets are as long as no network has them.
bool leaves_host(int fd);
/// What is no ordinary stream of bytes.
bool is_unusual(int fd);

ssize_t kernel_receive(int fd, const iovec* parts, int count, int flags);
ssize_t kernel_send(int fd, const iovec* parts, int count, int flags);
/// All of it goes, whatever the kernel has room for now.
void send_all(int fd, const std::byte* bytes, std::size_t length);
/// What the kernel takes without a reader.
std::size_t room_in_kernel(int fd);

}  // namespace via::sockets
