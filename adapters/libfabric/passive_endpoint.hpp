// SPDX-License-Identifier: Apache-2.0
// A passive endpoint: a port, which is a discriminator of VIA's, and the thread that waits there.
#pragma once

#include <memory>
#include <thread>

#include "common.hpp"
#include "connect_request.hpp"
#include "event_queue.hpp"
#include "nic.hpp"

namespace via::fabric {

class Fabric;

class PassiveEndpoint : public fid_pep {
public:
    static int open(fid_fabric* fabric, fi_info* info, fid_pep** endpoint, void* context);

private:
    friend struct PassiveEndpointOperations;
    PassiveEndpoint(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info, void* context);
    ~PassiveEndpoint();

    int bind(::fid* object);
    int listen();
    bool claim(std::uint16_t port);
    static void run(void* self);
    void serve();
    void announce(std::unique_ptr<ConnectRequest> request, const std::uint8_t* data,
                  std::size_t length);
    void stop();

    Fabric& fabric_;
    std::shared_ptr<Nic> nic_;
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_;
    EventQueue* events_ = nullptr;
    sockaddr_in address_;
    /// Holds the port while the thread is between two requests, and wakes the thread at the end.
    VIP_VI_HANDLE guard_ = nullptr;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> stopped_{false};
};

}  // namespace via::fabric
