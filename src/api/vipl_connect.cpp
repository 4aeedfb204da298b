// Connecting: client and server (VIPL 4.19 to 4.21), peer to peer (VIPL 4.22).
#include <cstring>

#include "api/call.hpp"

using namespace via;
using namespace via::api;

namespace {

/// The program's address, read once; false when its lengths are impossible. Host bytes of a local
/// address may be junk (VIPL 4.19): their length still says where the discriminator begins.
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

/// Writes exactly the bytes that the two lengths say, no more (VIPL 4.19).
void write_address(const HostAddress& host, const Discriminator& discriminator,
                   VIP_NET_ADDRESS& to) {
    to.HostAddressLen = host.length;
    to.DiscriminatorLen = discriminator.length;
    VIP_UINT8* bytes = to.HostAddress;
    std::memcpy(bytes, host.bytes.data(), host.length);
    std::memcpy(bytes + host.length, discriminator.bytes.data(), discriminator.length);
}

bool is_given(const void* subject) {
    return static_cast<const engine::Listener*>(subject)->given.load();
}

bool is_decided(const void* subject) {
    return static_cast<const engine::Vi*>(subject)->state.load() !=
           engine::ViState::connect_pending;
}

}  // namespace

VIA_VIPL via_VipConnectWait(VIP_NIC_HANDLE handle, VIP_NET_ADDRESS* local, VIP_ULONG timeout,
                            VIP_NET_ADDRESS* remote, VIP_VI_ATTRIBUTES* remote_attributes,
                            VIP_CONN_HANDLE* connection) {
    VIA_REFUSE_CHILD();
    OpenNic* open = find_nic(handle);
    if (open == nullptr || local == nullptr || remote == nullptr || remote_attributes == nullptr ||
        connection == nullptr)
        return VIP_INVALID_PARAMETER;
    NetAddress address;
    if (!read_address(*local, address, true)) return VIP_INVALID_PARAMETER;
    engine::Listener listener;
    listener.discriminator = address.discriminator;
    const Time deadline = deadline_of(*open->agent, timeout);
    if (const Status status = open->nic->listen(listener); status != Status::success)
        return answer(status);
    open->agent->wait({is_given, &listener}, deadline);
    const bool given = open->nic->unlisten(listener);
    if (!given) return find_nic(handle) == nullptr ? VIP_INVALID_STATE : VIP_TIMEOUT;
    write_address(listener.remote_host, listener.remote, *remote);
    write_attributes(*open, listener.attributes, *remote_attributes);
    *connection = make_handle(Kind::connection, open->index, listener.connection);
    return VIP_SUCCESS;
}

VIA_VIPL via_VipConnectAccept(VIP_CONN_HANDLE connection, VIP_VI_HANDLE handle) {
    VIA_REFUSE_CHILD();
    OpenNic* open = find_nic_of(connection, Kind::connection);
    const FoundVi found = find_vi(handle);
    if (open == nullptr || !found || found.open != open) return VIP_INVALID_PARAMETER;
    return answer(open->nic->with_turn([&] {
        return find_vi(handle) ? open->nic->engine().accept(name_of(connection), *found.vi)
                               : Status::invalid_parameter;
    }));
}

VIA_VIPL via_VipConnectReject(VIP_CONN_HANDLE connection) {
    VIA_REFUSE_CHILD();
    OpenNic* open = find_nic_of(connection, Kind::connection);
    if (open == nullptr) return VIP_INVALID_PARAMETER;
    return answer(
        open->nic->with_turn([&] { return open->nic->engine().reject(name_of(connection)); }));
}

VIA_VIPL via_VipConnectRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local,
                               VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                               VIP_VI_ATTRIBUTES* remote_attributes) {
    VIA_REFUSE_CHILD();
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
    const Status status = found.open->nic->connect(*found.vi, from, to, deadline);
    if (status != Status::success) return answer(status);
    // The engine itself ends the attempt at the deadline; then the condition holds.
    while (!agent.wait({is_decided, found.vi}, deadline)) {
        if (find_nic_of(handle, Kind::vi) == nullptr) return VIP_INVALID_STATE;
        found.open->nic->poll_surely();
    }
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle)) return Status::invalid_state;
        const Status outcome = found.vi->connect_status;
        if (outcome == Status::success)
            write_attributes(*found.open, found.vi->remote, *remote_attributes);
        return outcome;
    }));
}

VIA_VIPL via_VipDisconnect(VIP_VI_HANDLE handle) {
    VIA_REFUSE_CHILD();
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

/// What a peer request has come to; not_done: nothing yet.
VIP_RETURN peer_outcome(const FoundVi& found, VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    return answer(found.open->nic->with_turn([&] {
        if (!find_vi(handle) || !found.vi->peer) return Status::invalid_state;
        const Status outcome = found.vi->connect_status;
        if (outcome == Status::success)
            write_attributes(*found.open, found.vi->remote, *attributes);
        return outcome;
    }));
}

}  // namespace

VIA_VIPL via_VipConnectPeerRequest(VIP_VI_HANDLE handle, VIP_NET_ADDRESS* local,
                                   VIP_NET_ADDRESS* remote, VIP_ULONG timeout) {
    VIA_REFUSE_CHILD();
    const FoundVi found = find_vi(handle);
    if (!found || local == nullptr || remote == nullptr || timeout == 0)
        return VIP_INVALID_PARAMETER;
    NetAddress from;
    NetAddress to;
    if (!read_address(*local, from, true) || !read_address(*remote, to, false))
        return VIP_INVALID_PARAMETER;
    const Time deadline = deadline_of(*found.open->agent, timeout);
    return answer(found.open->nic->connect_peer(*found.vi, from, to, deadline));
}

VIA_VIPL via_VipConnectPeerDone(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD();
    const FoundVi found = find_vi(handle);
    if (!found || attributes == nullptr) return VIP_INVALID_PARAMETER;
    found.open->nic->poll();
    return peer_outcome(found, handle, attributes);
}

VIA_VIPL via_VipConnectPeerWait(VIP_VI_HANDLE handle, VIP_VI_ATTRIBUTES* attributes) {
    VIA_REFUSE_CHILD();
    const FoundVi found = find_vi(handle);
    if (!found || attributes == nullptr) return VIP_INVALID_PARAMETER;
    for (;;) {
        const VIP_RETURN result = peer_outcome(found, handle, attributes);
        if (result != VIP_NOT_DONE) return result;
        // The engine ends the attempt at its deadline; then the condition holds.
        if (!found.open->agent->wait({is_decided, found.vi}, Time::never()) &&
            find_nic_of(handle, Kind::vi) == nullptr)
            return VIP_INVALID_STATE;
    }
}
