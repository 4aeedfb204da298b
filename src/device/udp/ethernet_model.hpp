// The headers of the kernel's datagrams to one peer, taken from one that it showed: what is sent
// past UDP and IP looks the same, but for its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "device/udp/socket_address.hpp"

namespace via::device::udp {

class EthernetModel {
public:
    /// What a packet socket wants before the frame (virtio_net_hdr), Ethernet, IPv6, UDP.
    static constexpr std::size_t head_max = 10 + 14 + 40 + 8;
    /// Of a frame, before what the datagram carries.
    static constexpr std::size_t headers_length(bool ipv6) {
        return 14 + udp::headers_length(ipv6);
    }

    /// `frame`: as it was given to the interface, with a datagram of `length` bytes. False, and no
    /// model: it is no plain one from here to there, as where its address is translated, it leaves
    /// encrypted, or the interface is none of Ethernet's.
    bool learn(std::span<const std::byte> frame, std::uint32_t length, const HostAddress& from,
               const HostAddress& to);
    void forget() { head_length_ = 0; }
    bool valid() const { return head_length_ != 0; }

    /// Of one message of so many bytes, which the layer below us cuts into datagrams of `segment`
    /// and a shorter last one; 0: it is one. Returns the length of the head, up to head_max.
    std::size_t write(std::byte* at, std::uint32_t length, std::uint32_t segment) const;

private:
    std::array<std::byte, head_max> head_{};
    std::size_t head_length_ = 0;
    bool ipv6_ = false;
    std::uint32_t ip_sum_ = 0;      ///< of IPv4's header without length and checksum
    std::uint32_t pseudo_sum_ = 0;  ///< of what UDP's checksum covers besides, without length
};

}  // namespace via::device::udp
