// NICs of this user on this host that cannot be met from here, since their processes were given
// another place to meet, or see another file system in it.
#pragma once

#include <string>
#include <vector>

#include "agent/base_directory.hpp"

namespace via::agent {

struct Elsewhere {
    std::string base;                  ///< as base_directory() says it, for them
    bool hidden = false;               ///< it is ours by name, and what they put there is not in it
    std::vector<std::string> folders;  ///< of the NICs' addresses, as far as their paths are short

    /// For people: the place.
    std::string text() const;
};

/// What to do about it, behind the place.
inline constexpr const char* elsewhere_advice =
    "give all the same XDG_RUNTIME_DIR (docs/guide/daemons.md)";

/// By the sockets that listen in this network namespace. `host_directory`: ours. Empty also where
/// the kernel does not list them. Reads a file that may be long: not with the turn.
std::vector<Elsewhere> nics_elsewhere(const std::string& host_directory,
                                      const StandardPlaces& places = {},
                                      const char* sockets = "/proc/thread-self/net/unix");

}  // namespace via::agent
