// SPDX-License-Identifier: Apache-2.0
// A fabric: NICs that reach each other, and the threads that connect.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common.hpp"
#include "connect_request.hpp"
#include "connector.hpp"
#include "nic.hpp"

namespace via::fabric {

class Fabric : public fid_fabric {
public:
    static int open(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);

    /// The NIC that `info` names, opened if it is not yet: a request that a passive endpoint got is
    /// answered by an endpoint of a domain, so both must have the same one.
    int nic(const fi_info* info, std::shared_ptr<Nic>& nic);

    Connector& connector() { return connector_; }
    ConnectRequests& requests() { return requests_; }
    Users users;

private:
    friend int close_fabric(::fid* fabric);
    explicit Fabric(const fi_fabric_attr& attributes, void* context);
    ~Fabric() = default;

    std::mutex lock_;
    std::map<std::string, std::weak_ptr<Nic>> nics_;
    Connector connector_;
    ConnectRequests requests_;
};

}  // namespace via::fabric
