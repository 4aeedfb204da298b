// Control data of messages (cmsg): one value each.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace via::device::udp {

/// The message's only one. `room`: CMSG_SPACE of the value, aligned as a cmsghdr.
template <class Value>
void set_control(msghdr& message, std::span<std::byte> room, int level, int type, Value value) {
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    cmsghdr* const entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = level;
    entry->cmsg_type = type;
    entry->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(entry), &value, sizeof value);
}

template <class Value>
Value value_of(const cmsghdr* entry) {
    Value value;
    std::memcpy(&value, CMSG_DATA(entry), sizeof value);
    return value;
}

}  // namespace via::device::udp
