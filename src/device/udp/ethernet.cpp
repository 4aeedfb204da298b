#include "device/udp/ethernet.hpp"

#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "device/udp/control.hpp"
#include "device/udp/socket_address.hpp"

namespace via::device::udp {

namespace {

/// From one frame of the kernel's to the next: what it takes is six calls.
constexpr Duration renewal = milliseconds(100);
constexpr Duration pause_least = milliseconds(10);
constexpr Duration pause_longest = seconds(1);
/// Not three in a row: what the kernel shows between them is a datagram that comes.
constexpr unsigned doubts_max = 3;

/// The kernel tells with what it shows by which interface it left.
bool tell_interface(System& system, int socket, bool ipv6, bool on) {
    return system.setsockopt(socket, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO,
                             on ? 1 : 0) == 0;
}

/// And not of one that was asked for before, and waited for a neighbour to answer.
bool is_of(const NetworkErrors::Shown& shown, const datagram::Outgoing& datagram, bool ipv6) {
    const std::size_t headers = EthernetModel::headers_length(ipv6);
    return shown.length >= headers &&
           std::memcmp(shown.bytes.data() + headers, datagram.bytes,
                       std::min<std::size_t>(shown.length - headers, datagram.length)) == 0;
}

}  // namespace

void Ethernet::begin(int socket, const HostAddress& from, const HostAddress& to) {
    end();
    if (!packets_.valid()) {
        packets_ = Descriptor(system_, system_.socket(AF_PACKET));
        bound_to_ = 0;
        if (!packets_.valid()) return;
        if (system_.setsockopt(packets_.get(), SOL_PACKET, PACKET_VNET_HDR, 1) != 0)
            return packets_.reset();
        system_.setsockopt(packets_.get(), SOL_SOCKET, SO_SNDBUF, socket_bytes_wanted);
    }
    if (system_.setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_OPT_CMSG) != 0)
        return;
    socket_ = socket;
    from_ = from;
    to_ = to;
    next_ = {};
    pause_ = {};
    doubts_ = 0;
}

void Ethernet::end() {
    model_.forget();
    socket_ = -1;
}

bool Ethernet::bind_to(unsigned interface) {
    if (interface == bound_to_) return true;
    sockaddr_ll at{};
    at.sll_family = AF_PACKET;
    at.sll_ifindex = static_cast<int>(interface);
    // Of protocol 0: it sends, and nothing is ever copied to it.
    if (system_.bind(packets_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        return false;
    bound_to_ = interface;
    return true;
}

/// A time stamp for a datagram comes with the frame that the time is of.
bool Ethernet::ask(const datagram::Outgoing& datagram) {
    const bool ipv6 = is_ipv6(from_);
    const bool worked = model_.valid();
    model_.forget();
    iovec bytes{const_cast<std::byte*>(datagram.bytes), datagram.length};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint32_t))> control{};
    mmsghdr message{};
    message.msg_hdr.msg_iov = &bytes;
    message.msg_hdr.msg_iovlen = 1;
    set_control(message.msg_hdr, control, SOL_SOCKET, SO_TIMESTAMPING,
                std::uint32_t{SOF_TIMESTAMPING_TX_SCHED});
    network_errors_.read(socket_);  // what was shown late is none of this one's
    const bool tells = tell_interface(system_, socket_, ipv6, true);
    const bool sent = system_.sendmmsg(socket_, &message, 1) == 1;
    const int error = errno;
    NetworkErrors::Shown shown;
    if (sent) network_errors_.read(socket_, &shown);
    if (tells) tell_interface(system_, socket_, ipv6, false);
    const Time now = system_.now();
    if (sent && shown.interface != 0 && is_of(shown, datagram, ipv6) &&
        model_.learn({shown.bytes.data(), shown.length}, datagram.length, from_, to_) &&
        bind_to(shown.interface)) {
        if (worked && doubts_ == 0) pause_ = {};
        shown_ = now;
        next_ = now + renewal;
    } else {
        pause();
    }
    errno = error;
    return sent;
}

std::size_t Ethernet::send(std::span<const datagram::Outgoing> datagrams) {
    if (datagrams.size() > 1 && !cuts_) return 0;
    const std::size_t sent = sender_.send_frames(packets_.get(), model_, datagrams);
    if (counters_ != nullptr) counters_->add(Counter::own_frames, sent);
    if (sent == datagrams.size()) return sent;
    // A full one, too: the socket's is the room that others wait for.
    if (errno == EINVAL && datagrams.size() > 1) cuts_ = false;
    if (errno == ENXIO || errno == ENODEV) bound_to_ = 0;
    model_.forget();
    return sent;
}

void Ethernet::doubt(Time arrived) {
    if (!model_.valid()) return;
    if (arrived > shown_)
        doubts_ = 0;
    else if (++doubts_ >= doubts_max)
        pause();
}

void Ethernet::pause() {
    model_.forget();
    doubts_ = 0;
    pause_ = std::clamp({pause_.ns * 2}, pause_least, pause_longest);
    next_ = system_.now() + pause_;
}

}  // namespace via::device::udp
