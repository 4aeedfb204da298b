// read(), write() and the like.
#include <errno.h>

#include <cstring>

#include "connection.hpp"
#include "epoll_set.hpp"

using namespace via::sockets;

namespace {

iovec part_of(const void* bytes, std::size_t length) { return {const_cast<void*>(bytes), length}; }

void no_address(sockaddr* address, socklen_t* length) {
    if (address != nullptr && length != nullptr) *length = 0;  // as TCP answers
}

ssize_t send_file(int to, Entry& entry, int from, off_t* offset, std::size_t count) {
    std::array<char, 16384> some;
    std::size_t sum = 0;
    while (sum < count) {
        const std::size_t wanted_bytes = std::min(count - sum, some.size());
        const off_t at = offset != nullptr ? *offset : lseek(from, 0, SEEK_CUR);
        const ssize_t got = pread(from, some.data(), wanted_bytes, at);
        if (got <= 0) return sum > 0 ? static_cast<ssize_t>(sum) : got;
        const iovec part{some.data(), static_cast<std::size_t>(got)};
        const ssize_t sent = send(to, entry, &part, 1, 0);
        if (sent <= 0) return sum > 0 ? static_cast<ssize_t>(sum) : sent;
        if (offset != nullptr)
            *offset += sent;
        else
            lseek(from, sent, SEEK_CUR);
        sum += static_cast<std::size_t>(sent);
        if (sent < got) break;
    }
    return static_cast<ssize_t>(sum);
}

void back_to_kernel(int fd, Reason reason) {
    if (Entry* const entry = socket_entry(fd)) hand_back(fd, *entry, reason);
}

/// Descriptors among control data go to another process.
void look_for_descriptors(const msghdr* message) {
    if (message == nullptr || message->msg_control == nullptr) return;
    for (const cmsghdr* one = CMSG_FIRSTHDR(message); one != nullptr;
         one = CMSG_NXTHDR(const_cast<msghdr*>(message), const_cast<cmsghdr*>(one))) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t bytes = one->cmsg_len - CMSG_LEN(0);
        for (std::size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
            int fd;
            std::memcpy(&fd, CMSG_DATA(one) + at, sizeof fd);
            back_to_kernel(fd, Reason::descriptor_passed);
            SharedSets::relinquish(fd);
        }
    }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

ssize_t read(int fd, void* bytes, size_t length) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().read(fd, bytes, length);
    const iovec part = part_of(bytes, length);
    return receive(fd, *entry, &part, 1, 0);
}

ssize_t __read_chk(int fd, void* bytes, size_t length, size_t room);
ssize_t __read_chk(int fd, void* bytes, size_t length, size_t room) {
    if (length > room) __builtin_trap();
    return read(fd, bytes, length);
}

ssize_t readv(int fd, const iovec* parts, int count) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || count <= 0) return real().readv(fd, parts, count);
    return receive(fd, *entry, parts, count, 0);
}

ssize_t recv(int fd, void* bytes, size_t length, int flags) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().recv(fd, bytes, length, flags);
    const iovec part = part_of(bytes, length);
    return receive(fd, *entry, &part, 1, flags);
}

ssize_t __recv_chk(int fd, void* bytes, size_t length, size_t room, int flags);
ssize_t __recv_chk(int fd, void* bytes, size_t length, size_t room, int flags) {
    if (length > room) __builtin_trap();
    return recv(fd, bytes, length, flags);
}

ssize_t recvfrom(int fd, void* bytes, size_t length, int flags, sockaddr* address,
                 socklen_t* address_length) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().recvfrom(fd, bytes, length, flags, address, address_length);
    const iovec part = part_of(bytes, length);
    const ssize_t got = receive(fd, *entry, &part, 1, flags);
    if (got >= 0) no_address(address, address_length);
    return got;
}

ssize_t __recvfrom_chk(int fd, void* bytes, size_t length, size_t room, int flags,
                       sockaddr* address, socklen_t* address_length);
ssize_t __recvfrom_chk(int fd, void* bytes, size_t length, size_t room, int flags,
                       sockaddr* address, socklen_t* address_length) {
    if (length > room) __builtin_trap();
    return recvfrom(fd, bytes, length, flags, address, address_length);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || message == nullptr || message->msg_iovlen > 1024)
        return real().recvmsg(fd, message, flags);
    const ssize_t got =
        receive(fd, *entry, message->msg_iov, static_cast<int>(message->msg_iovlen), flags);
    if (got >= 0) {
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
    }
    return got;
}

ssize_t write(int fd, const void* bytes, size_t length) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().write(fd, bytes, length);
    const iovec part = part_of(bytes, length);
    return send(fd, *entry, &part, 1, 0);
}

ssize_t writev(int fd, const iovec* parts, int count) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || count <= 0) return real().writev(fd, parts, count);
    return send(fd, *entry, parts, count, 0);
}

ssize_t send(int fd, const void* bytes, size_t length, int flags) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr) return real().send(fd, bytes, length, flags);
    const iovec part = part_of(bytes, length);
    return via::sockets::send(fd, *entry, &part, 1, flags);
}

ssize_t sendto(int fd, const void* bytes, size_t length, int flags, const sockaddr* address,
               socklen_t address_length) {
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || address != nullptr) {
        if (address != nullptr && (flags & MSG_FASTOPEN) != 0)
            back_to_kernel(fd, Reason::unusual_call);
        if (entry == nullptr || entry->stream.load() == nullptr)
            return real().sendto(fd, bytes, length, flags, address, address_length);
    }
    return send(fd, bytes, length, flags);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    look_for_descriptors(message);
    Entry* const entry = socket_entry(fd);
    if (entry == nullptr || message == nullptr) return real().sendmsg(fd, message, flags);
    if (message->msg_controllen != 0 || message->msg_iovlen > 1024) {
        hand_back(fd, *entry, Reason::unusual_call);
        return real().sendmsg(fd, message, flags);
    }
    return via::sockets::send(fd, *entry, message->msg_iov, static_cast<int>(message->msg_iovlen),
                              flags);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    back_to_kernel(fd, Reason::unusual_call);
    return real().recvmmsg(fd, messages, count, flags, timeout);
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
    back_to_kernel(fd, Reason::unusual_call);
    for (unsigned at = 0; messages != nullptr && at < count; ++at)
        look_for_descriptors(&messages[at].msg_hdr);
    return real().sendmmsg(fd, messages, count, flags);
}

ssize_t sendfile(int to, int from, off_t* offset, size_t count) noexcept {
    Entry* const entry = socket_entry(to);
    if (entry == nullptr) return real().sendfile(to, from, offset, count);
    if (!through_memory(to, *entry)) {
        entry->sends.fetch_add(1);
        if (!through_memory(to, *entry)) {
            const ssize_t sent = real().sendfile(to, from, offset, count);
            entry->sends.fetch_sub(1);
            return sent;
        }
        entry->sends.fetch_sub(1);
    }
    return send_file(to, *entry, from, offset, count);
}
ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) noexcept {
    return sendfile(to, from, offset, count);
}

ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
               unsigned flags) {
    back_to_kernel(from, Reason::unusual_call);
    back_to_kernel(to, Reason::unusual_call);
    return real().splice(from, from_offset, to, to_offset, length, flags);
}

}  // extern "C"
#pragma GCC visibility pop
