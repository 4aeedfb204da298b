// SPDX-License-Identifier: Apache-2.0
// Who asks for a connection and was not answered yet.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "common.hpp"
#include "nic.hpp"

namespace via::fabric {

/// Somebody who asks for a connection and waits for the answer; what info->handle is. Rejects in
/// its destructor who was not answered.
struct ConnectRequest : fid {
    ConnectRequest(std::shared_ptr<Nic> at, VIP_CONN_HANDLE asked);
    ~ConnectRequest();
    ConnectRequest(const ConnectRequest&) = delete;
    ConnectRequest& operator=(const ConnectRequest&) = delete;

    /// As VIA's functions; after success or a timeout nothing is left to be answered.
    VIP_RETURN accept(VIP_VI_HANDLE vi, const void* data, VIP_UINT32 length);
    VIP_RETURN reject(const void* data, VIP_UINT32 length);

    std::shared_ptr<Nic> nic;
    VIP_CONN_HANDLE connection;
    VIP_VI_ATTRIBUTES attributes{};
    sockaddr_in peer{};
    std::uint16_t port = 0;  ///< where it came
};

/// A fabric's. The program may answer one twice, or never: the second answer finds nothing, and who
/// is left at the end is rejected.
class ConnectRequests {
public:
    /// What the program is given for it.
    fid* add(std::unique_ptr<ConnectRequest> request);
    /// The one that is answered now; empty: there is none, or not at `nic` (nullptr: any).
    std::unique_ptr<ConnectRequest> take(fid* handle, const Nic* nic = nullptr);

private:
    std::mutex lock_;
    std::map<fid*, std::unique_ptr<ConnectRequest>> waiting_;
};

}  // namespace via::fabric
