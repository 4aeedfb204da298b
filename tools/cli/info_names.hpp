// The part of `via info` that tells which names there are: sources of names, hosts of this machine.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace via::cli {

struct NameSource {
    const char* of;  ///< "NICs" or "hosts"
    std::string name;
    bool is_there;
};

/// A host of this machine with a NIC called shm or shm:NAME.
struct ShmHost {
    std::string address;
    std::string name;  ///< empty: it has none
};

/// An address of this machine with NICs of this user on a network, but that of the own host.
struct NetworkNic {
    std::string address;
    std::optional<std::string> interface;  ///< that has the address; none: it was taken away
};

struct Names {
    std::vector<NameSource> sources;
    std::vector<std::string> complaints;  ///< about lines and files
    std::vector<ShmHost> hosts;           ///< other than this command
    std::vector<NetworkNic> network;
};

/// Through a NIC of its own, since only NICs see each other.
std::vector<ShmHost> shm_hosts();
std::vector<NetworkNic> network_nics();
/// `media`: what a NIC's own name begins with.
Names look_at_names(std::span<const std::string_view> media);
void print_names(const Names& names);
/// One line of JSON for each.
void print_names_json(const Names& names, const char* schema);

}  // namespace via::cli
