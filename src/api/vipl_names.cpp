// The name service (VIPL 4.5). Nothing is held while the agent looks: the resolver may be slow.
#include <cstring>
#include <new>
#include <string>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

VIA_VIPL via_VipNSInit(VIP_NIC_HANDLE handle, VIP_PVOID) {
    VIA_REFUSE_CHILD(handle);
    return find_nic(handle) == nullptr ? VIP_INVALID_PARAMETER : VIP_SUCCESS;
}

VIA_VIPL via_VipNSShutdown(VIP_NIC_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    return find_nic(handle) == nullptr ? VIP_INVALID_PARAMETER : VIP_SUCCESS;
}

VIA_VIPL via_VipNSGetHostByName(VIP_NIC_HANDLE handle, VIP_CHAR* name, VIP_NET_ADDRESS* address,
                                VIP_ULONG index) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || name == nullptr || address == nullptr) return VIP_INVALID_PARAMETER;
    HostAddress host;
    const auto nth = static_cast<std::uint32_t>(std::min<VIP_ULONG>(index, 0xFFFFFFFFUL));
    try {
        const Status status = open->agent->resolve_host(name, nth, host);
        if (status != Status::success) return answer(status);
    } catch (const std::bad_alloc&) {
        return VIP_ERROR_RESOURCE;
    }
    write_host(host, *address);
    return VIP_SUCCESS;
}

VIA_VIPL via_VipNSGetHostByAddr(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* address, VIP_CHAR* name,
                                VIP_ULONG* name_length) {
    VIA_REFUSE_CHILD(handle);
    OpenNic* open = find_nic(handle);
    if (open == nullptr || address == nullptr || name == nullptr || name_length == nullptr)
        return VIP_INVALID_PARAMETER;
    HostAddress host;
    if (address->HostAddressLen > host.bytes.size()) return VIP_INVALID_PARAMETER;
    host.length = address->HostAddressLen;
    const VIP_UINT8* bytes = address->HostAddress;
    std::memcpy(host.bytes.data(), bytes, host.length);
    std::string found;
    try {
        const Status status = open->agent->host_name(host, found);
        if (status != Status::success) return answer(status);
    } catch (const std::bad_alloc&) {
        return VIP_ERROR_RESOURCE;
    }
    const VIP_ULONG room = *name_length;
    *name_length = found.size() + 1;
    if (room < found.size() + 1) return VIP_ERROR_RESOURCE;
    std::memcpy(name, found.c_str(), found.size() + 1);
    return VIP_SUCCESS;
}
