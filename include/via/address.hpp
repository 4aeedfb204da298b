// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/address.hpp
 * @brief Where a NIC is and what a listener listens to: via::Address; timeouts.
 */
#pragma once

#include <arpa/inet.h>
#include <vipl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace via {

/** A timeout without end. */
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();

/** @cond */
namespace detail {

/// Milliseconds as vipl.h wants them (VIPL 1.5): not below 0, and "for ever" from 2^32-1 on.
constexpr VIP_ULONG timeout_ms(std::chrono::milliseconds timeout) noexcept {
    if (timeout.count() <= 0) return 0;
    return std::cmp_greater_equal(timeout.count(), VIP_INFINITE)
               ? VIP_INFINITE
               : static_cast<VIP_ULONG>(timeout.count());
}

/// A point in time, or none.
class Deadline {
public:
    explicit Deadline(std::chrono::milliseconds timeout) noexcept
        : end_(timeout >= endless ? Clock::time_point::max()
                                  : Clock::now() + std::max(timeout, timeout.zero())) {}
    bool over() const noexcept { return end_ != Clock::time_point::max() && Clock::now() >= end_; }
    std::chrono::milliseconds left() const noexcept {
        if (end_ == Clock::time_point::max()) return forever;
        return std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::hours endless{1'000'000};  ///< the clock cannot count to all ends
    Clock::time_point end_;
};

}  // namespace detail
/** @endcond */

/**
 * Host address and discriminator (VIPL 1.4). A value, copied freely, of fixed size, no allocation.
 * Not to be changed by one thread while another uses it.
 */
class Address {
public:
    /** Bytes that a host address can have here; NICs use 6 or 18. */
    static constexpr std::size_t host_length_max = 64;
    /** Bytes that a discriminator can have. */
    static constexpr std::size_t discriminator_length_max = 64;

    /** Neither host nor discriminator. */
    Address() noexcept = default;

    /**
     * @param host           bytes of the NIC's address
     * @param discriminator  any bytes. Of both, what is too long is refused when the address is
     *                       used, with VIP_INVALID_PARAMETER.
     */
    explicit Address(std::span<const std::byte> host,
                     std::string_view discriminator = {}) noexcept {
        storage_.net.HostAddressLen = length_of(host.size());
        copy(0, host.data(), std::min(host.size(), host_length_max));
        set_discriminator(discriminator);
    }

    /** @return the same host, another listener; see the constructor */
    Address with(std::string_view discriminator) const noexcept {
        Address other = *this;
        other.set_discriminator(discriminator);
        return other;
    }

    /** Bytes of the NIC's address; live as long as this. */
    std::span<const std::byte> host() const noexcept {
        return {bytes(), std::min<std::size_t>(storage_.net.HostAddressLen, host_length_max)};
    }
    /** The listener's name; lives as long as this. */
    std::string_view discriminator() const noexcept {
        return {reinterpret_cast<const char*>(bytes() + host().size()),
                std::min<std::size_t>(storage_.net.DiscriminatorLen, discriminator_length_max)};
    }
    /** For people, for instance `127.0.0.1:9741/echo` or `[fd00::1]:9741/echo`. Allocates. */
    std::string text() const {
        const std::span<const std::byte> all = host();
        const auto number = [all](std::size_t index) {
            return std::to_integer<unsigned>(all[index]);
        };
        std::string text;
        if (all.size() == 6 || all.size() == 18) {  // of IPv4 or IPv6, and then a port
            const std::size_t port = all.size() - 2;
            char host[INET6_ADDRSTRLEN] = {};
            inet_ntop(port == 4 ? AF_INET : AF_INET6, all.data(), host, sizeof host);
            text = port == 4 ? host : '[' + std::string(host) + ']';
            text += ':' + std::to_string(number(port) * 256 + number(port + 1));
        } else {
            for (std::size_t index = 0; index < all.size(); ++index)
                (text += index == 0 ? "" : ".") += std::to_string(number(index));
        }
        return (text += '/').append(discriminator());
    }

    /** For the functions of vipl.h, which leave what they only read as it is; room for the longest
     *  address that they write. */
    VIP_NET_ADDRESS* raw() noexcept { return &storage_.net; }
    /** The same for those that only read; vipl.h knows no const. */
    VIP_NET_ADDRESS* raw() const noexcept { return const_cast<VIP_NET_ADDRESS*>(&storage_.net); }

    /** Same host and same discriminator. */
    friend bool operator==(const Address& a, const Address& b) noexcept {
        return std::ranges::equal(a.host(), b.host()) && a.discriminator() == b.discriminator();
    }

private:
    static constexpr std::size_t bytes_at = offsetof(VIP_NET_ADDRESS, HostAddress);
    union Storage {
        VIP_NET_ADDRESS net;
        std::byte bytes[bytes_at + host_length_max + discriminator_length_max];
    };

    static VIP_UINT16 length_of(std::size_t size) noexcept {
        return static_cast<VIP_UINT16>(std::min<std::size_t>(size, 0xFFFF));
    }
    const std::byte* bytes() const noexcept { return storage_.bytes + bytes_at; }
    void copy(std::size_t at, const void* from, std::size_t size) noexcept {
        if (size != 0) std::memcpy(storage_.bytes + bytes_at + at, from, size);
    }
    void set_discriminator(std::string_view discriminator) noexcept {
        storage_.net.DiscriminatorLen = length_of(discriminator.size());
        copy(host().size(), discriminator.data(),
             std::min(discriminator.size(), discriminator_length_max));
    }

    Storage storage_{.bytes = {}};
};

}  // namespace via
