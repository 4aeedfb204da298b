#include "device/udp/names.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <cinttypes>
#include <cstdio>

namespace via::device::udp {

std::string nic_name(pid_t pid, std::uint16_t port, std::uint64_t instance) {
    char name[name_max];
    std::snprintf(name, sizeof name, "nic-%d-%u-%016" PRIx64, static_cast<int>(pid), port,
                  instance);
    return name;
}

bool parse_nic_name(const std::string& name, std::uint16_t& port, std::uint64_t& instance) {
    int pid = 0;
    unsigned number = 0;
    if (std::sscanf(name.c_str(), "nic-%9d-%5u-%16" SCNx64, &pid, &number, &instance) != 3)
        return false;
    port = static_cast<std::uint16_t>(number);
    return nic_name(pid, port, instance) == name;
}

bool is_nic_name(const std::string& name) {
    std::uint16_t port = 0;
    std::uint64_t instance = 0;
    return parse_nic_name(name, port, instance);
}

int next_names(System& system, int directory, const std::function<bool(const std::string&)>& take) {
    constexpr std::size_t entry_bytes_least = 24;
    alignas(8) char buffer[names_at_once_max * entry_bytes_least];
    const ssize_t length = system.getdents(directory, buffer, sizeof buffer);
    if (length <= 0) return static_cast<int>(length);
    int count = 0;
    for (ssize_t at = 0; at < length; ++count) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
        if (!take(entry->d_name)) return 0;
        at += entry->d_reclen;
    }
    return count;
}

void list_names(System& system, int directory,
                const std::function<bool(const std::string&)>& take) {
    while (next_names(system, directory, take) > 0) {
    }
}

}  // namespace via::device::udp
