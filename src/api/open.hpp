// The one thing that the C API layer needs and only compose can do.
#pragma once

#include <string_view>

#include "agent/agent.hpp"

namespace via::api {

/// Opens a NIC by its VIPL name ("shm", "udp:eth0", "auto", "sim:HOST"). Defined by compose.
/// `first_generation` differs between NICs of this process.
agent::OpenResult open_by_name(std::string_view name, std::uint32_t first_generation);

}  // namespace via::api
