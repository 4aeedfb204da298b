#include "device/udp/busy_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "device/udp/socket_address.hpp"

namespace via::device::udp {

bool BusySocket::send(const datagram::Outgoing& datagram) {
    if (ethernet_.is_due()) return ethernet_.ask(datagram);
    if (ethernet_.is_ready() && ethernet_.send({&datagram, 1}) == 1) return true;
    if (system_.sendto(socket_.get(), datagram.bytes, datagram.length, nullptr, 0) >= 0)
        return true;
    // An error that was pending: the call took it, so nothing else tells of what it was.
    if (errno != EAGAIN && errno != ENOBUFS) network_errors_.read(socket_.get());
    return false;
}

std::size_t BusySocket::send(std::span<const datagram::Outgoing> run, std::uint32_t frame_max) {
    std::size_t sent = 0;
    if (ethernet_.is_due() && ethernet_.ask(run.front())) sent = 1;
    // Of frames that it cuts the kernel does not ask how long the interface's may be.
    const auto is_carried = [&](const auto& datagram) { return datagram.length <= frame_max; };
    if (sent < run.size() && ethernet_.is_ready() &&
        std::ranges::all_of(run.subspan(sent), is_carried))
        sent += ethernet_.send(run.subspan(sent));
    if (sent < run.size()) sent += sender_.send(socket_.get(), true, run.subspan(sent));
    return sent;
}

/// Two sockets share a port where both say so (SO_REUSEPORT) and are of one user: and only while
/// this one is bound, so that nobody else joins them. From bind to connect the kernel gives it some
/// of everybody's datagrams; they are read with their address, so it does not matter.
Descriptor BusySocket::make(const Descriptor& data, const HostAddress& at) {
    const SocketAddress here = to_socket(at, config_.place.index);
    const SocketAddress there = to_socket(peer_.address(), config_.place.index);
    int data_bytes = 0, bytes = 0;
    Descriptor socket(system_, system_.socket(is_ipv6(at) ? AF_INET6 : AF_INET));
    // What peers were told of the room must hold here, too.
    if (!socket.valid() || !set_up_socket(system_, socket, is_ipv6(at)) ||
        system_.getsockopt(data.get(), SOL_SOCKET, SO_RCVBUF, &data_bytes) < 0 ||
        system_.getsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes) < 0 || bytes < data_bytes ||
        system_.setsockopt(data.get(), SOL_SOCKET, SO_REUSEPORT, 1) < 0)
        return {};
    const bool connected = system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1) == 0 &&
                           system_.bind(socket.get(), &here.any, here.length) == 0 &&
                           system_.connect(socket.get(), &there.any, there.length) == 0;
    system_.setsockopt(data.get(), SOL_SOCKET, SO_REUSEPORT, 0);
    system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 0);
    return connected ? std::move(socket) : Descriptor();
}

bool BusySocket::connect(const Descriptor& data, const HostAddress& here) {
    socket_ = make(data, here);
    if (!socket_.valid()) {
        peer_.forget();  // until as much has been sent again
        return false;
    }
    state_ = State::up;
    if (config_.own_frames) ethernet_.begin(socket_.get(), here, peer_.address());
    habit_ = {};
    connected_to_ = peer_.address();
    return true;
}

void BusySocket::disconnect(const HostAddress& here) {
    const SocketAddress at = to_socket(here, config_.place.index);
    habit_.only_from = nullptr;
    system_.connect(socket_.get(), &at.any, at.length);
    state_ = State::gone;
}

void BusySocket::close() {
    network_errors_.read(socket_.get());
    socket_.reset();
    state_ = State::none;
}

}  // namespace via::device::udp
