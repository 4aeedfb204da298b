// SPDX-License-Identifier: Apache-2.0
// A passive endpoint: a listener whose requests become events.
#pragma once

#include <memory>

#include "common.hpp"
#include "connect_request.hpp"
#include "event_queue.hpp"
#include "listener.hpp"
#include "nic.hpp"

namespace via::fabric {

class Fabric;

class PassiveEndpoint : public fid_pep {
public:
    static int open(fid_fabric* fabric, fi_info* info, fid_pep** endpoint, void* context);
    /// The address of the one that `handle` names. False: none of those that are open.
    static bool find(const ::fid* handle, sockaddr_in& address);

private:
    friend struct PassiveEndpointOperations;
    PassiveEndpoint(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info, void* context);
    ~PassiveEndpoint();

    int bind(::fid* object);
    int listen();
    void announce(std::unique_ptr<ConnectRequest> request, const std::uint8_t* data,
                  std::size_t length);

    Fabric& fabric_;
    std::shared_ptr<Nic> nic_;
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_;
    EventQueue* events_ = nullptr;
    sockaddr_in address_;
    std::unique_ptr<Listener> listener_;
};

}  // namespace via::fabric
