// UDP: a message larger than a datagram goes in several.
#include <sys/socket.h>

#include <algorithm>

#include "bench/loops.hpp"
#include "bench/udp_sockets.hpp"
#include "bench/udp_window.hpp"

namespace via::bench {

namespace {

class UdpEnd : public UdpWindowEnd {
public:
    UdpEnd(Link& link, int fd, std::uint64_t buffer_bytes, std::size_t datagram_bytes)
        : UdpWindowEnd(link, fd), buffer_bytes_(buffer_bytes), datagram_bytes_(datagram_bytes) {}

    // Between machines: the other side is there, and what both can take is known.
    void agree(std::uint64_t buffer_bytes, std::size_t datagram_bytes) {
        buffer_bytes_ = buffer_bytes;
        datagram_bytes_ = datagram_bytes;
    }

    bool begin(const Question& question, std::uint64_t messages) {
        const std::uint64_t part = std::min<std::uint64_t>(question.size, datagram_bytes_);
        parts_ =
            std::max<std::uint64_t>((question.size + datagram_bytes_ - 1) / datagram_bytes_, 1);
        return UdpWindowEnd::begin(question, messages, buffer_bytes_ / udp_buffer_cost(part) / 2,
                                   parts_);
    }

    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        for (std::uint64_t part = 0; part < parts_; ++part) {
            const std::size_t at = part * datagram_bytes_;
            if (!await_room(1) || !put(from + at, part_bytes(at))) return false;
        }
        return is_stream() || take_outstanding();
    }

    bool receive(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        for (std::uint64_t part = 0; part < parts_; ++part) {
            const std::size_t at = part * datagram_bytes_;
            if (!get(to + at, part_bytes(at)) || !note_received(1)) return false;
        }
        return check(i);
    }

private:
    std::size_t part_bytes(std::size_t at) const {
        return std::min<std::size_t>(question_.size - at, datagram_bytes_);
    }

    std::uint64_t buffer_bytes_;
    std::size_t datagram_bytes_;
    std::uint64_t parts_ = 1;
};

// Between machines the two sides tell each other where their sockets are.
class RemoteUdpEndpoint final : public Endpoint {
public:
    RemoteUdpEndpoint(Link& link, int fd, std::uint64_t buffer_bytes, const Places& places)
        : link_(link),
          fd_(fd),
          buffer_bytes_(buffer_bytes),
          places_(places),
          end_(link, fd, buffer_bytes, places.datagram_bytes()) {}

    Status open() override {
        const auto own = Address::own_of(fd_);
        if (!own) return std::unexpected(own.error());
        link_.mine().port = own->port();
        link_.mine().buffer_bytes = buffer_bytes_;
        link_.mine().datagram_bytes = static_cast<std::uint32_t>(places_.datagram_bytes());
        if (!link_.meet()) return fail("{}", called_off);
        const Published& theirs = link_.theirs();
        const std::size_t datagram_bytes =
            std::min<std::size_t>(theirs.datagram_bytes, places_.datagram_bytes());
        const std::uint64_t buffer_bytes = std::min(theirs.buffer_bytes, buffer_bytes_);
        if (datagram_bytes == 0 || buffer_bytes < 2 * udp_buffer_cost(datagram_bytes)) {
            return fail(
                "the sockets hold {} bytes, too few for datagrams of {} (net.core.rmem_max)",
                buffer_bytes, datagram_bytes);
        }
        end_.agree(buffer_bytes, datagram_bytes);
        const Address peer =
            places_.address(link_.other()).with_port(static_cast<std::uint16_t>(theirs.port));
        if (::connect(fd_, peer.get(), peer.bytes()) < 0) {
            return fail_errno("connect to " + peer.text());
        }
        return link_.meet() ? Status{} : fail("{}", called_off);
    }

    Result<Reading> measure(const Question& question, const Effort& effort) override {
        return run_messages(end_, link_, question, effort);
    }

private:
    Link& link_;
    int fd_;
    std::uint64_t buffer_bytes_;
    const Places& places_;
    UdpEnd end_;
};

class UdpChannel final : public Channel {
public:
    explicit UdpChannel(const Places& places) : Channel("udp-socket"), places_(places) {}

    Question adapt(const Question& asked) const override { return without_vis(asked); }
    std::string refuses(const Question& question) const override {
        const std::uint64_t part = std::min<std::uint64_t>(question.size, places_.datagram_bytes());
        return sockets_.refuse(part);
    }

    Status prepare(std::uint64_t) override { return sockets_.open(); }
    void drop_files() override { sockets_.drop(); }

    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        const int own = sockets_.keep(link.own());
        if (places_.remote()) {
            return std::make_unique<RemoteUdpEndpoint>(link, own, sockets_.buffer_bytes(), places_);
        }
        return std::make_unique<MessageEndpoint<UdpEnd>>(link, own, sockets_.buffer_bytes(),
                                                         places_.datagram_bytes());
    }

private:
    Places places_;
    UdpSockets sockets_{places_};
};

}  // namespace

std::unique_ptr<Channel> make_udp_socket(const Places& places) {
    return std::make_unique<UdpChannel>(places);
}

}  // namespace via::bench
