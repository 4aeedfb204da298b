// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "address.hpp"
#include "common.hpp"

namespace via::fabric {
namespace {

struct Interface {
    std::string name;
    in_addr address;
    std::string network;
};

std::string network_of(in_addr address, in_addr mask) {
    const in_addr network{address.s_addr & mask.s_addr};
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &network, text, sizeof text);
    return std::string(text) + '/' + std::to_string(__builtin_popcount(mask.s_addr));
}

/// Those that are up and have an IPv4 address, the first of each; not loopback's.
std::vector<Interface> find_interfaces() {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
    std::vector<Interface> found;
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET ||
            at->ifa_netmask == nullptr || (at->ifa_flags & IFF_UP) == 0 ||
            (at->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        if (std::ranges::find(found, at->ifa_name, &Interface::name) != found.end()) continue;
        const in_addr address = reinterpret_cast<sockaddr_in*>(at->ifa_addr)->sin_addr;
        const in_addr mask = reinterpret_cast<sockaddr_in*>(at->ifa_netmask)->sin_addr;
        found.push_back({at->ifa_name, address, network_of(address, mask)});
    }
    return found;
}

Device device(std::string name, in_addr address, std::string network) {
    return {std::move(name), std::move(network), socket_address(&address, 0)};
}

Device shared_memory(std::string name) {
    return device(std::move(name), in_addr{htonl(INADDR_LOOPBACK)}, "shm");
}

/// A NIC whose name alone does not tell its address is opened for a moment.
bool ask_the_nic(const std::string& name, Device& found) {
    VIP_NIC_HANDLE nic = nullptr;
    char why[256];
    if (ViaOpenNic(name.c_str(), &nic, why, sizeof why) != VIP_SUCCESS) {
        FI_WARN(&provider, FI_LOG_CORE, "FI_VIA_DEVICE: %s\n", why);
        return false;
    }
    VIP_NIC_ATTRIBUTES attributes;
    const bool usable =
        VipQueryNic(nic, &attributes) == VIP_SUCCESS && attributes.NicAddressLen == 6;
    if (usable) {
        in_addr address;
        std::memcpy(&address, attributes.LocalNicAddress, sizeof address);
        found = device(name, address, std::string(name, 0, name.find_first_of(":,")));
    } else {
        FI_WARN(&provider, FI_LOG_CORE, "FI_VIA_DEVICE: %s has no IPv4 address\n", name.c_str());
    }
    VipCloseNic(nic);
    return usable;
}

bool find_named(const std::string& name, const std::vector<Interface>& interfaces, Device& found) {
    if (name == "shm") {
        found = shared_memory(name);
        return true;
    }
    for (const Interface& interface : interfaces)
        for (const char* medium : {"auto:", "udp:"})
            if (name == medium + interface.name) {
                found = device(name, interface.address, interface.network);
                return true;
            }
    return ask_the_nic(name, found);
}

}  // namespace

std::vector<Device> find_devices() {
    const std::vector<Interface> interfaces = find_interfaces();
    std::vector<Device> devices;
    char* wanted = nullptr;
    // Set but empty, as scripts do it, says nothing.
    if (fi_param_get_str(&provider, "device", &wanted) == 0 && wanted != nullptr && *wanted != 0) {
        std::string_view rest = wanted;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(';'), rest.size());
            Device found;
            if (find_named(std::string(rest.substr(0, end)), interfaces, found))
                devices.push_back(std::move(found));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return devices;
    }
    for (const Interface& one : interfaces)
        devices.push_back(device("auto:" + one.name, one.address, one.network));
    devices.push_back(shared_memory("shm"));
    for (const Interface& one : interfaces)
        devices.push_back(device("udp:" + one.name, one.address, one.network));
    return devices;
}

}  // namespace via::fabric
