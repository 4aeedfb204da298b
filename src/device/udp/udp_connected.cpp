// The UDP port's second data socket: connected to the peer to whom nearly all goes.
#include <sys/socket.h>

#include <utility>

#include "device/udp/socket_address.hpp"
#include "device/udp/udp_port.hpp"

namespace via::device::udp {

namespace {

/// Looks that take one small datagram each, until a full socket is empty.
constexpr unsigned data_looks_first_max = 8192;
/// So long may the kernel carry to the data socket what it looked up before there was another.
constexpr Duration under_way_max = milliseconds(1);

}  // namespace

/// Two sockets share a port where both say so (SO_REUSEPORT) and are of one user: and only while
/// this one is bound, so that nobody else joins them. From bind to connect the kernel gives it some
/// of everybody's datagrams; they are read with their address, so it does not matter.
Descriptor UdpPort::make_connected_socket() {
    const bool ipv6 = is_ipv6(data_address_);
    const SocketAddress here = to_socket(data_address_, config_.place.index);
    const SocketAddress there = to_socket(busy_.address(), config_.place.index);
    int data_bytes = 0, bytes = 0;
    Descriptor socket(system_, system_.socket(ipv6 ? AF_INET6 : AF_INET));
    // What peers were told of the room must hold here, too.
    if (!socket.valid() || !set_up(socket) ||
        system_.getsockopt(data_.get(), SOL_SOCKET, SO_RCVBUF, &data_bytes) < 0 ||
        system_.getsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes) < 0 || bytes < data_bytes ||
        system_.setsockopt(data_.get(), SOL_SOCKET, SO_REUSEPORT, 1) < 0)
        return {};
    const bool connected = system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1) == 0 &&
                           system_.bind(socket.get(), &here.any, here.length) == 0 &&
                           system_.connect(socket.get(), &there.any, there.length) == 0;
    system_.setsockopt(data_.get(), SOL_SOCKET, SO_REUSEPORT, 0);
    system_.setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, 0);
    return connected ? std::move(socket) : Descriptor();
}

void UdpPort::connect_to_busy_peer() {
    connected_ = make_connected_socket();
    if (!connected_.valid()) return busy_.forget();  // until as much has been sent again
    connection_ = Connection::up;
    if (config_.own_frames) ethernet_.begin(connected_.get(), data_address_, busy_.address());
    connected_habit_ = {};
    connected_to_ = busy_.address();
    looks_in_a_row_ = 0;
    data_look_ = {};
    data_looks_first_ = data_looks_first_max;
    data_first_until_ = system_.now() + under_way_max;
}

/// It was found empty, and nothing is sent by it any more. Connected elsewhere nothing comes to it,
/// either, and when it is found empty again it can go. false: it was not yet empty.
bool UdpPort::disconnect() {
    if (connection_ == Connection::going) {
        const SocketAddress here = to_socket(data_address_, config_.place.index);
        connected_habit_.only_from = nullptr;
        system_.connect(connected_.get(), &here.any, here.length);
        connection_ = Connection::gone;
        return !find(connected_, &connected_habit_);
    }
    troubles_.read(connected_.get());
    connected_.reset();
    connection_ = Connection::none;
    return true;
}

}  // namespace via::device::udp
