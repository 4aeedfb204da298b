#include "bench/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>

#include <array>
#include <charconv>
#include <cstring>

namespace via::bench {

namespace {

struct Parts {
    std::string host;
    std::uint16_t port = 0;
};

Result<Parts> parts_of(const std::string& text, std::uint16_t default_port) {
    Parts parts{text, default_port};
    if (text.empty()) return parts;
    std::string port;
    const bool bracketed = text.starts_with('[');
    const std::size_t end = bracketed ? text.find(']') : text.find(':');
    const bool bare_v6 =
        !bracketed && end != std::string::npos && text.find(':', end + 1) != std::string::npos;
    if (bracketed && end == std::string::npos) return fail("{}: a bracket is open", text);
    if (bracketed) {
        parts.host = text.substr(1, end - 1);
        if (end + 1 == text.size()) return parts;
        if (text[end + 1] != ':') return fail("{}: want [ADDRESS]:PORT", text);
        port = text.substr(end + 2);
    } else if (end != std::string::npos && !bare_v6) {
        parts.host = text.substr(0, end);
        port = text.substr(end + 1);
    } else {
        return parts;
    }
    const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), parts.port);
    if (error != std::errc{} || rest != port.data() + port.size()) {
        return fail("{}: \"{}\" is no port", text, port);
    }
    return parts;
}

}  // namespace

Result<Address> Address::resolve(const std::string& text, std::uint16_t default_port) {
    const auto parts = parts_of(text, default_port);
    if (!parts) return std::unexpected(parts.error());
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    Address address;
    if (parts->host.empty()) {
        auto& any = reinterpret_cast<sockaddr_in6&>(address.storage_);
        any.sin6_family = AF_INET6;
        any.sin6_addr = in6addr_any;
        address.bytes_ = sizeof any;
        return address.with_port(parts->port);
    }
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(parts->host.c_str(), nullptr, &hints, &found);
    if (error != 0) return fail("{}: {}", parts->host, ::gai_strerror(error));
    std::memcpy(&address.storage_, found->ai_addr, found->ai_addrlen);
    address.bytes_ = found->ai_addrlen;
    ::freeaddrinfo(found);
    return address.with_port(parts->port);
}

Address::Address(in_addr address) {
    auto& four = reinterpret_cast<sockaddr_in&>(storage_);
    four.sin_family = AF_INET;
    four.sin_addr = address;
    bytes_ = sizeof four;
}

Result<Address> Address::own_of(int socket) {
    Address address;
    address.bytes_ = sizeof address.storage_;
    auto* generic = reinterpret_cast<sockaddr*>(&address.storage_);
    if (::getsockname(socket, generic, &address.bytes_) < 0) return fail_errno("getsockname");
    address.unmap();
    return address;
}

Result<Address> Address::peer_of(int socket) {
    Address address;
    address.bytes_ = sizeof address.storage_;
    auto* generic = reinterpret_cast<sockaddr*>(&address.storage_);
    if (::getpeername(socket, generic, &address.bytes_) < 0) return fail_errno("getpeername");
    address.unmap();
    return address;
}

// A socket of both families shows IPv4 as ::ffff:10.0.0.1; everything else here calls it 10.0.0.1.
void Address::unmap() {
    const auto mapped = reinterpret_cast<const sockaddr_in6&>(storage_);
    if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&mapped.sin6_addr)) return;
    in_addr plain{};
    std::memcpy(&plain, &mapped.sin6_addr.s6_addr[12], sizeof plain);
    *this = Address(plain).with_port(ntohs(mapped.sin6_port));
}

// The port is at the same place in both families.
std::uint16_t Address::port() const {
    return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
}

Address Address::with_port(std::uint16_t port) const {
    Address other = *this;
    reinterpret_cast<sockaddr_in&>(other.storage_).sin_port = htons(port);
    return other;
}

bool Address::is_machine(const sockaddr& other) const {
    if (other.sa_family != family()) return false;
    Address theirs;
    theirs.bytes_ = bytes_;
    std::memcpy(&theirs.storage_, &other, bytes_);
    return same_machine(theirs);
}

bool Address::is_any() const {
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage_);
    return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six.sin6_addr);
}

Address Address::any_ipv4() const { return Address(in_addr{htonl(INADDR_ANY)}).with_port(port()); }

std::string Address::machine_text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (family() == AF_INET) {
        const auto& four = reinterpret_cast<const sockaddr_in&>(storage_);
        return ::inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    }
    const auto& six = reinterpret_cast<const sockaddr_in6&>(storage_);
    ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]", text.data());
}

std::string Address::text() const { return fmt::format("{}:{}", machine_text(), port()); }

}  // namespace via::bench
