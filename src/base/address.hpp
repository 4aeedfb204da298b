// Where a NIC is, and what a listener listens to (VIPL 1.4).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace via {

/// Address of a NIC: 6 bytes (IPv4 and port) or 18 (IPv6 and port).
struct HostAddress {
    std::array<std::uint8_t, 18> bytes{};
    std::uint16_t length = 0;

    friend bool operator==(const HostAddress& a, const HostAddress& b) {
        if (a.length != b.length) return false;
        if (a.length == 6)  // each packet's: a comparison of two words rather than a call
            return std::memcmp(a.bytes.data(), b.bytes.data(), 6) == 0;
        return std::memcmp(a.bytes.data(), b.bytes.data(), a.length) == 0;
    }
};

/// Of an address of one of these lengths: its last two bytes, the most significant one first.
inline std::uint16_t port_of(const HostAddress& address) {
    const std::uint8_t* at = address.bytes.data() + address.length - 2;
    return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}
/// The same host at another port.
inline HostAddress with_port(HostAddress address, std::uint16_t port) {
    std::uint8_t* at = address.bytes.data() + address.length - 2;
    at[0] = static_cast<std::uint8_t>(port >> 8);
    at[1] = static_cast<std::uint8_t>(port & 0xFF);
    return address;
}
inline bool same_host(const HostAddress& a, const HostAddress& b) {
    return with_port(a, 0) == with_port(b, 0);
}

/// What is the same of all addresses that are one peer: one IPv4 host, or the hosts of one IPv6
/// network of 64 bits, which are anybody's who has one of them.
using PeerKey = std::string;
inline PeerKey peer_key(const HostAddress& peer) {
    constexpr std::size_t network_bytes = 8;
    constexpr std::size_t port_bytes = 2;
    const std::size_t length = peer.length < port_bytes ? 0U : peer.length - port_bytes;
    return {reinterpret_cast<const char*>(peer.bytes.data()), std::min(length, network_bytes)};
}

/// Name of a listener within a host, up to 64 bytes of any value.
struct Discriminator {
    std::array<std::uint8_t, 64> bytes{};
    std::uint16_t length = 0;

    friend bool operator==(const Discriminator& a, const Discriminator& b) {
        return a.length == b.length && std::memcmp(a.bytes.data(), b.bytes.data(), a.length) == 0;
    }
};

struct NetAddress {
    HostAddress host;
    Discriminator discriminator;

    friend bool operator==(const NetAddress& a, const NetAddress& b) {
        return a.host == b.host && a.discriminator == b.discriminator;
    }
};

/// An order of all addresses, the same for everybody.
inline bool is_before(const NetAddress& a, const NetAddress& b) {
    const auto before = [](const auto& x, const auto& y) {
        return std::lexicographical_compare(x.bytes.begin(), x.bytes.begin() + x.length,
                                            y.bytes.begin(), y.bytes.begin() + y.length);
    };
    return a.host == b.host ? before(a.discriminator, b.discriminator) : before(a.host, b.host);
}

}  // namespace via
