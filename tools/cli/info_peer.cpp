#include "info_peer.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <via/via.h>
#include <vipl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "agent/addresses.hpp"
#include "agent/configuration.hpp"
#include "agent/nic_options.hpp"
#include "agent/wire_keys.hpp"
#include "bench/address.hpp"
#include "bench/file_handle.hpp"
#include "bench/via_names.hpp"
#include "info_names.hpp"
#include "json.hpp"
#include "relay/ways.hpp"
#include "secure/ipsec_mb/ipsec_mb.hpp"

namespace via::cli {

namespace {

/// Nobody listens to it: what answers is the host.
constexpr std::size_t question_bytes = 16;
/// For what the network says to a datagram that nobody took; the NIC itself waited longer.
constexpr int refusal_ms = 500;

struct Room {
    alignas(VIP_NET_ADDRESS) std::array<VIP_UINT8, 64> bytes{};
    VIP_NET_ADDRESS* get() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes.data()); }
    VIP_UINT8* host() { return bytes.data() + offsetof(VIP_NET_ADDRESS, HostAddress); }
    HostAddress address() {
        HostAddress address;
        address.length = get()->HostAddressLen;
        std::memcpy(address.bytes.data(), host(), address.length);
        return address;
    }
};

/// A NIC for as long as the question lasts.
struct Asker {
    Asker() = default;
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;
    ~Asker() {
        if (vi != nullptr) VipDestroyVi(vi);
        if (nic != nullptr) VipCloseNic(nic);
    }
    VIP_NIC_HANDLE nic = nullptr;
    VIP_VI_HANDLE vi = nullptr;
    VIP_NIC_ATTRIBUTES attributes{};

    HostAddress own() const { return address_of(attributes); }
};

/// Asks the peer's host for a listener that nobody is: NO_MATCH says that it answers, or that it
/// has no NIC at that port.
VIP_RETURN ask(Asker& asker, Room remote) {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 1;
    const VIP_RETURN made = VipCreateVi(asker.nic, &attributes, nullptr, nullptr, &asker.vi);
    if (made != VIP_SUCCESS) return made;
    Room local;
    local.get()->HostAddressLen = asker.attributes.NicAddressLen;
    std::memcpy(local.host(), asker.attributes.LocalNicAddress, asker.attributes.NicAddressLen);
    VIP_NET_ADDRESS& to = *remote.get();
    to.DiscriminatorLen = question_bytes;
    if (getrandom(remote.host() + to.HostAddressLen, question_bytes, 0) != question_bytes)
        return VIP_ERROR_RESOURCE;
    // VipConnectRequest would wait for a host that says nothing, without end.
    return ViaConnectRequest(asker.vi, local.get(), &to, VIP_INFINITE, &attributes, nullptr, 0);
}

bool lives(const std::vector<ShmHost>& hosts, const std::string& address) {
    return std::any_of(hosts.begin(), hosts.end(),
                       [&](const ShmHost& host) { return host.address == address; });
}

/// Has the interface this address? Every address 127.x.y.z is the loopback's.
bool has_address(const ifaddrs& one, const HostAddress& address) {
    if (one.ifa_addr == nullptr) return false;
    if (address.length == 18 && one.ifa_addr->sa_family == AF_INET6) {
        const auto* at = reinterpret_cast<const sockaddr_in6*>(one.ifa_addr);
        return std::memcmp(&at->sin6_addr, address.bytes.data(), 16) == 0;
    }
    if (address.length != 6 || one.ifa_addr->sa_family != AF_INET) return false;
    const auto* at = reinterpret_cast<const sockaddr_in*>(one.ifa_addr);
    return std::memcmp(&at->sin_addr, address.bytes.data(), 4) == 0 ||
           (address.bytes[0] == 127 && (one.ifa_flags & IFF_LOOPBACK) != 0);
}

/// Is it a socket of ours at which all are asked who have a NIC at that address? Then nobody else
/// has one: the first one has that socket.
bool we_answer_at(const std::string& address) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
        const std::string name = entry.path().filename();
        int descriptor = -1;
        std::from_chars(name.data(), name.data() + name.size(), descriptor);
        const auto at = bench::Address::own_of(descriptor);
        if (at && (at->family() == AF_INET || at->family() == AF_INET6) && at->text() == address)
            return true;
    }
    return false;
}

/// A link-local address is meant at the NIC's interface.
bench::Result<bench::Address> socket_address(std::string text, const std::string& interface) {
    if (text.starts_with("[fe80:")) text.insert(text.find(']'), "%" + interface);
    return bench::Address::resolve(text, 0);
}

/// What came of a datagram.
struct Outcome {
    bool refused;  ///< the host says that nobody has that port
    std::string text;
};

/// NICs only hear that nobody answered; this is what the system says to a datagram, an empty one,
/// that goes there, or to the first relay, from the same address.
Outcome why_nobody_answers(const WayToPeer& way, const std::string& interface) {
    const bool is_relayed = !way.over.empty();
    const auto here = socket_address(way.nic_address, interface);
    const auto there = socket_address(is_relayed ? way.over.front() : way.peer_address, interface);
    if (!here) return {false, here.error().what};
    if (!there) return {false, there.error().what};
    const bench::Address any_port = here->with_port(0);
    const bench::FileHandle asking(::socket(there->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int error = 0;
    socklen_t length = sizeof error;
    pollfd answer{asking.get(), POLLIN, 0};
    const char* call = "socket";
    const auto refused = [&](const char* next, auto&& made) {
        call = next;
        return made() < 0;
    };
    if (!asking ||
        refused("bind", [&] { return ::bind(asking.get(), any_port.get(), any_port.bytes()); }) ||
        refused("connect", [&] { return ::connect(asking.get(), there->get(), there->bytes()); }) ||
        refused("send", [&] { return ::send(asking.get(), "", 0, 0); }) ||
        refused("poll", [&] { return ::poll(&answer, 1, refusal_ms); }) ||
        refused("getsockopt",
                [&] { return ::getsockopt(asking.get(), SOL_SOCKET, SO_ERROR, &error, &length); }))
        error = errno;
    if (is_relayed && error == 0)
        return {false,
                fmt::format("nothing comes back: the relay {}, one behind it, or that host is not "
                            "there, or a firewall is before a UDP port",
                            there->text())};
    if (is_relayed && error == ECONNREFUSED)
        return {true, fmt::format("the relay {} says that no 'viad --relay' has that UDP port",
                                  there->text())};
    if (error == ECONNREFUSED)
        return {true,
                fmt::format("that host says that no NIC has UDP port {} there", there->port())};
    if (error != 0)
        return {false,
                fmt::format("no way to {} ({}): {}", there->text(), call, std::strerror(error))};
    return {false,
            fmt::format("nothing comes back: no such host, or a firewall before its UDP port {}",
                        there->port())};
}

void look_over_network(Asker& asker, const Room& remote, WayToPeer& way) {
    const std::string interface = interface_of(asker.own()).value_or("an interface that is gone");
    const std::string by = fmt::format("by {} ({}){}", interface, way.nic_address,
                                       way.over.empty() ? "" : ", over " + way.over.front());
    const VIP_RETURN result = ask(asker, remote);
    const Outcome why = result == VIP_NO_MATCH || result == VIP_NOT_REACHABLE
                            ? why_nobody_answers(way, interface)
                            : Outcome{};
    if (result == VIP_NO_MATCH && !why.refused) {
        way.way = "udp";
        way.why = "the network, " + by +
                  ": the host answers that has that address. Connections go between two other "
                  "UDP ports, which a firewall must let through, too";
    } else if (result == VIP_NO_MATCH || result == VIP_NOT_REACHABLE) {
        way.why = "not reachable: nobody answers over the network, " + by + ": " + why.text;
    } else {
        way.why = fmt::format("cannot tell: asking over the network, {}, ended with {}", by,
                              bench::name_of_return(result));
    }
}

/// As a NIC of that name has just been opened with.
std::string protection_of(const std::string& nic, const HostAddress& peer) {
    const auto options = agent::nic_options(agent::split_nic_name(nic));
    const auto keys = agent::find_wire_keys();
    if (!options || !keys) return "unknown: " + (keys ? options.error() : keys.error());
    std::string why = agent::protection_of(*keys, options->secure, peer, std::time(nullptr));
    if (!why.starts_with("sealed")) return why;
    const auto library = secure::ipsec_mb_name();
    return why + (library ? "; ciphers of " + *library
                          : "; ciphers of OpenSSL, the slower ones: " + library.error());
}

/// The next hosts on the ways that the NIC's table has to that host. It was opened with that table.
std::vector<std::string> next_hosts(const std::string& nic, const HostAddress& own,
                                    const HostAddress& peer) {
    const auto options = agent::nic_options(agent::split_nic_name(nic));
    if (!options || options->ways.empty()) return {};
    std::ifstream in(options->ways);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto ways = relay::Ways::parse(text, options->ways, agent::parse_address);
    if (!ways) return {};
    const relay::Ways::Nexts all = ways->from(own);
    const auto found = all.find(relay::HostOnly(peer));
    std::vector<std::string> hosts;
    if (found == all.end() || same_host(found->second.front(), peer)) return hosts;
    for (const HostAddress& next : found->second)
        hosts.push_back(
            agent::to_text(same_host(next, peer) ? peer : with_port(next, relay::relay_port)));
    return hosts;
}

/// Its own name says it: "udp:eth0+eth1".
std::vector<std::string> further_networks(std::string_view nic) {
    std::vector<std::string> networks;
    for (std::size_t plus = nic.find('+'); plus != nic.npos; plus = nic.find('+')) {
        nic.remove_prefix(plus + 1);
        networks.emplace_back(nic.substr(0, nic.find('+')));
    }
    return networks;
}

}  // namespace

HostAddress address_of(const VIP_NIC_ATTRIBUTES& attributes) {
    HostAddress address;
    if (attributes.LocalNicAddress == nullptr || attributes.NicAddressLen > address.bytes.size())
        return address;
    address.length = attributes.NicAddressLen;
    std::memcpy(address.bytes.data(), attributes.LocalNicAddress, address.length);
    return address;
}

std::optional<std::string> interface_of(const HostAddress& address) {
    ifaddrs* first = nullptr;
    std::optional<std::string> name;
    if (getifaddrs(&first) != 0) return name;
    for (const ifaddrs* one = first; one != nullptr && !name; one = one->ifa_next)
        if (has_address(*one, address)) name = one->ifa_name;
    freeifaddrs(first);
    return name;
}

bool find_way(const std::string& nic, const std::string& peer,
              std::span<const std::string_view> media, WayToPeer& way, std::string& error) {
    // Who shares memory is looked up before this command has a NIC itself.
    const std::vector<ShmHost> hosts = shm_hosts();
    Asker asker;
    if (const VIP_RETURN opened = VipOpenNic(nic.c_str(), &asker.nic); opened != VIP_SUCCESS) {
        error = fmt::format("VipOpenNic(\"{}\") returned {}", nic, bench::name_of_return(opened));
        return false;
    }
    VipQueryNic(asker.nic, &asker.attributes);
    way.nic = asker.attributes.Name;
    way.nic_address = agent::to_text(asker.own());
    const std::string medium(agent::medium_of(way.nic));
    if (medium != "shm" && medium != "udp" && medium != "auto") {
        error = fmt::format("NIC {} reaches nobody outside of its process", way.nic);
        return false;
    }
    Room remote;
    std::string name = peer;
    VipNSInit(asker.nic, nullptr);
    if (VipNSGetHostByName(asker.nic, name.data(), remote.get(), 0) != VIP_SUCCESS) {
        error =
            fmt::format("no host is called \"{}\", and it is no address of NIC {}", peer, way.nic);
        return false;
    }
    const HostAddress address = remote.address();
    way.peer_address = agent::to_text(address);
    const bool has_udp =
        medium == "udp" ||
        (medium == "auto" &&
         (way.nic != "auto" || !agent::configured_network(media, [](auto&) {}).empty()));
    if (medium != "udp" && lives(hosts, way.peer_address)) {
        way.way = "shm";
        way.why = "shared memory: a NIC that has it lives at that address on this host";
        if (has_udp) way.why += "; one there that has only the network is reached over it";
    } else if (address == asker.own() && (!has_udp || we_answer_at(way.nic_address))) {
        way.why = "nobody but this command is known at that address, which is this NIC's own";
    } else if (has_udp) {
        way.over = next_hosts(nic, asker.own(), address);
        look_over_network(asker, remote, way);
        if (!way.way.empty()) way.key = protection_of(nic, address);
        if (!way.way.empty()) way.rails = further_networks(way.nic);
    } else {
        way.why =
            "not reachable: no NIC with shared memory lives at that address on this host, "
            "and this NIC has no network";
    }
    return true;
}

void print_way(const std::string& peer, const WayToPeer& way) {
    fmt::print("From NIC {} ({}) to {} ({})\n", way.nic, way.nic_address, peer, way.peer_address);
    fmt::print("  {:<6}{}\n", "way", way.way.empty() ? "none" : way.way);
    fmt::print("  {:<6}{}\n", "why", way.why);
    for (const std::string& next : way.over)
        fmt::print("  {:<6}{}{}\n", "over", next,
                   &next == &way.over.front() ? "" : ", if what is before does not answer");
    for (const std::string& rail : way.rails)
        fmt::print("  {:<6}{}, if the peer has a NIC in its network, too\n", "also", rail);
    if (!way.key.empty()) fmt::print("  {:<6}{}\n", "key", way.key);
}

void print_way_json(const std::string& peer, const WayToPeer& way, const char* schema) {
    JsonLine line = JsonLine(schema).text("kind", "peer").text("nic", way.nic);
    line.text("nic_address", way.nic_address).text("peer", peer);
    line.text("peer_address", way.peer_address);
    way.way.empty() ? line.null("way") : line.text("way", way.way);
    line.text("why", way.why);
    way.key.empty() ? line.null("key") : line.text("key", way.key);
    line.texts("over", way.over).texts("rails", way.rails);
    fmt::print("{}", line.line());
}

}  // namespace via::cli
