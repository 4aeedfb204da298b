#include "device/udp/ethernet_model.hpp"

#include <netinet/in.h>

#include <cstring>

namespace via::device::udp {

namespace {

/// virtio_net_hdr, whose header C++ cannot read.
struct Virtio {
    std::uint8_t flags = 0;
    std::uint8_t cut = 0;
    std::uint16_t head = 0;  ///< bytes before those that may be in pages of their own
    std::uint16_t segment = 0;
    std::uint16_t sum_start = 0;  ///< from where on the checksum counts
    std::uint16_t sum_at = 0;     ///< behind that
};
constexpr std::size_t virtio_length = sizeof(Virtio);
constexpr std::uint8_t needs_sum = 1;  ///< VIRTIO_NET_HDR_F_NEEDS_CSUM
constexpr std::size_t ethernet_length = 14;
constexpr std::size_t ipv4_length = 20;
constexpr std::size_t ipv6_length = 40;
constexpr std::size_t udp_length = 8;
constexpr std::uint8_t cut_udp = 5;  ///< VIRTIO_NET_HDR_GSO_UDP_L4, of Linux 6.2
/// Frames of so many bytes are one piece of the kernel's memory, of which it has some in stock; of
/// longer ones only the head is, and the rest in pages.
constexpr std::size_t linear_max = 7500;

std::uint32_t word(const std::byte* at) {
    return (std::to_integer<std::uint32_t>(at[0]) << 8) | std::to_integer<std::uint32_t>(at[1]);
}
void put_word(std::byte* at, std::uint32_t value) {
    at[0] = static_cast<std::byte>(value >> 8);
    at[1] = static_cast<std::byte>(value);
}
/// Of an even number of bytes (RFC 1071), not folded.
std::uint32_t sum(const std::byte* at, std::size_t length) {
    std::uint32_t total = 0;
    for (std::size_t n = 0; n < length; n += 2) total += word(at + n);
    return total;
}
std::uint32_t fold(std::uint32_t total) {
    total = (total & 0xFFFF) + (total >> 16);
    return (total & 0xFFFF) + (total >> 16);
}

/// Of a NIC address: the host, and behind it the port.
bool is_at(const std::byte* ip, const std::byte* port, const HostAddress& address) {
    return std::memcmp(ip, address.bytes.data(), address.length - 2U) == 0 &&
           word(port) == port_of(address);
}

}  // namespace

bool EthernetModel::learn(std::span<const std::byte> frame, std::uint32_t length,
                          const HostAddress& from, const HostAddress& to) {
    forget();
    const bool ipv6 = is_ipv6(from);
    const std::size_t ip_length = ipv6 ? ipv6_length : ipv4_length;
    const std::size_t headers = headers_length(ipv6);
    if (frame.size() < headers || from.length != to.length) return false;
    const std::byte* const ip = frame.data() + ethernet_length;
    const std::byte* const udp = ip + ip_length;
    const auto is = [](std::byte byte, std::uint8_t value) { return byte == std::byte{value}; };
    if (word(ip - 2) != (ipv6 ? 0x86DDU : 0x0800U) || word(udp + 4) != udp_length + length)
        return false;
    if (ipv6) {
        if ((ip[0] & std::byte{0xF0}) != std::byte{0x60} || !is(ip[6], IPPROTO_UDP) ||
            word(ip + 4) != udp_length + length || !is_at(ip + 8, udp, from) ||
            !is_at(ip + 24, udp + 2, to))
            return false;
        pseudo_sum_ = sum(ip + 8, 32) + IPPROTO_UDP;
    } else {
        // To nobody, as on the loopback, which knows our own address as a sender only from us.
        if (sum(frame.data(), 6) == 0) return false;
        // In one piece, and never cut (DF): then its identification need not differ (RFC 6864).
        if (!is(ip[0], 0x45) || word(ip + 6) != 0x4000 || !is(ip[9], IPPROTO_UDP) ||
            word(ip + 2) != ipv4_length + udp_length + length || !is_at(ip + 12, udp, from) ||
            !is_at(ip + 16, udp + 2, to))
            return false;
        ip_sum_ = sum(ip, ipv4_length) - word(ip + 2) - word(ip + 10);
        pseudo_sum_ = sum(ip + 12, 8) + IPPROTO_UDP;
    }
    ipv6_ = ipv6;
    head_length_ = virtio_length + headers;
    std::memcpy(head_.data() + virtio_length, frame.data(), headers);
    return true;
}

std::size_t EthernetModel::write(std::byte* at, std::uint32_t length, std::uint32_t segment) const {
    std::memcpy(at, head_.data(), head_length_);
    std::byte* const ip = at + virtio_length + ethernet_length;
    std::byte* const udp = at + head_length_ - udp_length;
    const std::size_t headers = head_length_ - virtio_length;
    Virtio virtio;
    // The checksum is finished by the interface, as ever, or by the kernel where it cannot.
    virtio.flags = needs_sum;
    virtio.sum_start = static_cast<std::uint16_t>(headers - udp_length);
    virtio.sum_at = 6;
    virtio.head =
        static_cast<std::uint16_t>(headers + length <= linear_max ? headers + length : headers);
    if (segment != 0) {
        virtio.cut = cut_udp;
        virtio.segment = static_cast<std::uint16_t>(segment);
    }
    std::memcpy(at, &virtio, sizeof virtio);
    const std::uint32_t datagram = static_cast<std::uint32_t>(udp_length) + length;
    if (ipv6_) {
        put_word(ip + 4, datagram);
    } else {
        const std::uint32_t total = static_cast<std::uint32_t>(ipv4_length) + datagram;
        put_word(ip + 2, total);
        put_word(ip + 10, ~fold(ip_sum_ + total));
    }
    put_word(udp + 4, datagram);
    put_word(udp + 6, fold(pseudo_sum_ + datagram));
    return head_length_;
}

}  // namespace via::device::udp
