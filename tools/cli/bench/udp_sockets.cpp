#include "bench/udp_sockets.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <utility>

#include "bench/address.hpp"

namespace via::bench {

namespace {

constexpr int wanted_buffer_bytes = 4 << 20;

}  // namespace

Status UdpSockets::open() {
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

std::string UdpSockets::refuse(std::uint64_t datagram_bytes) const {
    if (buffer_bytes_ == 0 || buffer_bytes_ >= 2 * udp_buffer_cost(datagram_bytes)) return {};
    return fmt::format("a receive buffer of {} bytes is too small (net.core.rmem_max)",
                       buffer_bytes_);
}

Status UdpSockets::bind_one(std::size_t side) {
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
        return fail_errno("setsockopt SO_RCVBUF");
    }
    buffer_bytes_ = static_cast<std::uint64_t>(granted);
    const timeval patience{udp_lost_after_ns / 1'000'000'000, 0};
    if (::setsockopt(end.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0) {
        return fail_errno("setsockopt SO_RCVTIMEO");
    }
    const Address& here = places_.address(side);
    if (::bind(end.get(), here.get(), here.bytes()) < 0) {
        return fail_errno("bind to " + here.machine_text());
    }
    ends_[side] = std::move(end);
    return {};
}

}  // namespace via::bench
