#include "device/udp/sender.hpp"

#include <netinet/udp.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/udp/control.hpp"

namespace via::device::udp {

namespace {

/// An error of an earlier datagram may be told at the next call: tries of each datagram.
constexpr int tries_max = 3;

bool is_no_room(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// Not to be had here, or not now, as opposed to what every datagram may meet.
bool is_refusal_to_cut(int error) {
    return error == EINVAL || error == EIO || error == EOPNOTSUPP || error == ENOPROTOOPT ||
           error == EMSGSIZE;
}

/// Adds the datagram behind the message's other pieces, or to the last one: each costs the kernel
/// as much as a kilobyte.
void add_piece(const datagram::Outgoing& datagram, msghdr& message) {
    if (message.msg_iovlen != 0) {
        iovec& last = message.msg_iov[message.msg_iovlen - 1];
        if (static_cast<std::byte*>(last.iov_base) + last.iov_len == datagram.bytes) {
            last.iov_len += datagram.length;
            return;
        }
    }
    message.msg_iov[message.msg_iovlen++] = {const_cast<std::byte*>(datagram.bytes),
                                             datagram.length};
}

}  // namespace

/// How many datagrams from the first on can be one message.
std::size_t Sender::run_length(std::span<const datagram::Outgoing> datagrams) const {
    const datagram::Outgoing& first = datagrams.front();
    if (!joins_ || first.length == 0) return 1;
    std::size_t bytes = first.length;
    std::size_t count = 1;
    while (count < datagrams.size()) {
        const datagram::Outgoing& next = datagrams[count];
        bytes += next.length;
        if (bytes > joined_bytes_max) break;
        if (next.follows) {
            ++count;
            continue;
        }
        if (next.length > first.length || next.length == 0 || !(next.to == first.to)) break;
        ++count;
        if (next.length < first.length) break;  // only the last one may be shorter
    }
    return count;
}

msghdr& Sender::begin_message(std::size_t index, std::size_t datagrams) {
    messages_[index].datagrams = datagrams;
    msghdr& header = headers_[index].msg_hdr;
    header = {};
    header.msg_iov = &pieces_[piece_count_];
    return header;
}

void Sender::fill(std::size_t index, std::span<const datagram::Outgoing> run) {
    Message& message = messages_[index];
    msghdr& header = begin_message(index, run.size());
    if (names_) {
        message.to = to_socket(run.front().to, scope_);
        header.msg_name = &message.to.any;
        header.msg_namelen = message.to.length;
    }
    add_pieces(run, header);
    if (run.size() == 1) return;
    set_control(header, message.control, SOL_UDP, UDP_SEGMENT,
                static_cast<std::uint16_t>(run.front().length));
}

void Sender::add_pieces(std::span<const datagram::Outgoing> run, msghdr& header) {
    for (const datagram::Outgoing& datagram : run) add_piece(datagram, header);
    piece_count_ += header.msg_iovlen;
}

void Sender::fill_frame(std::size_t index, const EthernetModel& model,
                        std::span<const datagram::Outgoing> run) {
    Message& message = messages_[index];
    msghdr& header = begin_message(index, run.size());
    std::size_t length = 0;
    for (const datagram::Outgoing& datagram : run) length += datagram.length;
    header.msg_iov[0] = {message.head.data(),
                         model.write(message.head.data(), static_cast<std::uint32_t>(length),
                                     run.size() == 1 ? 0 : run.front().length)};
    header.msg_iovlen = 1;
    add_pieces(run, header);
}

/// Makes messages of as many datagrams as fit; returns how many those are.
std::size_t Sender::gather(std::span<const datagram::Outgoing> datagrams,
                           const EthernetModel* model) {
    std::size_t count = 0;
    gathered_ = piece_count_ = 0;
    while (count < datagrams.size() && count < datagrams_max && gathered_ < messages_max) {
        const auto rest =
            datagrams.subspan(count, std::min(datagrams.size(), datagrams_max) - count);
        const std::size_t run = run_length(rest);
        if (model != nullptr)
            fill_frame(gathered_++, *model, rest.first(run));
        else
            fill(gathered_++, rest.first(run));
        count += run;
    }
    return count;
}

std::size_t Sender::send(int socket, bool connected,
                         std::span<const datagram::Outgoing> datagrams) {
    names_ = !connected;
    if (datagrams.size() == 1) return send_one(socket, datagrams.front()) == Result::sent ? 1 : 0;
    std::size_t taken = 0;
    bool no_room = false;
    while (taken < datagrams.size() && !no_room) {
        const auto rest = datagrams.subspan(taken);
        if (rest.size() > 1) {
            taken += send_gathered(socket, rest.first(gather(rest)), no_room);
            continue;
        }
        no_room = send_one(socket, rest.front()) == Result::no_room;
        if (!no_room) ++taken;
    }
    return taken;
}

/// Behind the messages from `done` on that the kernel took; returns how many datagrams those were.
std::size_t Sender::pass(std::size_t& done, int count) const {
    std::size_t datagrams = 0;
    for (const std::size_t end = done + static_cast<std::size_t>(count); done < end; ++done)
        datagrams += messages_[done].datagrams;
    return datagrams;
}

std::size_t Sender::send_frames(int socket, const EthernetModel& model,
                                std::span<const datagram::Outgoing> datagrams) {
    const datagram::Outgoing& first = datagrams.front();
    if (datagrams.size() == 1 && first.length <= copied_max) {
        // One piece costs the kernel less than two, and more than a copy.
        std::array<std::byte, EthernetModel::head_max + copied_max> frame;
        const std::size_t head = model.write(frame.data(), first.length, 0);
        std::memcpy(frame.data() + head, first.bytes, first.length);
        return system_.sendto(socket, frame.data(), head + first.length, nullptr, 0) >= 0 ? 1 : 0;
    }
    std::size_t taken = 0;
    while (taken < datagrams.size()) {
        gather(datagrams.subspan(taken), &model);
        for (std::size_t done = 0; done < gathered_;) {
            const int count =
                system_.sendmmsg(socket, &headers_[done], static_cast<unsigned>(gathered_ - done));
            if (count <= 0) return taken;
            taken += pass(done, count);
        }
    }
    return taken;
}

/// Sends what was gathered; returns how many datagrams were taken.
std::size_t Sender::send_gathered(int socket, std::span<const datagram::Outgoing> datagrams,
                                  bool& no_room) {
    std::size_t taken = 0;
    for (std::size_t done = 0; done < gathered_ && !no_room;) {
        const int count =
            system_.sendmmsg(socket, &headers_[done], static_cast<unsigned>(gathered_ - done));
        if (count > 0) {
            taken += pass(done, count);
            continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && is_no_room(errno)) {
            no_room = true;
            break;
        }
        // The first message left has a fault of its own, or tells of an earlier one.
        const auto run = datagrams.subspan(taken, messages_[done].datagrams);
        no_room = send_joined(socket, run, headers_[done], taken) == Result::no_room;
        ++done;
    }
    return taken;
}

/// One message once more; if the kernel does not cut it, datagram by datagram.
Sender::Result Sender::send_joined(int socket, std::span<const datagram::Outgoing> run,
                                   mmsghdr& message, std::size_t& taken) {
    if (run.size() > 1) {
        if (errno == EIO || errno == EOPNOTSUPP || errno == ENOPROTOOPT) joins_ = false;
        if (!is_refusal_to_cut(errno)) {
            network_errors_.read(socket);
            if (system_.sendmmsg(socket, &message, 1) == 1) {
                taken += run.size();
                return Result::sent;
            }
        }
    }
    for (const datagram::Outgoing& datagram : run) {
        if (send_one(socket, datagram) == Result::no_room) return Result::no_room;
        ++taken;
    }
    return Result::sent;
}

bool Sender::give(int socket, const datagram::Outgoing& datagram) {
    SocketAddress to;
    if (names_) to = to_socket(datagram.to, scope_);
    return system_.sendto(socket, datagram.bytes, datagram.length, names_ ? &to.any : nullptr,
                          to.length) >= 0;
}

Sender::Result Sender::send_one(int socket, const datagram::Outgoing& datagram) {
    int error = 0;
    for (int tries = 0; tries < tries_max; ++tries) {
        if (give(socket, datagram)) return Result::sent;
        error = errno;
        if (is_no_room(error)) return Result::no_room;
        if (error != EINTR) network_errors_.read(socket);
        if (error == EMSGSIZE) break;
    }
    lose(datagram, error);
    return Result::sent;
}

void Sender::lose(const datagram::Outgoing& datagram, int error) {
    switch (error) {
        case EMSGSIZE:
            met_too_long_ = true;  // what fits is in the error queue
            return;
        case ENOBUFS:  // a full queue of the interface, or memory: as if lost on the way
        case ENOMEM:
        case EINTR:
        case ECONNREFUSED:  // of somebody else, told again and again
            return;
        default:
            network_errors_.add({datagram::NetworkErrorKind::no_way, datagram.to, 0, 0, true});
    }
}

}  // namespace via::device::udp
