#include "bench/via_connect.hpp"

#include <cstring>
#include <ctime>
#include <string_view>

#include "bench/clock.hpp"

namespace via::bench {

std::string nic_name(const std::string& device, const Places& places, std::size_t side) {
    const std::string medium = medium_of(device);
    const bool has_place = device.size() > medium.size() && device[medium.size()] == ':';
    if (has_place || !places.apart() || !(medium == "udp" || (medium == "auto" && places.remote())))
        return device;
    return medium + ":" + places.address_text(side) + device.substr(medium.size());
}

Result<VIP_NIC_HANDLE> open_nic(const std::string& device, const Places& places, Link& link) {
    const std::string name = nic_name(device, places, link.own());
    VIP_NIC_HANDLE nic = nullptr;
    if (const VIP_RETURN code = VipOpenNic(name.c_str(), &nic); code != VIP_SUCCESS) {
        return fail("VipOpenNic(\"{}\") returned {}; 'via info' shows the devices there are", name,
                    name_of_return(code));
    }
    VIP_NIC_ATTRIBUTES attributes{};
    if (const VIP_RETURN code = VipQueryNic(nic, &attributes); code != VIP_SUCCESS) {
        return fail_call("VipQueryNic", code);
    }
    // Nobody would answer, and that only after a long time.
    const std::string_view own_name(attributes.Name);
    if (own_name.starts_with("loopback") || own_name.starts_with("sim:")) {
        return fail(
            "NIC {} reaches its own process alone, and this is between two: take shm, udp "
            "or auto",
            own_name);
    }
    Published& mine = link.mine();
    if (attributes.NicAddressLen > mine.host.size()) return fail("NIC address too long");
    mine.host_bytes = attributes.NicAddressLen;
    std::memcpy(mine.host.data(), attributes.LocalNicAddress, mine.host_bytes);
    return nic;
}

Status accept_one(VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, Link& link,
                  const std::string& discriminator) {
    NetAddress here(link.mine(), discriminator);
    NetAddress there(link.mine().host.data(), 0, {});
    VIP_VI_ATTRIBUTES attributes{};
    VIP_CONN_HANDLE request = nullptr;
    VIP_RETURN code =
        VipConnectWait(nic, here.get(), connect_timeout_ms, there.get(), &attributes, &request);
    if (code != VIP_SUCCESS) return fail_call("VipConnectWait", code);
    code = VipConnectAccept(request, vi);
    return code == VIP_SUCCESS ? Status{} : fail_call("VipConnectAccept", code);
}

Status request_one(VIP_VI_HANDLE vi, Link& link, const std::string& discriminator) {
    NetAddress here(link.mine(), discriminator);
    NetAddress there(link.theirs(), discriminator);
    VIP_VI_ATTRIBUTES attributes{};
    const std::int64_t deadline_ns = now_ns() + connect_timeout_ns;
    for (;;) {
        const VIP_RETURN code =
            VipConnectRequest(vi, here.get(), there.get(), connect_timeout_ms, &attributes);
        if (code == VIP_SUCCESS) return {};
        // The other process is not waiting yet.
        if (code != VIP_NO_MATCH || now_ns() > deadline_ns) {
            return fail_call("VipConnectRequest", code);
        }
        const timespec pause{0, 50'000};
        ::nanosleep(&pause, nullptr);
    }
}

}  // namespace via::bench
