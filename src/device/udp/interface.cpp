#include "device/udp/interface.hpp"

#include <arpa/inet.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "device/udp/socket_address.hpp"

namespace via::device::udp {

namespace {

struct Found {
    Place place;
    bool loopback;
    bool link_local;
};

/// How many leading bits are set.
unsigned prefix_of(const sockaddr* mask) {
    if (mask == nullptr) return 0;
    const HostAddress bits = from_socket(*mask);
    unsigned count = 0;
    for (int at = 0; at + 2 < bits.length; ++at)
        count += static_cast<unsigned>(std::popcount(bits.bytes[static_cast<std::size_t>(at)]));
    return count;
}

/// The addresses of interfaces that are up; errno in `error` if they are not to be had.
std::vector<Found> look_around(System& system, std::uint16_t port, int& error) {
    std::vector<Found> all;
    ifaddrs* first = nullptr;
    error = 0;
    if (system.getifaddrs(&first) != 0) {
        error = errno;
        return all;
    }
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
        const HostAddress address = from_socket(*one->ifa_addr);
        if (address.length == 0) continue;
        all.push_back({{one->ifa_name, if_nametoindex(one->ifa_name), with_port(address, port),
                        prefix_of(one->ifa_netmask)},
                       (one->ifa_flags & IFF_LOOPBACK) != 0,
                       is_link_local(address)});
    }
    // The system's order among those of one kind.
    std::vector<Found> sorted;
    for (const auto& [loopback, link_local] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}})
        for (const Found& found : all)
            if (found.loopback == loopback && found.link_local == link_local)
                sorted.push_back(found);
    return sorted;
}

std::string what_there_is(const std::vector<Found>& all) {
    std::string text;
    for (const Found& found : all)
        text += (text.empty() ? "" : ", ") + found.place.interface + " (" +
                host_text(found.place.address) + ")";
    return text.empty() ? "no interface that is up has an address" : "there are " + text;
}

/// What stands before and behind the last colon; brackets mean IPv6.
struct Parts {
    std::string host;
    bool ipv6 = false;
    std::uint16_t port = 0;
};

bool take_apart(std::string_view text, std::uint16_t default_port, Parts& parts) {
    parts.ipv6 = text.starts_with('[');
    const std::size_t end = text.find(parts.ipv6 ? ']' : ':');
    if (parts.ipv6 && end == text.npos) return false;
    parts.host = text.substr(parts.ipv6 ? 1 : 0, parts.ipv6 ? end - 1 : end);
    const std::string_view rest =
        end == text.npos ? std::string_view{} : text.substr(parts.ipv6 ? end + 1 : end);
    parts.port = default_port;
    if (parts.host.empty() || parts.host.find('\0') != parts.host.npos) return false;
    if (rest.empty()) return true;
    const auto [last, error] =
        std::from_chars(rest.data() + 1, rest.data() + rest.size(), parts.port);
    return rest.front() == ':' && error == std::errc{} && last == rest.data() + rest.size() &&
           parts.port != 0;
}

/// Every address 127.x.y.z is one of the loopback interface's.
bool is_loopback_host(const HostAddress& address) {
    return address.length == 6 && address.bytes[0] == 127;
}

}  // namespace

bool is_in_network_of(const Place& place, const HostAddress& host) {
    if (place.prefix == 0 || host.length != place.address.length) return false;
    for (unsigned bit = 0; bit < place.prefix; ++bit) {
        const unsigned mask = 0x80U >> (bit % 8);
        if (((place.address.bytes[bit / 8] ^ host.bytes[bit / 8]) & mask) != 0) return false;
    }
    return true;
}

std::string host_text(const HostAddress& address) {
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(is_ipv6(address) ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
    return is_ipv6(address) ? "[" + std::string(text) + "]" : text;
}

std::expected<Place, std::string> find_place(System& system, std::string_view text,
                                             std::uint16_t default_port) {
    Parts parts;
    int error = 0;
    const auto describe = [&] { return what_there_is(look_around(system, default_port, error)); };
    if (!take_apart(text, default_port, parts))
        return std::unexpected(
            "udp needs an interface or an address, and a port from 1 to 65535 may follow: "
            "udp:eth0, "
            "udp:10.0.0.1:9741, udp:[fd00::1], udp:[eth0] for its IPv6 address; " +
            describe());
    const std::vector<Found> all = look_around(system, parts.port, error);
    if (error != 0)
        return std::unexpected(std::string("udp: cannot see the interfaces (getifaddrs): ") +
                               std::strerror(error));
    HostAddress written;
    // Of a link-local address it says on which link.
    const std::size_t percent = parts.ipv6 ? parts.host.find('%') : std::string::npos;
    const std::string host = parts.host.substr(0, percent);
    const std::string meant_at =
        percent == std::string::npos ? std::string() : parts.host.substr(percent + 1);
    if (inet_pton(parts.ipv6 ? AF_INET6 : AF_INET, host.c_str(), written.bytes.data()) == 1) {
        written.length = parts.ipv6 ? 18 : 6;
        written = with_port(written, parts.port);
        for (const Found& found : all) {
            const bool is_meant = percent == std::string::npos || found.place.interface == meant_at;
            if (found.place.address == written && is_meant) return found.place;
            if (found.loopback && is_loopback_host(written) &&
                is_loopback_host(found.place.address))
                return Place{found.place.interface, found.place.index, written, found.place.prefix};
        }
        const std::string asked = parts.ipv6 ? "[" + parts.host + "]" : parts.host;
        return std::unexpected("udp: no interface that is up has the address " + asked + "; " +
                               what_there_is(all));
    }
    for (const Found& found : all)
        if (found.place.interface == parts.host && is_ipv6(found.place.address) == parts.ipv6)
            return found.place;
    const bool exists = if_nametoindex(parts.host.c_str()) != 0;
    const std::string what = exists ? std::string("udp: interface ") + parts.host + " has no " +
                                          (parts.ipv6 ? "IPv6" : "IPv4") + " address, or is down"
                                    : "udp: there is no interface \"" + parts.host + "\"";
    return std::unexpected(what + "; " + what_there_is(all));
}

std::optional<bool> is_here(System& system, const HostAddress& address) {
    int error = 0;
    const std::vector<Found> all = look_around(system, port_of(address), error);
    if (error != 0) return std::nullopt;
    return std::ranges::any_of(all, [&](const Found& found) {
        return found.place.address == address || (found.loopback && is_loopback_host(address) &&
                                                  is_loopback_host(found.place.address));
    });
}

}  // namespace via::device::udp
