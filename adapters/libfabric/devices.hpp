// SPDX-License-Identifier: Apache-2.0
// Which NICs there are, without opening one: fi_getinfo asks often, and mostly for nothing.
#pragma once

#include <netinet/in.h>

#include <string>
#include <vector>

namespace via::fabric {

struct Device {
    std::string name;     ///< for VipOpenNic, and the domain's name: "auto:eth0", "shm"
    std::string network;  ///< who reaches whom, the fabric's name: "192.0.2.0/24", "shm"
    sockaddr_in address;  ///< without a port
};

/// All NICs of this machine, the best first; or those that parameter `device` names.
std::vector<Device> find_devices();

}  // namespace via::fabric
