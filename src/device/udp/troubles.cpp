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

void Troubles::read(int socket) {
    for (int entry = 0; entry < entries_max; ++entry) {
        SocketAddress to;
        alignas(cmsghdr) std::byte control[512];
        std::byte rest[1];  // of the datagram itself, which is not needed
        iovec bytes{rest, sizeof rest};
        msghdr message{};
        message.msg_name = &to.any;
        message.msg_namelen = sizeof to.ipv6;
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        if (system_.recvmsg(socket, &message, MSG_ERRQUEUE) >= 0)
            understand(message);
        else if (errno != EINTR)
            return;
    }
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
