// The media that the library was built with, each a folder of src/device; and `auto`, which is two
// of them in one NIC.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace conformance {

inline const std::vector<std::string>& media() {
#define VIA_MEDIUM(name) #name,
    static const std::vector<std::string> names{
#include "media.inc"
        "auto"};
#undef VIA_MEDIUM
    return names;
}

/// A medium between processes: all but those that live within one.
inline bool is_between_processes(const std::string& medium) {
    return medium != "loopback" && medium != "sim";
}

/// Between hosts there is no memory to be mapped by both. Roles on `auto` are of one host.
inline bool shares_memory(const std::string& medium) { return medium != "udp"; }

/// The process that runs the tests, in children, too.
inline const pid_t test_process = getpid();

/// A NIC's name on this medium; `host`: on a host of that name, if the medium has several. On udp
/// and auto an address of the loopback interface that no other run has, and another port for
/// another host.
inline std::string nic_name(const std::string& medium, const std::string& host = "") {
    const std::string port =
        host.empty() ? "" : ":" + std::to_string(10000 + std::hash<std::string>{}(host) % 10000);
    if (medium == "udp" && std::getenv("VIA_TEST_NETWORKS") != nullptr) return "udp:via0" + port;
    if (medium != "udp" && medium != "auto")
        return medium + (medium == "shm" && !host.empty() ? ":conformance-" + host : "");
    const auto run = static_cast<unsigned>(test_process);
    std::string name = medium + ":127." + std::to_string(128 + (run >> 16)) + "." +
                       std::to_string(run >> 8 & 255) + "." + std::to_string(run & 255);
    return name + port;
}

}  // namespace conformance
