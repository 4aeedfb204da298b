// Opening a NIC and connecting a VI to the other side's through vipl.h, for all that measure it.
#pragma once

#include <vipl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "bench/link.hpp"
#include "bench/places.hpp"
#include "bench/via_names.hpp"

namespace via::bench {

inline constexpr std::int64_t connect_timeout_ns = 20'000'000'000;
inline constexpr VIP_ULONG connect_timeout_ms = 20'000;

inline std::unexpected<Failure> fail_call(const char* call, VIP_RETURN code) {
    return fail("{} returned {}", call, name_of_return(code));
}

// Host bytes, then the discriminator, as VIPL 1.4 lays them out.
class NetAddress {
public:
    NetAddress(const Published& host, const std::string& discriminator)
        : NetAddress(host.host.data(), host.host_bytes, discriminator) {}
    NetAddress(const std::uint8_t* host, std::size_t host_bytes, const std::string& discriminator) {
        auto* address = get();
        address->HostAddressLen = static_cast<VIP_UINT16>(host_bytes);
        address->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
        std::uint8_t* to = std::copy_n(host, host_bytes, bytes_.data() + 4);
        std::copy(discriminator.begin(), discriminator.end(), to);
    }
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_.data()); }

private:
    alignas(VIP_NET_ADDRESS) std::array<std::uint8_t, 4 + 64 + 64> bytes_{};
};

// What VipOpenNic is given on that side: each side has its own address where the two are apart.
std::string nic_name(const std::string& device, const Places& places, std::size_t side);

// Opens it and publishes its address on this side.
Result<VIP_NIC_HANDLE> open_nic(const std::string& device, const Places& places, Link& link);

// One of each on the two sides make a connection; the second side's accepts.
Status accept_one(VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, Link& link,
                  const std::string& discriminator);
Status request_one(VIP_VI_HANDLE vi, Link& link, const std::string& discriminator);

}  // namespace via::bench
