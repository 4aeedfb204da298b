#include "info_names.hpp"

#include <fmt/format.h>
#include <vipl.h>

#include <array>
#include <cstring>

#include "agent/addresses.hpp"
#include "agent/configuration.hpp"
#include "info_peer.hpp"
#include "json.hpp"

namespace via::cli {

namespace {

constexpr const char* address_is_gone =
    "its address is on no interface any more: no other host reaches it; open it anew";
constexpr std::size_t hosts_max = 256;
constexpr const char* own_shm_nic = "shm:via-info";
constexpr const char* own_udp_nic = "udp:127.0.0.1";

/// As the program's buffer for an address of 18 bytes.
struct Room {
    alignas(VIP_NET_ADDRESS) std::array<VIP_UINT8, 32> bytes{};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data()); }
};

std::string name_of(VIP_NIC_HANDLE nic, Room& room) {
    char name[256];
    VIP_ULONG length = sizeof name;
    if (VipNSGetHostByAddr(nic, room.get(), name, &length) != VIP_SUCCESS) return {};
    return name;
}

}  // namespace

namespace {

/// The NICs that such a NIC sees, itself included.
template <class Take>
void discover(const char* own, Take take) {
    VIP_NIC_HANDLE nic = nullptr;
    if (VipOpenNic(own, &nic) != VIP_SUCCESS) return;  // the device's line says why
    std::vector<Room> rooms(hosts_max);
    std::vector<VIP_NET_ADDRESS*> addresses;
    for (Room& room : rooms) addresses.push_back(room.get());
    VIP_AUTODISCOVERY_LIST list{0, addresses.data(), addresses.size()};
    if (VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, &list) == VIP_SUCCESS)
        for (std::size_t n = 0; n < list.NumAdAddrs; ++n) take(nic, rooms[n]);
    VipCloseNic(nic);
}

HostAddress address_in(Room& room) {
    HostAddress address;
    address.length = room.get()->HostAddressLen;
    std::memcpy(address.bytes.data(), room.bytes.data() + 4, address.length);
    return address;
}

}  // namespace

std::vector<ShmHost> shm_hosts() {
    std::vector<ShmHost> hosts;
    discover(own_shm_nic, [&](VIP_NIC_HANDLE nic, Room& room) {
        const HostAddress address = address_in(room);
        if (!(address == agent::address_of_name("via-info")))
            hosts.push_back({agent::to_text(address), name_of(nic, room)});
    });
    return hosts;
}

std::vector<NetworkNic> network_nics() {
    std::vector<NetworkNic> nics;
    discover(own_udp_nic, [&](VIP_NIC_HANDLE, Room& room) {
        const HostAddress address = address_in(room);
        const bool own_host = address.length == 6 && address.bytes[0] == 127;  // our own, too
        if (!own_host) nics.push_back({agent::to_text(address), interface_of(address)});
    });
    return nics;
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
    names.network = network_nics();
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
    fmt::print("\nNICs of this machine on a network\n");
    for (const NetworkNic& nic : names.network)
        fmt::print("  {:<28}{}\n", nic.address, nic.interface.value_or(address_is_gone));
    if (names.network.empty()) fmt::print("  none\n");
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
    for (const NetworkNic& nic : names.network) {
        JsonLine line = JsonLine(schema).text("kind", "network_nic").text("address", nic.address);
        nic.interface ? line.text("interface", *nic.interface) : line.null("interface");
        fmt::print("{}", line.line());
    }
}

}  // namespace via::cli
