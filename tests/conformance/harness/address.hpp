// Network addresses as programs keep them: bytes in a buffer of their own (VIPL 1.4).
#pragma once

#include <vipl.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace conformance {

/// Room for an address of at most Bytes bytes, with a guard behind it that no call may touch.
template <std::size_t Bytes>
class AddressRoom {
public:
    AddressRoom() { std::memset(room_, guard, sizeof room_); }
    VIP_NET_ADDRESS* net() { return reinterpret_cast<VIP_NET_ADDRESS*>(room_); }
    const VIP_NET_ADDRESS* net() const { return reinterpret_cast<const VIP_NET_ADDRESS*>(room_); }
    std::string_view host() const { return bytes(4, host_length()); }
    std::string_view discriminator() const { return bytes(4 + host_length(), field(2)); }
    std::size_t length() const { return 4 + host_length() + field(2); }
    /// Has nothing beyond the first `length` bytes been written?
    bool intact_beyond(std::size_t length) const {
        for (std::size_t at = length; at < sizeof room_; ++at)
            if (room_[at] != guard) return false;
        return true;
    }

private:
    static constexpr unsigned char guard = 0xA5;
    static constexpr std::size_t guard_length = 64;

    std::size_t field(std::size_t offset) const {
        VIP_UINT16 value;
        std::memcpy(&value, room_ + offset, sizeof value);
        return value;
    }
    std::size_t host_length() const { return field(0); }
    std::string_view bytes(std::size_t from, std::size_t length) const {
        if (from + length > Bytes) return {};  // no address that was asked for
        return {reinterpret_cast<const char*>(room_) + from, length};
    }

    alignas(8) unsigned char room_[Bytes + guard_length];
};

/// An address with room for the longest there is; plain bytes, so roles can tell it.
class Address : public AddressRoom<4 + 18 + 64> {
public:
    Address() = default;
    Address(std::string_view host, std::string_view discriminator) {
        const auto host_length = static_cast<VIP_UINT16>(host.size());
        const auto length = static_cast<VIP_UINT16>(discriminator.size());
        auto* to = reinterpret_cast<char*>(net());
        std::memcpy(to, &host_length, 2);
        std::memcpy(to + 2, &length, 2);
        std::memcpy(to + 4, host.data(), host.size());
        std::memcpy(to + 4 + host.size(), discriminator.data(), discriminator.size());
    }
};

}  // namespace conformance
