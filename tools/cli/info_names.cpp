#include "info_names.hpp"

#include <fmt/format.h>
#include <vipl.h>

#include <array>
#include <cstring>

#include "agent/addresses.hpp"
#include "agent/configuration.hpp"
#include "json.hpp"

namespace via::cli {

namespace {

constexpr std::size_t hosts_max = 256;
constexpr const char* own_nic = "shm:via-info";

/// As the program's buffer for an address of 6 bytes.
struct Room {
    alignas(VIP_NET_ADDRESS) std::array<VIP_UINT8, 16> bytes{};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data()); }
};

std::string name_of(VIP_NIC_HANDLE nic, Room& room) {
    char name[256];
    VIP_ULONG length = sizeof name;
    if (VipNSGetHostByAddr(nic, room.get(), name, &length) != VIP_SUCCESS) return {};
    return name;
}

}  // namespace

std::vector<ShmHost> shm_hosts() {
    std::vector<ShmHost> hosts;
    VIP_NIC_HANDLE nic = nullptr;
    if (VipOpenNic(own_nic, &nic) != VIP_SUCCESS) return hosts;  // the device's line says why
    std::vector<Room> rooms(hosts_max);
    std::vector<VIP_NET_ADDRESS*> addresses;
    for (Room& room : rooms) addresses.push_back(room.get());
    VIP_AUTODISCOVERY_LIST list{0, addresses.data(), addresses.size()};
    if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) == VIP_SUCCESS) {
        const HostAddress own = agent::address_of_name("via-info");
        for (std::size_t n = 0; n < list.NumAdAddrs; ++n) {
            HostAddress address;
            address.length = rooms[n].get()->HostAddressLen;
            std::memcpy(address.bytes.data(), rooms[n].bytes.data() + 4, address.length);
            if (!(address == own))
                hosts.push_back({agent::to_text(address), name_of(nic, rooms[n])});
        }
    }
    VipCloseNic(nic);
    return hosts;
}

Names look_at_names(std::span<const std::string_view> media) {
    Names names;
    const auto complain = [&](const std::string& text) { names.complaints.push_back(text); };
    const auto nics = agent::read_sources("OPENVIA_NICS", "nics.conf", complain);
    const auto hosts = agent::read_sources("OPENVIA_HOSTS", "hosts", complain);
    agent::find_nic("", nics, media, complain);
    const agent::HostTable table(hosts, complain);
    for (const agent::Source& source : nics)
        names.sources.push_back({"NICs", source.name, source.is_there});
    for (const agent::Source& source : hosts)
        names.sources.push_back({"hosts", source.name, source.is_there});
    names.hosts = shm_hosts();
    return names;
}

void print_names(const Names& names) {
    fmt::print("\nNames that are written down (docs/guide/names.md), the first that knows one\n");
    for (const NameSource& source : names.sources)
        fmt::print("  {:<12}{:<52}{}\n", source.of, source.name,
                   source.is_there ? "read" : "not there");
    for (const std::string& complaint : names.complaints) fmt::print("  bad: {}\n", complaint);
    fmt::print("\nHosts of this machine with shm NICs\n");
    for (const ShmHost& host : names.hosts) fmt::print("  {:<28}{}\n", host.address, host.name);
    if (names.hosts.empty()) fmt::print("  none\n");
}

void print_names_json(const Names& names, const char* schema) {
    for (const NameSource& source : names.sources)
        fmt::print("{}", JsonLine(schema)
                             .text("kind", "names")
                             .text("of", source.of)
                             .text("source", source.name)
                             .boolean("there", source.is_there)
                             .line());
    for (const std::string& complaint : names.complaints)
        fmt::print("{}", JsonLine(schema).text("kind", "bad_name").text("text", complaint).line());
    for (const ShmHost& host : names.hosts)
        fmt::print("{}", JsonLine(schema)
                             .text("kind", "host")
                             .text("address", host.address)
                             .text("name", host.name)
                             .line());
}

}  // namespace via::cli
