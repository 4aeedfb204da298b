// SPDX-License-Identifier: Apache-2.0
#include "connect_request.hpp"

namespace via::fabric {
namespace {

fi_ops operations = {sizeof(fi_ops), unsupported, unsupported, unsupported,
                     unsupported,    unsupported, unsupported};

}  // namespace

ConnectRequest::ConnectRequest(std::shared_ptr<Nic> at, VIP_CONN_HANDLE asked)
    : fid{FI_CLASS_CONNREQ, nullptr, &operations}, nic(std::move(at)), connection(asked) {}

ConnectRequest::~ConnectRequest() {
    if (connection != nullptr) VipConnectReject(connection);
}

VIP_RETURN ConnectRequest::accept(VIP_VI_HANDLE vi, const void* data, VIP_UINT32 length) {
    const VIP_RETURN code = ViaConnectAccept(connection, vi, data, length);
    if (code == VIP_SUCCESS) connection = nullptr;
    return code;
}

VIP_RETURN ConnectRequest::reject(const void* data, VIP_UINT32 length) {
    const VIP_RETURN code = ViaConnectReject(connection, data, length);
    if (code == VIP_SUCCESS) connection = nullptr;
    return code;
}

fid* ConnectRequests::add(std::unique_ptr<ConnectRequest> request) {
    fid* const handle = request.get();
    const std::lock_guard guard(lock_);
    waiting_.emplace(handle, std::move(request));
    return handle;
}

std::unique_ptr<ConnectRequest> ConnectRequests::take(fid* handle, const Nic* nic) {
    const std::lock_guard guard(lock_);
    const auto found = waiting_.find(handle);
    if (found == waiting_.end() || (nic != nullptr && found->second->nic.get() != nic)) return {};
    std::unique_ptr<ConnectRequest> request = std::move(found->second);
    waiting_.erase(found);
    return request;
}

}  // namespace via::fabric
