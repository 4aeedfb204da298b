#include "device/udp/receiver.hpp"

#include <netinet/udp.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "device/udp/control.hpp"

namespace via::device::udp {

namespace {

/// Length of the datagrams that a message was joined of; 0: it is one.
std::uint32_t segment_of(msghdr& message) {
    for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
         entry = CMSG_NXTHDR(&message, entry)) {
        if (entry->cmsg_level != SOL_UDP || entry->cmsg_type != UDP_GRO) continue;
        const int segment = value_of<int>(entry);
        return segment > 0 ? static_cast<std::uint32_t>(segment) : 0;
    }
    return 0;
}

bool is_empty(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// What read() says of it.
int fault_of(int error) { return is_empty(error) || error == EINTR ? 0 : error; }

}  // namespace

Receiver::Receiver(System& system) : system_(system) { in_hand_.reserve(Buffers::count); }

std::size_t Receiver::take(std::span<datagram::Incoming> datagrams) {
    std::size_t count = 0;
    for (; count < datagrams.size() && first_ != last_; ++count) {
        Message& message = messages_[first_];
        const std::uint32_t left = message.length - message.taken;
        const std::uint32_t length = std::min(left, message.segment);
        datagram::Incoming& incoming = datagrams[count];
        if (message.from != nullptr)
            incoming.from = *message.from;
        else
            from_socket(slots_[first_].from.any, incoming.from);
        incoming.bytes = buffers_.at(message.buffer) + message.taken;
        incoming.length = length;
        incoming.buffer = message.buffer;
        incoming.to_host_port = message.is_host_port;
        message.taken += length;
        if (message.taken < message.length) continue;
        in_hand_.push_back(message.buffer);
        ++first_;
    }
    return count;
}

void Receiver::release() {
    for (const std::uint32_t buffer : in_hand_) buffers_.give_back(buffer);
    in_hand_.clear();
}

/// Makes slots ready; returns how many there are buffers for.
unsigned Receiver::prepare(unsigned count) {
    while (prepared_count_ < count) {
        const std::uint32_t buffer = buffers_.take();
        if (buffer == Buffers::none) break;
        slots_[prepared_count_].bytes = {buffers_.at(buffer), Buffers::bytes};
        renew(prepared_count_);
        prepared_[prepared_count_++] = buffer;
    }
    return std::min(count, prepared_count_);
}

/// The kernel writes to a header only with what it received.
void Receiver::renew(unsigned index) {
    Slot& slot = slots_[index];
    msghdr& header = headers_[index].msg_hdr;
    header.msg_iov = &slot.bytes;
    header.msg_iovlen = 1;
    header.msg_control = slot.control.data();
    header.msg_controllen = slot.control.size();
}

void Receiver::accept(unsigned index, std::uint32_t length, bool is_host_port,
                      const HostAddress* from) {
    Message& message = messages_[index];
    message.buffer = prepared_[index];
    message.length = length;
    message.taken = 0;
    message.segment = segment_of(headers_[index].msg_hdr);
    if (message.segment == 0) message.segment = length;
    message.is_host_port = is_host_port;
    message.from = from;
}

/// As read(), of a socket where nothing is joined. A lone datagram is the one that somebody
/// waits for.
int Receiver::read_lone(int socket, Habit& habit) {
    if (prepared_count_ == 0 && prepare(1) == 0) return 0;
    const unsigned index = prepared_count_ - 1;
    Slot& slot = slots_[index];
    const bool asks = habit.sender() == nullptr;
    socklen_t address_length = sizeof slot.from.ipv6;
    const ssize_t length =
        system_.recvfrom(socket, slot.bytes.iov_base, slot.bytes.iov_len,
                         asks ? &slot.from.any : nullptr, asks ? &address_length : nullptr);
    if (length < 0) {
        const int error = errno;
        habit.more_expected = false;
        judge_joining(socket, habit, 0, 0, is_empty(error));
        return fault_of(error);
    }
    Message& message = messages_[index];
    message.buffer = prepared_[index];
    message.length = message.segment = static_cast<std::uint32_t>(length);
    message.taken = 0;
    message.is_host_port = false;
    message.from = habit.sender();
    prepared_count_ = first_ = index;
    last_ = index + 1;
    habit.more_expected = message.length <= small_bytes;
    judge_joining(socket, habit, 1, message.length, false);
    return 0;
}

/// `asks`: whom they are from.
unsigned Receiver::read_messages(int socket, unsigned wanted, bool asks) {
    for (unsigned index = 0; index < wanted; ++index) {
        msghdr& header = headers_[index].msg_hdr;
        header.msg_name = asks ? &slots_[index].from.any : nullptr;
        header.msg_namelen = asks ? sizeof slots_[index].from.ipv6 : 0;
    }
    if (wanted != 1)
        return static_cast<unsigned>(
            std::max(0, system_.recvmmsg(socket, headers_.data(), wanted)));
    const ssize_t length = system_.recvmsg(socket, &headers_[0].msg_hdr, 0);
    if (length < 0) return 0;
    headers_[0].msg_len = static_cast<unsigned>(length);
    return 1;
}

/// After a look at the socket. Nothing is joined any more once it was found empty.
/// `length`: of the first datagram.
void Receiver::judge_joining(int socket, Habit& habit, unsigned count, std::uint32_t length,
                             bool empty) {
    const bool came_before = std::exchange(habit.came_before, count != 0);
    if (count == 0) {
        habit.several = 0;
        if (!empty) return;
        habit.was_emptied = habit.only_from != nullptr;
        if (habit.joining == Joining::ending && habit.lone >= lone_looks + ending_looks) {
            habit.joining = Joining::off;
            habit.lone = 0;
        }
        return;
    }
    if (!came_before && count == 1 && length <= lone_bytes) {
        habit.several = 0;
        if (habit.joining != Joining::on || ++habit.lone < lone_looks) return;
        if (system_.setsockopt(socket, SOL_UDP, UDP_GRO, 0) == 0) habit.joining = Joining::ending;
        return;
    }
    habit.lone = 0;
    if (habit.joining == Joining::on || ++habit.several < several_looks) return;
    // Where that fails it is tried again with the next one that is not alone.
    if (system_.setsockopt(socket, SOL_UDP, UDP_GRO, 1) == 0) habit.joining = Joining::on;
}

/// Joining was just switched off, and one that was joined before, or on its way through the kernel
/// then, would be told of as one: what there is is read with joining on. 0: read it; else as
/// read() of nothing.
int Receiver::look_while_ending(int socket, Habit& habit) {
    msghdr nothing{};
    if (system_.recvmsg(socket, &nothing, MSG_PEEK) < 0) {
        const int error = errno;
        judge_joining(socket, habit, 0, 0, is_empty(error));
        return error;
    }
    if (system_.setsockopt(socket, SOL_UDP, UDP_GRO, 1) != 0) return errno;
    habit.joining = Joining::on;
    return 0;
}

int Receiver::read(int socket, Habit* habit) {
    if (habit != nullptr && habit->joining == Joining::off) return read_lone(socket, *habit);
    if (habit != nullptr && habit->joining == Joining::ending)
        if (const int error = look_while_ending(socket, *habit); error != 0) return fault_of(error);
    // Behind one there may be more.
    const HostAddress* const from = habit != nullptr ? habit->sender() : nullptr;
    const unsigned wanted = prepare(habit != nullptr && habit->more_expected ? burst_max : 1);
    if (wanted == 0) return 0;
    const unsigned count = read_messages(socket, wanted, from == nullptr);
    const int error = count == 0 ? errno : 0;
    if (habit != nullptr) {
        // Large ones are taken one by one: the cache still has a buffer that is used again at once.
        habit->more_expected = count == wanted && headers_[0].msg_len <= small_bytes;
        judge_joining(socket, *habit, count, headers_[0].msg_len, is_empty(error));
    }
    if (count == 0) return fault_of(error);
    first_ = last_ = 0;
    for (unsigned n = 0; n < count; ++n) accept(n, headers_[n].msg_len, habit == nullptr, from);
    last_ = count;
    // Those not used go back, or the next datagrams would come to memory that was not touched for
    // long, or never.
    while (prepared_count_ > count) buffers_.give_back(prepared_[--prepared_count_]);
    prepared_count_ = 0;
    return 0;
}

}  // namespace via::device::udp
