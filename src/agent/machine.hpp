// Facts about the machine that decide which paths the library takes, and which it cannot take
// here. For `via info`; nothing on the data path asks for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace via::agent {

/// Something of the kernel that the library uses.
struct Facility {
    const char* name;  ///< short, for machines
    const char* use;   ///< what for
    const char* cost;  ///< what is lost without it
    bool works;
    std::string fault;  ///< why it does not, or empty
};

struct ResourceLimit {
    static constexpr std::uint64_t unlimited = ~0ULL;
    std::uint64_t now;
    std::uint64_t most;  ///< to which the process may raise it
};

struct Machine {
    std::string kernel;              ///< name, release, architecture
    unsigned processors;             ///< that this process may use
    unsigned online;                 ///< that the machine has
    ResourceLimit files;             ///< RLIMIT_NOFILE: open descriptors
    ResourceLimit locked;            ///< RLIMIT_MEMLOCK: bytes
    bool lock_right;                 ///< CAP_IPC_LOCK: that limit does not hold
    std::uint64_t locked_areas_max;  ///< of registered memory, in one process
    const char* streaming;           ///< stores past the cache: memory::streaming_stores()
    std::vector<Facility> facilities;
};

/// Tries each facility once; leaves nothing open. Any thread.
Machine look_at_machine();

}  // namespace via::agent
