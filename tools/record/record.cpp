// Before a program (LD_PRELOAD, `via lab record`): registrations, connections and posts are written
// down, a line each, without any payload. VIA_RECORD names a folder; each process has its own file
// there. With VIA_RECORD_SEGMENTS=refused nobody imports a segment, as on a network.
#include "recorder.hpp"

namespace via::record {
namespace {

[[gnu::destructor]] void write() { recorder().end(); }

/// What would be stored into peers' segments is posted then.
bool refuses_segments() {
    const char* wanted = std::getenv("VIA_RECORD_SEGMENTS");
    return wanted != nullptr && std::string_view(wanted) == "refused";
}

}  // namespace
}  // namespace via::record

namespace record = via::record;

#define SEEN extern "C" __attribute__((visibility("default"))) VIP_RETURN

SEEN VipRegisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_ULONG length,
                    VIP_MEM_ATTRIBUTES* attributes, VIP_MEM_HANDLE* handle) {
    return record::registered(address, length, "R", [&] {
        return REAL(VipRegisterMem)(nic, address, length, attributes, handle);
    });
}
SEEN VipDeregisterMem(VIP_NIC_HANDLE nic, VIP_PVOID address, VIP_MEM_HANDLE handle) {
    return record::registered(address, 0, "U",
                              [&] { return REAL(VipDeregisterMem)(nic, address, handle); });
}

SEEN VipConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes) {
    return record::request(vi, local, remote, " q", [&] {
        return REAL(VipConnectRequest)(vi, local, remote, timeout, attributes);
    });
}
SEEN ViaConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                       VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes, const void* data,
                       VIP_UINT32 length) {
    return record::request(vi, local, remote, " q", [&] {
        return REAL(ViaConnectRequest)(vi, local, remote, timeout, attributes, data, length);
    });
}
SEEN VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout) {
    return record::request(vi, local, remote, " p",
                           [&] { return REAL(VipConnectPeerRequest)(vi, local, remote, timeout); });
}
SEEN ViaConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout, const void* data, VIP_UINT32 length) {
    return record::request(vi, local, remote, " p", [&] {
        return REAL(ViaConnectPeerRequest)(vi, local, remote, timeout, data, length);
    });
}
SEEN VipConnectWait(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                    VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* attributes,
                    VIP_CONN_HANDLE* connection) {
    return record::take(record::name_of(local), remote, connection, [&] {
        return REAL(VipConnectWait)(nic, local, timeout, remote, attributes, connection);
    });
}
SEEN ViaConnectWait(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                    VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* attributes,
                    VIP_CONN_HANDLE* connection, VIP_PVOID data, VIP_UINT32* length) {
    return record::take(record::name_of(local), remote, connection, [&] {
        return REAL(ViaConnectWait)(nic, local, timeout, remote, attributes, connection, data,
                                    length);
    });
}
SEEN ViaCreateListener(VIP_NIC_HANDLE nic, VIP_NET_ADDRESS* local, VIP_ULONG backlog,
                       VIA_LISTENER_HANDLE* listener) {
    const VIP_RETURN code = REAL(ViaCreateListener)(nic, local, backlog, listener);
    if (code == VIP_SUCCESS) record::recorder().listens(*listener, record::name_of(local));
    return code;
}
SEEN ViaListenerWait(VIA_LISTENER_HANDLE listener, VIP_ULONG timeout, VIP_NET_ADDRESS* remote,
                     VIP_VI_ATTRIBUTES* attributes, VIP_CONN_HANDLE* connection, VIP_PVOID data,
                     VIP_UINT32* length) {
    return record::take(record::recorder().name_of(listener), remote, connection, [&] {
        return REAL(ViaListenerWait)(listener, timeout, remote, attributes, connection, data,
                                     length);
    });
}
SEEN VipConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi) {
    return record::accept(connection, vi, [&] { return REAL(VipConnectAccept)(connection, vi); });
}
SEEN ViaConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE vi, const void* data,
                      VIP_UINT32 length) {
    return record::accept(connection, vi,
                          [&] { return REAL(ViaConnectAccept)(connection, vi, data, length); });
}

SEEN VipPostSend(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return record::post(vi, false, descriptor,
                        [&] { return REAL(VipPostSend)(vi, descriptor, handle); });
}
SEEN VipPostRecv(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle) {
    return record::post(vi, true, descriptor,
                        [&] { return REAL(VipPostRecv)(vi, descriptor, handle); });
}
SEEN ViaPostSendMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return record::post_many(vi, false, descriptors, count, posted, [&] {
        return REAL(ViaPostSendMany)(vi, descriptors, handles, count, posted);
    });
}
SEEN ViaPostRecvMany(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* const* descriptors,
                     const VIP_MEM_HANDLE* handles, VIP_UINT32 count, VIP_UINT32* posted) {
    return record::post_many(vi, true, descriptors, count, posted, [&] {
        return REAL(ViaPostRecvMany)(vi, descriptors, handles, count, posted);
    });
}
/// To a NIC they are an RDMA read: a request, and 8 bytes back.
SEEN ViaPostCompareSwap(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle,
                        VIP_UINT64 expected, VIP_UINT64 desired) {
    return record::post_as('G', vi, descriptor, [&] {
        return REAL(ViaPostCompareSwap)(vi, descriptor, handle, expected, desired);
    });
}
SEEN ViaPostFetchAdd(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE handle,
                     VIP_UINT64 addend) {
    return record::post_as('G', vi, descriptor,
                           [&] { return REAL(ViaPostFetchAdd)(vi, descriptor, handle, addend); });
}

SEEN ViaRegisterAll(VIP_NIC_HANDLE nic, VIP_MEM_HANDLE* handle) {
    const VIP_RETURN code = REAL(ViaRegisterAll)(nic, handle);
    if (code == VIP_SUCCESS) record::recorder().line("A" + record::now());
    return code;
}
SEEN ViaCreateSegment(VIP_NIC_HANDLE nic, VIP_ULONG length, VIP_MEM_ATTRIBUTES* attributes,
                      VIP_PVOID* address, VIP_MEM_HANDLE* handle) {
    const VIP_RETURN code = REAL(ViaCreateSegment)(nic, length, attributes, address, handle);
    if (code == VIP_SUCCESS)
        record::recorder().line("R" + record::now() + record::hex(*address) + record::hex(length));
    return code;
}
SEEN ViaDestroySegment(VIP_NIC_HANDLE nic, VIP_PVOID address) {
    return record::registered(address, 0, "U",
                              [&] { return REAL(ViaDestroySegment)(nic, address); });
}
SEEN ViaImportSegment(VIP_VI_HANDLE vi, VIP_UINT64 remote, VIP_MEM_HANDLE handle,
                      VIP_BOOLEAN writable, VIP_ULONG timeout, VIP_PVOID* address,
                      VIP_ULONG* length) {
    if (record::refuses_segments()) return VIP_ERROR_NOT_SUPPORTED;
    const VIP_RETURN code =
        REAL(ViaImportSegment)(vi, remote, handle, writable, timeout, address, length);
    if (code == VIP_SUCCESS && writable != VIP_FALSE)
        record::recorder().line("I" + record::now() + record::hex(vi));
    return code;
}
