#include "device/udp/network_errors.hpp"

#include <cerrno>
#include <cstring>

#include "device/udp/control.hpp"
#include "device/udp/socket_address.hpp"

namespace via::device::udp {

namespace {

constexpr std::size_t waiting_max = 64;
/// Entries of an error queue that are looked at in one go.
constexpr int entries_max = 64;

}  // namespace

void NetworkErrors::add(const datagram::NetworkError& error) {
    if (waiting_.size() < waiting_max) waiting_.push_back(error);
}

bool NetworkErrors::next(datagram::NetworkError& error) {
    if (waiting_.empty()) return false;
    error = waiting_.front();
    waiting_.pop_front();
    return true;
}

void NetworkErrors::read(int socket, Shown* shown) {
    for (int entry = 0; entry < entries_max; ++entry) {
        SocketAddress to;
        alignas(cmsghdr) std::byte control[512];
        std::array<std::byte, sizeof(Shown::bytes)> begin;
        const bool wants_all = shown != nullptr || quoted_;
        iovec bytes{begin.data(), wants_all ? begin.size() : datagram::quoted_length_least};
        msghdr message{};
        message.msg_name = &to.any;
        message.msg_namelen = sizeof to.ipv6;
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t length = system_.recvmsg(socket, &message, MSG_ERRQUEUE);
        if (length < 0) {
            if (errno != EINTR) return;
            continue;
        }
        const Entry found = entry_of(message);
        if (found.error.ee_origin != SO_EE_ORIGIN_TIMESTAMPING)
            understand(found, from_socket(to.any),
                       std::span(begin).first(static_cast<std::size_t>(length)));
        else if (shown != nullptr && shown->interface == 0)
            *shown = {begin, static_cast<std::size_t>(length), found.interface};
    }
}

NetworkErrors::Entry NetworkErrors::entry_of(msghdr& message) {
    Entry found;
    for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
         entry = CMSG_NXTHDR(&message, entry)) {
        const auto is = [&](int level, int type) {
            return entry->cmsg_level == level && entry->cmsg_type == type;
        };
        if (is(SOL_IP, IP_PKTINFO)) {
            found.interface = static_cast<unsigned>(value_of<in_pktinfo>(entry).ipi_ifindex);
        } else if (is(SOL_IPV6, IPV6_PKTINFO)) {
            found.interface = value_of<in6_pktinfo>(entry).ipi6_ifindex;
        } else if (is(SOL_IP, IP_RECVERR) || is(SOL_IPV6, IPV6_RECVERR)) {
            found.error = value_of<sock_extended_err>(entry);
            found.ipv6 = entry->cmsg_level == SOL_IPV6;
        }
    }
    return found;
}

/// Of what the network says the kernel gives the datagram's bytes too, as far as they were quoted.
void NetworkErrors::understand(const Entry& entry, const HostAddress& to,
                               std::span<const std::byte> quoted) {
    datagram::NetworkError error;
    error.to = to;
    error.is_ours = entry.error.ee_origin == SO_EE_ORIGIN_LOCAL;
    if (!error.is_ours) error.connection = datagram::quoted_connection(quoted);
    switch (entry.error.ee_errno) {
        case ECONNREFUSED:
            error.kind = datagram::NetworkErrorKind::port_unreachable;
            if (quoted_ && !error.is_ours) quoted_(quoted);
            break;
        case EMSGSIZE:
            error.kind = datagram::NetworkErrorKind::too_long;
            if (entry.error.ee_info <= headers_length(entry.ipv6)) return;
            error.length = entry.error.ee_info - headers_length(entry.ipv6);
            break;
        case EHOSTUNREACH:
        case ENETUNREACH:
        case EHOSTDOWN:
        case ENONET:
        case EACCES:
            error.kind = datagram::NetworkErrorKind::host_unreachable;
            break;
        default:
            return;
    }
    add(error);
}

}  // namespace via::device::udp
