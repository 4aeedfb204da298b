#include "device/udp/troubles.hpp"

#include <linux/errqueue.h>
#include <cerrno>
#include <cstring>

#include "device/udp/socket_address.hpp"

namespace via::device::udp {

namespace {

constexpr std::size_t waiting_max = 64;
/// Entries of an error queue that are looked at in one go.
constexpr int entries_max = 64;

}  // namespace

void Troubles::add(const datagram::Trouble& trouble) {
    if (waiting_.size() < waiting_max) waiting_.push_back(trouble);
}

bool Troubles::next(datagram::Trouble& trouble) {
    if (waiting_.empty()) return false;
    trouble = waiting_.front();
    waiting_.pop_front();
    return true;
}

void Troubles::read(int socket, Shown* shown) {
    for (int entry = 0; entry < entries_max; ++entry) {
        SocketAddress to;
        alignas(cmsghdr) std::byte control[512];
        std::array<std::byte, sizeof(Shown::bytes)> begin;
        iovec bytes{begin.data(), shown == nullptr ? 0 : begin.size()};
        msghdr message{};
        message.msg_name = &to.any;
        message.msg_namelen = sizeof to.ipv6;
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t length = system_.recvmsg(socket, &message, MSG_ERRQUEUE);
        unsigned interface = 0;
        if (length < 0) {
            if (errno != EINTR) return;
        } else if (is_shown(message, interface)) {
            if (shown != nullptr && shown->interface == 0)
                *shown = {begin, static_cast<std::size_t>(length), interface};
        } else {
            understand(message);
        }
    }
}

/// `interface`: by which it left, where that is told.
bool Troubles::is_shown(msghdr& message, unsigned& interface) {
    bool shown = false;
    for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
         entry = CMSG_NXTHDR(&message, entry)) {
        const auto is = [&](int level, int type) {
            return entry->cmsg_level == level && entry->cmsg_type == type;
        };
        if (is(SOL_IP, IP_PKTINFO)) {
            in_pktinfo info;
            std::memcpy(&info, CMSG_DATA(entry), sizeof info);
            interface = static_cast<unsigned>(info.ipi_ifindex);
        } else if (is(SOL_IPV6, IPV6_PKTINFO)) {
            in6_pktinfo info;
            std::memcpy(&info, CMSG_DATA(entry), sizeof info);
            interface = info.ipi6_ifindex;
        } else if (is(SOL_IP, IP_RECVERR) || is(SOL_IPV6, IPV6_RECVERR)) {
            sock_extended_err error;
            std::memcpy(&error, CMSG_DATA(entry), sizeof error);
            shown = error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
        }
    }
    return shown;
}

void Troubles::understand(msghdr& message) {
    for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
         entry = CMSG_NXTHDR(&message, entry)) {
        const bool ipv4 = entry->cmsg_level == SOL_IP && entry->cmsg_type == IP_RECVERR;
        const bool ipv6 = entry->cmsg_level == SOL_IPV6 && entry->cmsg_type == IPV6_RECVERR;
        if (!ipv4 && !ipv6) continue;
        sock_extended_err error;
        std::memcpy(&error, CMSG_DATA(entry), sizeof error);
        datagram::Trouble trouble;
        trouble.to = from_socket(*static_cast<const sockaddr*>(message.msg_name));
        switch (error.ee_errno) {
            case ECONNREFUSED:
                trouble.kind = datagram::TroubleKind::port_unreachable;
                break;
            case EMSGSIZE:
                trouble.kind = datagram::TroubleKind::too_long;
                if (error.ee_info <= headers_length(ipv6)) continue;
                trouble.length = error.ee_info - headers_length(ipv6);
                break;
            case EHOSTUNREACH:
            case ENETUNREACH:
            case EHOSTDOWN:
            case ENONET:
            case EACCES:
                trouble.kind = datagram::TroubleKind::host_unreachable;
                break;
            default:
                continue;
        }
        add(trouble);
    }
}

}  // namespace via::device::udp
