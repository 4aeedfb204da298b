// What a ShmDevice is opened with.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "base/address.hpp"
#include "base/time.hpp"
#include "device/shm/copy_choice.hpp"
#include "device/shm/system.hpp"

namespace via::device::shm {

struct ShmConfig {
    /// Exists, mode 0700, ours; within the directory of this machine (boot id, network namespace).
    /// So that NICs of other addresses find it, it is called folder_name(address).
    std::string directory;
    HostAddress address;                          ///< the same for all NICs of the directory
    std::string host;                             ///< the name that `address` stands for, or empty
    std::uint64_t key = 0;                        ///< random: tells the NICs of one process apart
    std::uint32_t ring_slots = 1024;              ///< power of two, 64 bytes each, per peer
    std::uint32_t arena_bytes = 1U << 22;         ///< power of two, per peer, given back when idle
    std::uint32_t paths_max = 4096;               ///< peers
    std::uint32_t paths_per_process_max = 64;     ///< of these, come from one process
    std::uint32_t handshakes_max = 64;            ///< peers that came and have not greeted yet
    std::uint32_t wakeups_per_second_max = 1000;  ///< by one peer, with nothing to show
    Duration handshake_timeout = seconds(5);
    Duration arena_idle_after = seconds(5);
    OneCopy one_copy = OneCopy::measured;  ///< how large messages go
    /// Told once of each thing that people should know (a peer refused, one that broke the
    /// protocol, ...). Called with the turn, from any of the device's calls; may be empty.
    std::function<void(const std::string&)> report;
    /// Makes the directory anew, when it is gone, and answers its path, or why it cannot be made.
    /// Empty: `directory` is looked for again.
    std::function<std::expected<std::string, std::string>()> directory_again;
    System* system = nullptr;  ///< nullptr: the real one
};

}  // namespace via::device::shm
