// Names in the directories of listeners.
#pragma once

#include <functional>
#include <string>

#include "device/udp/system.hpp"

namespace via::device::udp {

constexpr std::size_t name_max = 64;

/// Of the file of a NIC.
std::string nic_name(pid_t pid, std::uint16_t port, std::uint64_t instance);
/// False: `name` is not in our own spelling.
bool parse_nic_name(const std::string& name, std::uint16_t& port, std::uint64_t& instance);
bool is_nic_name(const std::string& name);

/// Names in a directory, until `take` says false.
void list_names(System& system, int directory, const std::function<bool(const std::string&)>& take);

}  // namespace via::device::udp
