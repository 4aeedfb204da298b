// What both ends of a statistics socket must agree on.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "agent/statistics.hpp"

namespace via::agent {

/// The names in the directory: stat-PID-RANDOM, and while it does not listen yet, new-stat-...
inline constexpr std::string_view socket_prefix = "stat-";
inline constexpr std::string_view unready_prefix = "new-stat-";
inline constexpr std::size_t random_digits = 16;

/// Nothing can be cut off while somebody reads, and nobody but the owner's mapping can write.
inline constexpr int page_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;

/// The answer: these bytes and so many ways, with the page as the one attached descriptor.
struct Answer {
    std::uint64_t magic;
    std::uint32_t count;  ///< of the ways that follow
    std::uint32_t all;    ///< there are
};
inline constexpr std::uint64_t answer_magic = StatisticsPage::magic_value;
inline constexpr std::size_t answer_length_max =
    sizeof(Answer) + Statistics::ways_max * sizeof(device::Way);
static_assert(std::is_trivially_copyable_v<device::Way>);

/// Address of socket `name` in a directory, open as `descriptor`, whose path may be of any length.
inline sockaddr_un socket_address(const std::string& directory, int descriptor,
                                  const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = directory + "/" + name;
    if (path.size() >= sizeof address.sun_path)
        path = "/proc/self/fd/" + std::to_string(descriptor) + "/" + name;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

}  // namespace via::agent
