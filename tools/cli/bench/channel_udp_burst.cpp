// What software over UDP sockets can reach at best: datagrams in bursts that the kernel cuts
// (UDP_SEGMENT) and hands over whole (UDP_GRO), out of the sender's buffer and into the receiver's,
// without headers, checksum or repetition. A stream's messages follow each other as TCP's do.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench/loops.hpp"
#include "bench/udp_sockets.hpp"
#include "bench/udp_window.hpp"

namespace via::bench {

namespace {

constexpr std::size_t bytes_max = 65507;  // of a UDP message, cut or not
constexpr std::size_t datagrams_max = 64;
// Where one datagram would be a burst by itself, over loopback: as Ethernet carries them.
constexpr std::size_t ethernet_bytes = 1472;

std::size_t datagram_bytes_of(const Places& places) {
    const std::size_t bytes = places.datagram_bytes();
    return bytes > bytes_max / 2 ? ethernet_bytes : bytes;
}

std::size_t burst_bytes_of(std::size_t datagram_bytes) {
    return std::min(bytes_max / datagram_bytes, datagrams_max) * datagram_bytes;
}

// Pieces of the buffers in which some bytes lie.
struct Pieces {
    std::array<iovec, datagrams_max + 2> list;
    std::size_t count = 0;
    std::size_t bytes = 0;
};

class UdpBurstEnd : public UdpWindowEnd {
public:
    UdpBurstEnd(Link& link, int fd, std::uint64_t buffer_bytes, std::size_t datagram_bytes)
        : UdpWindowEnd(link, fd),
          half_window_bytes_(buffer_bytes / udp_buffer_cost(burst_bytes_of(datagram_bytes)) *
                             burst_bytes_of(datagram_bytes) / 2),
          datagram_bytes_(datagram_bytes) {}

    bool begin(const Question& question, std::uint64_t messages) {
        const int on = 1;
        if (::setsockopt(fd_, SOL_UDP, UDP_GRO, &on, sizeof on) < 0)
            return give_up_errno("setsockopt UDP_GRO");
        if (!UdpWindowEnd::begin(question, messages, half_window_bytes_, question.size))
            return false;
        burst_bytes_ = burst_bytes_of(datagram_bytes_);
        return true;
    }

    bool send(std::uint64_t i) {
        stamped(i);
        const std::uint64_t end = (i + 1) * question_.size;
        // A stream's rest goes with the next message, unless its buffer is wanted again.
        const bool all = !is_stream() || i + 1 == messages_ ||
                         i + 1 - sent_ / question_.size >= pools_.send.window();
        while (end - sent_ >= burst_bytes_ || (all && sent_ < end)) {
            if (!put_burst(std::min<std::uint64_t>(end - sent_, burst_bytes_))) return false;
        }
        return is_stream() || take_outstanding();
    }

    bool receive(std::uint64_t i) {
        const std::uint64_t end = (i + 1) * question_.size;
        while (received_ < end) {
            const std::uint64_t room = (i + pools_.receive.window()) * question_.size - received_;
            Pieces pieces = pieces_of(pools_.receive, received_, std::min(room, bytes_max));
            msghdr message{};
            message.msg_iov = pieces.list.data();
            message.msg_iovlen = pieces.count;
            const ssize_t got = take([&] { return ::recvmsg(fd_, &message, flags()); });
            if (got < 0) return false;
            if (got == 0 || (message.msg_flags & MSG_TRUNC) != 0)
                return give_up("a burst of {} bytes, which was not sent so", got);
            if (!note_received(static_cast<std::uint64_t>(got))) return false;
        }
        return check(i);
    }

private:
    Pieces pieces_of(const Pool& pool, std::uint64_t from, std::uint64_t bytes) const {
        Pieces pieces;
        while (pieces.bytes < bytes && pieces.count < pieces.list.size()) {
            const std::uint64_t at = (from + pieces.bytes) % question_.size;
            const std::size_t length = std::min(question_.size - at, bytes - pieces.bytes);
            const std::uint64_t message = (from + pieces.bytes) / question_.size;
            pieces.list[pieces.count++] = {pool.at(message) + at, length};
            pieces.bytes += length;
        }
        return pieces;
    }

    bool put_burst(std::uint64_t bytes) {
        Pieces pieces = pieces_of(pools_.send, sent_, bytes);
        msghdr message{};
        message.msg_iov = pieces.list.data();
        message.msg_iovlen = pieces.count;
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
        if (bytes > datagram_bytes_) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            cmsghdr* entry = CMSG_FIRSTHDR(&message);
            entry->cmsg_level = SOL_UDP;
            entry->cmsg_type = UDP_SEGMENT;
            entry->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
            const auto segment = static_cast<std::uint16_t>(datagram_bytes_);
            std::memcpy(CMSG_DATA(entry), &segment, sizeof segment);
        }
        return await_room(bytes) &&
               repeat("sendmsg", [&] { return ::sendmsg(fd_, &message, flags()); });
    }

    std::uint64_t half_window_bytes_;
    std::size_t datagram_bytes_;
    std::size_t burst_bytes_ = 0;
};

class UdpBurstChannel final : public Channel {
public:
    explicit UdpBurstChannel(const Places& places)
        : Channel("udp-burst"), places_(places), datagram_bytes_(datagram_bytes_of(places)) {}

    Question adapt(const Question& asked) const override { return without_vis(asked); }
    std::string refuses(const Question& question) const override {
        if (question.size <= datagram_bytes_)
            return fmt::format("only messages longer than a datagram, which is {} bytes",
                               datagram_bytes_);
        return sockets_.refuse(burst_bytes_of(datagram_bytes_));
    }

    Status prepare(std::uint64_t) override { return sockets_.open(); }
    void drop_files() override { sockets_.drop(); }
    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        return std::make_unique<MessageEndpoint<UdpBurstEnd>>(
            link, sockets_.keep(link.own()), sockets_.buffer_bytes(), datagram_bytes_);
    }

private:
    Places places_;
    UdpSockets sockets_{places_};
    std::size_t datagram_bytes_;
};

}  // namespace

std::unique_ptr<Channel> make_udp_burst(const Places& places) {
    return std::make_unique<UdpBurstChannel>(places);
}

}  // namespace via::bench
