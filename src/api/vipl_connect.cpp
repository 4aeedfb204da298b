// Connecting: client and server (VIPL 4.19 to 4.21), peer to peer (VIPL 4.22).
#include <cstring>

#include <via/via.h>

#include "api/call.hpp"
#include "api/offer.hpp"

using namespace via;
using namespace via::api;

namespace via::api {

bool read_address(const VIP_NET_ADDRESS& from, NetAddress& to, bool local) {
    const std::uint16_t host_length = from.HostAddressLen;
    const std::uint16_t discriminator_length = from.DiscriminatorLen;
    if (discriminator_length > to.discriminator.bytes.size()) return false;
    if (host_length > to.host.bytes.size()) return false;
    const VIP_UINT8* bytes = from.HostAddress;
    to.host.length = local ? 0 : host_length;
    if (!local) std::memcpy(to.host.bytes.data(), bytes, host_length);
    to.discriminator.length = discriminator_length;
    std::memcpy(to.discriminator.bytes.data(), bytes + host_length, discriminator_length);
    return true;
}

void write_data(const engine::PrivateData& from, VIP_PVOID data, VIP_UINT32& length) {
    const std::size_t fits = std::min(length, from.length);
    if (fits != 0) std::memcpy(data, from.bytes.data(), fits);
    length = from.length;
}

void write_offer(const OpenNic& open, const engine::Offer& offer, VIP_NET_ADDRESS& remote,
                 VIP_VI_ATTRIBUTES& attributes, VIP_CONN_HANDLE& connection) {
    write_address(offer.remote_host, offer.remote, remote);
    write_attributes(open, offer.attributes, attributes);
    connection = make_handle(Kind::connection, open.index, offer.connection);
}

}  // namespace via::api

namespace {

bool is_given(const void* subject) {
    return static_cast<const engine::Listener*>(subject)->given.load();
}

struct Request {
    const engine::Vi* vi;
    std::uint32_t number;
};

/// Another request of the VI may have begun since: then this one is over, too.
bool is_decided(const void* subject) {
    const auto& request = *static_cast<const Request*>(subject);
    return request.vi->state.load() != engine::ViState::connect_pending ||
           request.vi->requests.load() != request.number;
}

/// The program's private data; false: there cannot be so much.
bool read_data(const void* data, VIP_UINT32 length, std::span<const std::byte>& to) {
    if (length > VIA_PRIVATE_DATA_MAX || (length != 0 && data == nullptr)) return false;
    to = {static_cast<const std::byte*>(data), length};
    return true;
}

VIP_RETURN connect_wait(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                        VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* remote_attributes,
                        VIP_CONN_HANDLE* connection, engine::Listener& listener) {
    OpenNic* open = find_nic(handle);
    if (open == nullptr || local == nullptr || remote == nullptr || remote_attributes == nullptr ||
        connection == nullptr)
        return VIP_INVALID_PARAMETER;
    NetAddress address;
    if (!read_address(*local, address, true)) return VIP_INVALID_PARAMETER;
    listener.discriminator = address.discriminator;
    const Time deadline = deadline_of(*open->agent, timeout);
    const Status listens = if_memory_lasts([&] { return open->nic->listen(listener); });
    if (listens != Status::success) return answer(listens);
    open->agent->listens_here();
    open->agent->wait({is_given, &listener, false}, deadline);
    const bool given = open->nic->unlisten(listener);
    if (!given) return find_nic(handle) == nullptr ? VIP_INVALID_STATE : VIP_TIMEOUT;
    write_offer(*open, listener, *remote, *remote_attributes, *connection);
    return VIP_SUCCESS;
}

VIP_RETURN connect_accept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE handle,
                          std::span<const std::byte> data) {
    OpenNic* open = find_nic_of(connection, Kind::connection);
    const FoundVi found = find_vi(handle);
    if (open == nullptr || !found || found.open != open) return VIP_INVALID_PARAMETER;
    const auto accept = [&] {
        return find_vi(handle) ? open->nic->engine().accept(name_of(connection), *found.vi, data)
                               : Status::invalid_parameter;
    };
    return answer(if_memory_lasts([&] { return open->nic->with_turn(accept); }));
}

VIP_RETURN connect_reject(VIP_CONN_HANDLE connection, std::span<const std::byte> data) {
    OpenNic* open = find_nic_of(connection, Kind::connection);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    const auto reject = [&] { return open->nic->engine().reject(name_of(connection), data); };
    return answer(if_memory_lasts([&] { return open->nic->with_turn(reject); }));
}

VIP_RETURN connect_request(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout, VIP_VI_ATTRIBUTES* remote_attributes,
                           std::span<const std::byte> data, nic::Nic::Asking asking) {
    const FoundVi found = find_vi(handle);
    if (!found || local == nullptr || remote == nullptr || remote_attributes == nullptr ||
        timeout == 0)
        return VIP_INVALID_PARAMETER;
    NetAddress from;
    NetAddress to;
    if (!read_address(*local, from, true) || !read_address(*remote, to, false))
        return VIP_INVALID_PARAMETER;
    agent::Agent& agent = *found.open->agent;
    const Time deadline = deadline_of(agent, timeout);
    Request request{found.vi, 0};
    const Status status = if_memory_lasts([&] {
        return found.open->nic->connect(*found.vi, from, to, deadline, data, asking,
                                        &request.number);
    });
    if (status != Status::success) return answer(status);
    // The engine itself ends the attempt at the deadline; then the condition holds.
    while (!agent.wait({is_decided, &request, false}, deadline)) {
        if (find_nic_of(handle, Kind::vi) == nullptr) return VIP_INVALID_STATE;
        found.open->nic->poll_surely();
    }
    const Status outcome = found.open->nic->with_turn([&] {
        if (!find_vi(handle) || found.vi->requests.load() != request.number)
            return Status::invalid_state;
        const Status decided = found.vi->connect_status;
        if (decided == Status::success)
            write_attributes(*found.open, found.vi->remote, *remote_attributes);
        return decided;
    });
    const auto tell = [&] {
        agent.nobody_is_at(to.host);
        return Status::no_match;
    };
    if (outcome == Status::no_match) if_memory_lasts(tell);  // else without that word
    return answer(outcome);
}

}  // namespace

VIA_VIPL via_VipConnectWait(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                            VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* remote_attributes,
                            VIP_CONN_HANDLE* connection) {
    VIA_REFUSE_CHILD(handle);
    engine::Listener listener;
    return connect_wait(handle, local, timeout, remote, remote_attributes, connection, listener);
}

VIA_VIPL ViaConnectWait(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                        VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* remote_attributes,
                        VIP_CONN_HANDLE* connection, VIP_PVOID data, VIP_UINT32* length) {
    VIA_REFUSE_CHILD(handle);
    if (length == nullptr || (*length != 0 && data == nullptr)) return VIP_INVALID_PARAMETER;
    engine::Listener listener;
    const VIP_RETURN result =
        connect_wait(handle, local, timeout, remote, remote_attributes, connection, listener);
    if (result == VIP_SUCCESS) write_data(listener.data, data, *length);
    return result;
}

VIA_VIPL via_VipConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    return connect_accept(connection, handle, {});
}

VIA_VIPL ViaConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE handle, const void* data,
                          VIP_UINT32 length) {
    VIA_REFUSE_CHILD(handle);
    std::span<const std::byte> bytes;
    return read_data(data, length, bytes) ? connect_accept(connection, handle, bytes)
                                          : VIP_INVALID_PARAMETER;
}

VIA_VIPL via_VipConnectReject(VIP_CONN_HANDLE connection) {
    VIA_REFUSE_CHILD(connection);
    return connect_reject(connection, {});
}

VIA_VIPL ViaConnectReject(VIP_CONN_HANDLE connection, const void* data, VIP_UINT32 length) {
    VIA_REFUSE_CHILD(connection);
    std::span<const std::byte> bytes;
    return read_data(data, length, bytes) ? connect_reject(connection, bytes)
                                          : VIP_INVALID_PARAMETER;
}

VIA_VIPL via_VipConnectRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local,
                               VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                               VIP_VI_ATTRIBUTES* remote_attributes) {
    VIA_REFUSE_CHILD(handle);
    return connect_request(handle, local, remote, timeout, remote_attributes, {},
                           nic::Nic::Asking::briefly);
}

VIA_VIPL ViaConnectRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                           VIP_ULONG timeout, VIP_VI_ATTRIBUTES* remote_attributes,
                           const void* data, VIP_UINT32 length) {
    VIA_REFUSE_CHILD(handle);
    std::span<const std::byte> bytes;
    return read_data(data, length, bytes)
               ? connect_request(handle, local, remote, timeout, remote_attributes, bytes,
                                 nic::Nic::Asking::insisting)
               : VIP_INVALID_PARAMETER;
}

VIA_VIPL ViaQueryPrivateData(VIP_VI_HANDLE handle, VIP_PVOID data, VIP_UINT32* length) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || length == nullptr || (*length != 0 && data == nullptr))
        return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        if (found.vi->remote_data == nullptr)
            *length = 0;
        else
            write_data(*found.vi->remote_data, data, *length);
        return Status::success;
    }));
}

VIA_VIPL via_VipDisconnect(VIP_VI_HANDLE handle) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found) return VIP_INVALID_PARAMETER;
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_parameter;
        found.open->nic->engine().disconnect(*found.vi);
        return Status::success;
    }));
}

// Peer to peer (VIPL 4.22) ------------------------------------------------------------------------

namespace {

/// What the last request, of a peer, has come to; not_done: nothing yet. `number` becomes its own.
VIP_RETURN peer_outcome(const FoundVi& found, VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes,
                        std::uint32_t& number) {
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle) || !found.vi->peer) return Status::invalid_state;
        number = found.vi->requests.load();
        const Status outcome = found.vi->connect_status;
        if (outcome == Status::success)
            write_attributes(*found.open, found.vi->remote, *attributes);
        return outcome;
    }));
}

VIP_RETURN peer_request(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                        VIP_ULONG timeout, std::span<const std::byte> data) {
    const FoundVi found = find_vi(handle);
    if (!found || local == nullptr || remote == nullptr || timeout == 0)
        return VIP_INVALID_PARAMETER;
    NetAddress from;
    NetAddress to;
    if (!read_address(*local, from, true) || !read_address(*remote, to, false))
        return VIP_INVALID_PARAMETER;
    const Time deadline = deadline_of(*found.open->agent, timeout);
    return answer(if_memory_lasts(
        [&] { return found.open->nic->connect_peer(*found.vi, from, to, deadline, data); }));
}

}  // namespace

VIA_VIPL via_VipConnectPeerRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local,
                                   VIP_NET_ADDRESS* remote, VIP_ULONG timeout) {
    VIA_REFUSE_CHILD(handle);
    return peer_request(handle, local, remote, timeout, {});
}

VIA_VIPL ViaConnectPeerRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local,
                               VIP_NET_ADDRESS* remote, VIP_ULONG timeout, const void* data,
                               VIP_UINT32 length) {
    VIA_REFUSE_CHILD(handle);
    std::span<const std::byte> bytes;
    return read_data(data, length, bytes) ? peer_request(handle, local, remote, timeout, bytes)
                                          : VIP_INVALID_PARAMETER;
}

VIA_VIPL via_VipConnectPeerDone(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || attributes == nullptr) return VIP_INVALID_PARAMETER;
    found.open->nic->poll();
    std::uint32_t number = 0;
    return peer_outcome(found, handle, attributes, number);
}

VIA_VIPL via_VipConnectPeerWait(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD(handle);
    const FoundVi found = find_vi(handle);
    if (!found || attributes == nullptr) return VIP_INVALID_PARAMETER;
    Request request{found.vi, 0};
    VIP_VI_ATTRIBUTES theirs;
    VIP_RETURN result = peer_outcome(found, handle, &theirs, request.number);
    while (result == VIP_NOT_DONE) {
        // The engine ends the attempt at its deadline; then the condition holds.
        if (!found.open->agent->wait({is_decided, &request, false}, Time::never()) &&
            find_nic_of(handle, Kind::vi) == nullptr)
            return VIP_INVALID_STATE;
        const std::uint32_t number = request.number;
        result = peer_outcome(found, handle, &theirs, request.number);
        if (request.number != number) return VIP_INVALID_STATE;
    }
    if (result == VIP_SUCCESS) *attributes = theirs;
    return result;
}
