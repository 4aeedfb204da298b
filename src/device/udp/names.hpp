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

/// Some of the names in a directory, those that follow where its descriptor stands, at most
/// `names_at_once_max`. 0: there are no more; -1 and errno.
constexpr int names_at_once_max = 170;
int next_names(System& system, int directory, const std::function<bool(const std::string&)>& take);
/// All of them, until `take` says false.
void list_names(System& system, int directory, const std::function<bool(const std::string&)>& take);

}  // namespace via::device::udp
