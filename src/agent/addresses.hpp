// NIC addresses as people write them, and the addresses that names on this machine stand for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.hpp"

namespace via::agent {

constexpr std::uint16_t default_port = 9741;
constexpr std::size_t plain_name_max = 40;

/// "10.1.2.3" or "10.1.2.3:PORT"; "[IPV6]" or "[IPV6]:PORT". Without a port the default one.
std::optional<HostAddress> parse_address(std::string_view text);
/// The same way back, always with the port. Of another length: hexadecimal digits.
std::string to_text(const HostAddress& address);

HostAddress ipv4_address(const std::array<std::uint8_t, 4>& host,
                         std::uint16_t port = default_port);

/// 1 to 40 letters, digits, '.', '-', '_', beginning with neither '.' nor '-': what a host name and
/// a file name both can be.
bool is_plain(std::string_view name);
/// Address of the NICs that are opened as shm:NAME (or loopback:NAME) on this machine: one of
/// 127.1.0.0 to 127.254.255.255 by a hash of the name. Without a name 127.0.0.1.
HostAddress address_of_name(std::string_view name);
/// "shm" and "shm:NAME" to that address.
std::optional<HostAddress> parse_shm_name(std::string_view text);

/// Same letters, whatever their case, as names of hosts are compared.
bool same_host_name(std::string_view a, std::string_view b);

}  // namespace via::agent
