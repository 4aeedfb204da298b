// SPDX-License-Identifier: Apache-2.0
// A passive endpoint: a port, which is a discriminator of VIA's, and the thread that waits there.
#pragma once

#include <memory>
#include <thread>

#include "common.hpp"
#include "event_queue.hpp"
#include "nic.hpp"

namespace via::fabric {

class Fabric;

/// Somebody who asks for a connection and waits for the answer; what info->handle is. Rejects in
/// its destructor who was not answered.
struct ConnectRequest : fid {
    ConnectRequest(std::shared_ptr<Nic> at, VIP_CONN_HANDLE asked);
    ~ConnectRequest();

    /// As VIA's functions; after success or a timeout nothing is left to be answered.
    VIP_RETURN accept(VIP_VI_HANDLE vi, const void* data, VIP_UINT32 length);
    VIP_RETURN reject(const void* data, VIP_UINT32 length);

    std::shared_ptr<Nic> nic;
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES attributes{};
    sockaddr_in peer{};
};

/// The request of an fi_info, or nullptr.
ConnectRequest* request_of(const fi_info* info);

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
    void announce(ConnectRequest* request, const std::uint8_t* data, std::size_t length);
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
