// UDP. Datagrams can be lost when the receiver's buffer is full, so the receiver
// acknowledges every half window and the sender never has more than a window in flight; a message
// larger than a datagram goes in several.
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "bench/clock.hpp"
#include "bench/end.hpp"
#include "bench/file_handle.hpp"
#include "bench/loops.hpp"

namespace via::bench {

namespace {

constexpr std::int64_t lost_after_ns = 2'000'000'000;
constexpr int wanted_buffer_bytes = 4 << 20;

// What a datagram costs of the receiver's buffer, generously: the kernel counts its own
// structures and rounds data up.
std::uint64_t buffer_cost(std::uint64_t bytes) { return 2 * bytes + 2048; }

class UdpEnd : public End {
public:
    UdpEnd(Link& link, int fd, std::uint64_t buffer_bytes, std::size_t datagram_bytes)
        : End(link), fd_(fd), buffer_bytes_(buffer_bytes), datagram_bytes_(datagram_bytes) {}

    // Between machines: the other side is there, and what both can take is known.
    void agree(std::uint64_t buffer_bytes, std::size_t datagram_bytes) {
        buffer_bytes_ = buffer_bytes;
        datagram_bytes_ = datagram_bytes;
    }

    bool begin(const Question& question, std::uint64_t messages) {
        const std::uint64_t part = std::min<std::uint64_t>(question.size, datagram_bytes_);
        parts_ =
            std::max<std::uint64_t>((question.size + datagram_bytes_ - 1) / datagram_bytes_, 1);
        half_window_ = std::max<std::uint64_t>(buffer_bytes_ / buffer_cost(part) / 2, 1);
        sent_ = received_ = acknowledged_ = 0;
        spinning_ = question.wait == Wait::poll;
        if (!End::begin(question, messages)) return false;
        // A ping-pong whose reply proves arrival needs no acknowledgement.
        acknowledging_ = is_stream() || parts_ > half_window_;
        return true;
    }

    bool send(std::uint64_t i) {
        const std::byte* from = stamped(i);
        for (std::uint64_t part = 0; part < parts_; ++part) {
            while (acknowledging_ && sent_ >= acknowledged_ + 2 * half_window_) {
                if (!take_acknowledgement()) return false;
            }
            const std::size_t at = part * datagram_bytes_;
            const std::size_t bytes = std::min<std::size_t>(question_.size - at, datagram_bytes_);
            if (!put(from + at, bytes)) return false;
            ++sent_;
        }
        // In a ping-pong the reply must not be taken for an acknowledgement, nor the reverse.
        return is_stream() || take_outstanding();
    }

    bool receive(std::uint64_t i) {
        std::byte* to = pools_.receive.at(i);
        for (std::uint64_t part = 0; part < parts_; ++part) {
            const std::size_t at = part * datagram_bytes_;
            const std::size_t bytes = std::min<std::size_t>(question_.size - at, datagram_bytes_);
            if (!get(to + at, bytes)) return false;
            ++received_;
            if (acknowledging_ && received_ % half_window_ == 0 && !put(&acknowledgement_, 1)) {
                return false;
            }
        }
        return check(i);
    }

    bool finish() { return !link_.is_first() || !is_stream() || take_outstanding(); }

private:
    bool take_acknowledgement() {
        std::byte ignored{};
        acknowledged_ += half_window_;
        return get(&ignored, 1);
    }
    bool take_outstanding() {
        while (acknowledging_ && sent_ >= acknowledged_ + half_window_) {
            if (!take_acknowledgement()) return false;
        }
        return true;
    }

    bool put(const std::byte* from, std::size_t bytes) {
        const int flags = spinning_ ? MSG_DONTWAIT : 0;
        while (::send(fd_, from, bytes, flags) < 0) {
            if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) return give_up_errno("send");
        }
        return true;
    }

    bool get(std::byte* to, std::size_t bytes) {
        const int flags = spinning_ ? MSG_DONTWAIT : 0;
        std::int64_t since_ns = 0;
        for (std::uint64_t tries = 1;; ++tries) {
            const ssize_t got = ::recv(fd_, to, bytes, flags | MSG_TRUNC);
            if (got >= 0 && static_cast<std::size_t>(got) == bytes) return true;
            if (got >= 0) return give_up("datagram of {} bytes where {} were due", got, bytes);
            if (errno != EAGAIN && errno != EINTR) return give_up_errno("recv");
            if (!spinning_ && errno == EAGAIN) return give_up("a datagram was lost");
            if (tries % 65536 != 0) continue;
            if (since_ns == 0) since_ns = now_ns();
            if (now_ns() - since_ns > lost_after_ns) return give_up("a datagram was lost");
        }
    }

    int fd_;
    std::uint64_t buffer_bytes_;
    std::size_t datagram_bytes_;
    std::uint64_t parts_ = 1;
    std::uint64_t half_window_ = 1;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t acknowledged_ = 0;
    bool spinning_ = true;
    bool acknowledging_ = false;
    std::byte acknowledgement_{1};
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
        if (datagram_bytes == 0 || buffer_bytes < 2 * buffer_cost(datagram_bytes)) {
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
        if (buffer_bytes_ != 0 && buffer_bytes_ < 2 * buffer_cost(part)) {
            return fmt::format("a receive buffer of {} bytes is too small (net.core.rmem_max)",
                               buffer_bytes_);
        }
        return {};
    }

    Status prepare(std::uint64_t) override {
        if (places_.remote()) return bind_one(places_.own());
        for (std::size_t side = 0; side < 2; ++side) {
            if (auto bound = bind_one(side); !bound) return bound;
        }
        for (std::size_t side = 0; side < 2; ++side) {
            const auto peer = Address::own_of(ends_[1 - side].get());
            if (!peer) return std::unexpected(peer.error());
            if (::connect(ends_[side].get(), peer->get(), peer->bytes()) < 0) {
                return fail_errno("connect to " + peer->text());
            }
        }
        return {};
    }

    void drop_files() override {
        for (FileHandle& end : ends_) end.reset();
    }

    std::unique_ptr<Endpoint> endpoint(Link& link) override {
        ends_[link.other()].reset();
        const int own = ends_[link.own()].get();
        if (places_.remote()) {
            return std::make_unique<RemoteUdpEndpoint>(link, own, buffer_bytes_, places_);
        }
        return std::make_unique<MessageEndpoint<UdpEnd>>(link, own, buffer_bytes_,
                                                         places_.datagram_bytes());
    }

private:
    Status bind_one(std::size_t side) {
        auto made = places_.make_socket(side, SOCK_DGRAM);
        if (!made) return std::unexpected(made.error());
        FileHandle end = std::move(*made);
        for (const int option : {SO_RCVBUF, SO_SNDBUF}) {
            ::setsockopt(end.get(), SOL_SOCKET, option, &wanted_buffer_bytes,
                         sizeof wanted_buffer_bytes);
        }
        int granted = 0;
        socklen_t length = sizeof granted;
        if (::getsockopt(end.get(), SOL_SOCKET, SO_RCVBUF, &granted, &length) < 0) {
            return fail_errno("SO_RCVBUF");
        }
        buffer_bytes_ = static_cast<std::uint64_t>(granted);
        const timeval patience{lost_after_ns / 1'000'000'000, 0};
        if (::setsockopt(end.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0) {
            return fail_errno("SO_RCVTIMEO");
        }
        const Address& here = places_.address(side);
        if (::bind(end.get(), here.get(), here.bytes()) < 0) {
            return fail_errno("bind to " + here.machine_text());
        }
        ends_[side] = std::move(end);
        return {};
    }

    Places places_;
    std::array<FileHandle, 2> ends_;
    std::uint64_t buffer_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Channel> make_udp_socket(const Places& places) {
    return std::make_unique<UdpChannel>(places);
}

}  // namespace via::bench
