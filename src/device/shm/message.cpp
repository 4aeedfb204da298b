#include "device/shm/message.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace via::device::shm {

Message::~Message() {
    for (const int fd : descriptors()) system_.close(fd);
}

int Message::receive(int socket) {
    iovec part{bytes_, sizeof bytes_};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * descriptors_max)];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int) * descriptors_max);
    ssize_t length;
    bool reset = false;
    do {
        length = system_.recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        // Of a peer that closes without having read all, the socket says so once, and before what
        // the peer said last: why it refuses or leaves us.
    } while (length < 0 &&
             (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
    if (length < 0) return errno;
    length_ = static_cast<std::size_t>(length);
    cut_ = (header.msg_flags & MSG_CTRUNC) != 0;
    for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
         entry = CMSG_NXTHDR(&header, entry)) {
        if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count && descriptor_count_ < descriptors_max; ++i) {
            std::memcpy(&descriptors_[descriptor_count_++], CMSG_DATA(entry) + i * sizeof(int),
                        sizeof(int));
        }
    }
    return 0;
}

int send_message(System& system, int socket, std::span<const std::byte> bytes,
                 std::span<const int> descriptors) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * descriptors_max)] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        VIA_ASSERT(descriptors.size() <= descriptors_max);
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* attached = CMSG_FIRSTHDR(&header);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(attached), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t sent;
    do {
        sent = system.sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) return errno;
    return static_cast<std::size_t>(sent) == bytes.size() ? 0 : EMSGSIZE;
}

void say_goodbye(System& system, int socket, std::string_view text) {
    const Farewell goodbye = make_goodbye(text);
    send_message(system, socket, std::as_bytes(std::span(&goodbye, 1)));
}

bool means_gone(int error) { return error == ECONNRESET || error == EPIPE || error == ENOTCONN; }

}  // namespace via::device::shm
