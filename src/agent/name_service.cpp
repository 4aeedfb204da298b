#include "agent/name_service.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "agent/addresses.hpp"

namespace via::agent {

namespace {

constexpr std::size_t dns_name_max = 253;  // RFC 1035, as text

/// Whoever has the address says what it is called, and may say anything: what would move a
/// terminal's cursor is no name.
std::string plain(std::string name) {
    const auto is_plain = [](char c) { return c > ' ' && c < '\x7F'; };
    return std::all_of(name.begin(), name.end(), is_plain) ? name : std::string();
}

/// Names that nobody can have (RFC 6761): no resolver needs to be asked.
bool is_invalid(std::string_view name) {
    if (name.ends_with('.')) name.remove_suffix(1);
    const std::size_t dot = name.rfind('.');
    return same_host_name(dot == name.npos ? name : name.substr(dot + 1), "invalid");
}

HostAddress address_of(const sockaddr& found) {
    HostAddress address;
    if (found.sa_family == AF_INET) {
        sockaddr_in ipv4;
        std::memcpy(&ipv4, &found, sizeof ipv4);
        std::memcpy(address.bytes.data(), &ipv4.sin_addr, 4);
        address.length = 6;
    } else {
        sockaddr_in6 ipv6;
        std::memcpy(&ipv6, &found, sizeof ipv6);
        std::memcpy(address.bytes.data(), &ipv6.sin6_addr, 16);
        address.length = 18;
    }
    return with_port(address, default_port);
}

std::vector<HostAddress> ask_for_addresses(const std::string& name, std::uint16_t length) {
    addrinfo hints{};
    hints.ai_family = length == 18 ? AF_INET6 : AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* first = nullptr;
    std::vector<HostAddress> addresses;
    if (getaddrinfo(name.c_str(), nullptr, &hints, &first) != 0) return addresses;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(first, freeaddrinfo);
    for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
        const HostAddress address = address_of(*one->ai_addr);
        if (std::find(addresses.begin(), addresses.end(), address) == addresses.end())
            addresses.push_back(address);
    }
    return addresses;
}

std::string ask_for_name(const HostAddress& address) {
    sockaddr_storage storage{};
    socklen_t length = 0;
    if (address.length == 6) {
        sockaddr_in ipv4{};
        ipv4.sin_family = AF_INET;
        std::memcpy(&ipv4.sin_addr, address.bytes.data(), 4);
        std::memcpy(&storage, &ipv4, length = sizeof ipv4);
    } else {
        sockaddr_in6 ipv6{};
        ipv6.sin6_family = AF_INET6;
        std::memcpy(&ipv6.sin6_addr, address.bytes.data(), 16);
        std::memcpy(&storage, &ipv6, length = sizeof ipv6);
    }
    char name[NI_MAXHOST];
    const auto* generic = reinterpret_cast<const sockaddr*>(&storage);
    if (getnameinfo(generic, length, name, sizeof name, nullptr, 0, NI_NAMEREQD) != 0) return {};
    return name;
}

/// The resolver knows hosts, not ports; a NIC at another port is none that it could have named.
bool has_default_port(const HostAddress& address) {
    if (address.length != 6 && address.length != 18) return false;
    return port_of(address) == default_port;
}

}  // namespace

NameService::Resolver NameService::system_resolver() { return {ask_for_addresses, ask_for_name}; }

NameService::NameService(const HostAddress& own, std::vector<std::string> own_names,
                         HostTable hosts, Neighbours neighbours, Link link, Resolver resolver)
    : own_(own),
      own_names_(std::move(own_names)),
      hosts_(std::move(hosts)),
      neighbours_(std::move(neighbours)),
      link_(std::move(link)),
      resolver_(std::move(resolver)) {}

/// Without what stands behind a %, which may only be our own link: the NIC reaches no other.
std::optional<std::string> NameService::on_own_link(std::string_view name) const {
    const std::size_t begin = name.find('%');
    if (begin == name.npos) return std::string(name);
    const std::size_t end = std::min(name.find(']', begin), name.size());
    const std::string_view link = name.substr(begin + 1, end - begin - 1);
    if (link_.index == 0 || (link != link_.name && link != std::to_string(link_.index))) return {};
    return std::string(name.substr(0, begin)).append(name.substr(end));
}

std::vector<HostAddress> NameService::all_of(std::string_view name) const {
    if (name.empty() || name.size() > dns_name_max) return {};
    auto addresses = hosts_.find(name);
    std::erase_if(addresses, [&](const HostAddress& at) { return at.length != own_.length; });
    if (!addresses.empty()) return addresses;
    for (const std::string& own : own_names_)
        if (same_host_name(own, name)) return {own_};
    if (neighbours_.find) {
        if (const auto neighbour = neighbours_.find(name)) return {*neighbour};
    }
    const auto here = on_own_link(name);
    if (!here) return {};
    if (const auto written = parse_address(*here); written && written->length == own_.length)
        return {*written};
    if (is_invalid(name)) return {};
    return resolver_.find(*here, own_.length);
}

Status NameService::resolve(std::string_view name, std::uint32_t index,
                            HostAddress& address) const {
    const std::vector<HostAddress> addresses = all_of(name);
    if (index >= addresses.size()) return Status::error_name_service;
    address = addresses[index];
    return Status::success;
}

Status NameService::name_of(const HostAddress& address, std::string& name) const {
    name = hosts_.name_of(address);
    if (name.empty() && address == own_ && !own_names_.empty()) name = own_names_.front();
    if (name.empty() && neighbours_.name) name = neighbours_.name(address);
    if (name.empty() && has_default_port(address)) name = plain(resolver_.name(address));
    return name.empty() ? Status::error_name_service : Status::success;
}

std::vector<HostAddress> NameService::discover() const {
    std::vector<HostAddress> found;
    if (neighbours_.list) found = neighbours_.list();
    if (std::find(found.begin(), found.end(), own_) == found.end())
        found.insert(found.begin(), own_);
    return found;
}

std::string NameService::elsewhere(const HostAddress& address) const {
    return neighbours_.elsewhere ? neighbours_.elsewhere(address) : std::string();
}

}  // namespace via::agent
