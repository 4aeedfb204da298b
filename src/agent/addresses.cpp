#include "agent/addresses.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace via::agent {

namespace {

bool parse_port(std::string_view text, std::uint16_t& port) {
    if (text.empty()) return false;
    const char* begin = &text.front();
    const char* end = begin + text.size();
    const auto [last, error] = std::from_chars(begin, end, port);
    return error == std::errc{} && last == end && port != 0;
}

void put_port(HostAddress& address, std::uint16_t port) {
    address.bytes[address.length] = static_cast<std::uint8_t>(port >> 8);
    address.bytes[address.length + 1U] = static_cast<std::uint8_t>(port);
    address.length = static_cast<std::uint16_t>(address.length + 2);
}

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

std::optional<HostAddress> parse_address(std::string_view text) {
    if (text.find('\0') != text.npos) return {};  // inet_pton would stop there
    const bool is_ipv6 = text.starts_with('[');
    const std::size_t end = is_ipv6 ? text.find(']') : text.find(':');
    if (is_ipv6 && end == text.npos) return {};
    const std::string host(text.substr(is_ipv6 ? 1 : 0, is_ipv6 ? end - 1 : end));
    std::string_view rest = end == text.npos ? "" : text.substr(is_ipv6 ? end + 1 : end);
    std::uint16_t port = default_port;
    if (!rest.empty() && (rest.front() != ':' || !parse_port(rest.substr(1), port))) return {};
    HostAddress address;
    if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, host.c_str(), address.bytes.data()) != 1) return {};
    address.length = is_ipv6 ? 16 : 4;
    put_port(address, port);
    return address;
}

std::string to_text(const HostAddress& address) {
    const auto& bytes = address.bytes;
    if (address.length == 6 || address.length == 18) {
        const std::size_t port_at = address.length - 2U;
        char host[INET6_ADDRSTRLEN] = {};
        inet_ntop(port_at == 4 ? AF_INET : AF_INET6, bytes.data(), host, sizeof host);
        const std::string port = std::to_string(port_of(address));
        return port_at == 4 ? std::string(host) + ":" + port
                            : "[" + std::string(host) + "]:" + port;
    }
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (std::size_t n = 0; n < std::min<std::size_t>(address.length, bytes.size()); ++n) {
        text += digits[bytes[n] >> 4];
        text += digits[bytes[n] & 15];
    }
    return text;
}

HostAddress ipv4_address(const std::array<std::uint8_t, 4>& host, std::uint16_t port) {
    HostAddress address;
    std::copy(host.begin(), host.end(), address.bytes.begin());
    address.length = 4;
    put_port(address, port);
    return address;
}

bool is_plain(std::string_view name) {
    if (name.empty() || name.size() > plain_name_max || name.front() == '.' || name.front() == '-')
        return false;
    return name.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == name.npos;
}

HostAddress address_of_name(std::string_view name) {
    if (name.empty()) return ipv4_address({127, 0, 0, 1});
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char letter : name) hash = (hash ^ static_cast<std::uint8_t>(letter)) * 16777619U;
    return ipv4_address({127, static_cast<std::uint8_t>(1 + hash % 254),
                         static_cast<std::uint8_t>(hash >> 8),
                         static_cast<std::uint8_t>(hash >> 16)});
}

std::optional<HostAddress> parse_shm_name(std::string_view text) {
    if (text == "shm") return address_of_name("");
    if (!text.starts_with("shm:") || !is_plain(text.substr(4))) return {};
    return address_of_name(text.substr(4));
}

bool same_host_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace via::agent
