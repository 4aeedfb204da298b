// What an agent on a real host is opened with.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "agent/file.hpp"
#include "agent/name_service.hpp"
#include "agent/nic_options.hpp"
#include "agent/processor_watch.hpp"
#include "base/limits.hpp"
#include "base/time.hpp"

namespace via::agent {

struct HostAgentOptions {
    std::string name;                          ///< what was opened
    std::shared_ptr<const NameService> names;  ///< who answers questions for hosts
    Duration period = milliseconds(1);         ///< of looking whether the program still polls,
                                               ///< the first: see PollWatch
    NicLimits limits;
    NicOptions nic_options;
    std::uint32_t first_generation = 0;  ///< of handles; differs between NICs
    std::uint64_t secret = 0;            ///< random: nobody else's proofs are the same
    File held;                           ///< of hold_directory(), while the NIC is open
    /// Where the counters' socket belongs by now, and the directory is made if it is gone; empty:
    /// nobody looks whether the socket is still there.
    std::function<std::expected<std::string, std::string>()> directory_again = {};
    Duration names_look = seconds(60);  ///< while something goes on: how often that is looked at
    std::function<Ran()> ran = ran_beside_caller();  ///< what the program's threads did so far
};

}  // namespace via::agent
