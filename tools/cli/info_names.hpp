// The part of `via info` that tells which names there are: sources of names, hosts of this machine.
#pragma once

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

struct Names {
    std::vector<NameSource> sources;
    std::vector<std::string> complaints;  ///< about lines and files
    std::vector<ShmHost> hosts;           ///< other than this command
};

/// Through a NIC of its own, since only NICs see each other.
std::vector<ShmHost> shm_hosts();
/// `media`: what a NIC's own name begins with.
Names look_at_names(std::span<const std::string_view> media);
void print_names(const Names& names);
/// One line of JSON for each.
void print_names_json(const Names& names, const char* schema);

}  // namespace via::cli
