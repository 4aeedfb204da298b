// SPDX-License-Identifier: Apache-2.0
#include "passive_endpoint.hpp"

#include <chrono>
#include <random>

#include "fabric.hpp"
#include "info.hpp"

namespace via::fabric {

// libfabric's operations ------------------------------------------------------------------------

struct PassiveEndpointOperations {
    static PassiveEndpoint& of(fid* endpoint) {
        return *static_cast<PassiveEndpoint*>(reinterpret_cast<fid_pep*>(endpoint));
    }
    static int close(fid* endpoint) {
        delete &of(endpoint);
        return 0;
    }
    static int bind(fid* endpoint, fid* object, std::uint64_t) { return of(endpoint).bind(object); }
    /// VIA's listeners have no backlog of their own: each request has one of the NIC's places.
    static int control(fid*, int command, void*) { return command == FI_BACKLOG ? 0 : -FI_ENOSYS; }
    static int getopt(fid*, int level, int option, void* value, std::size_t* length) {
        if (level != FI_OPT_ENDPOINT || option != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
        if (*length < sizeof(std::size_t)) return -FI_ETOOSMALL;
        *static_cast<std::size_t*>(value) = connect_data_max;
        *length = sizeof(std::size_t);
        return 0;
    }
    static int setname(fid* endpoint, void* address, std::size_t length) {
        PassiveEndpoint& object = of(endpoint);
        if (object.guard_ != nullptr) return -FI_EOPBADSTATE;
        if (!is_socket_address(address, length)) return -FI_EINVAL;
        object.address_ = object.nic_->address(port_of(*static_cast<sockaddr_in*>(address)));
        return 0;
    }
    static int getname(fid* endpoint, void* address, std::size_t* length) {
        return write_address(of(endpoint).address_, address, length) == 0 ? 0 : -FI_ETOOSMALL;
    }
    static int listen(fid_pep* endpoint) {
        return guarded([&] { return static_cast<PassiveEndpoint*>(endpoint)->listen(); });
    }
    static int reject(fid_pep* endpoint, fid_t handle, const void* data, std::size_t length) {
        if (length > connect_data_max) return -FI_EINVAL;
        const auto request =
            static_cast<PassiveEndpoint*>(endpoint)->fabric_.requests().take(handle);
        if (!request) return -FI_EINVAL;
        const VIP_RETURN code = request->reject(data, static_cast<VIP_UINT32>(length));
        return -error_of(code);
    }
};

namespace {

using Operations = PassiveEndpointOperations;
fi_ops object_operations = {sizeof(fi_ops),      Operations::close, Operations::bind,
                            Operations::control, unsupported,       unsupported,
                            unsupported};
fi_ops_ep endpoint_operations = {sizeof(fi_ops_ep), unsupported, Operations::getopt, unsupported,
                                 unsupported,       unsupported, unsupported,        unsupported};
fi_ops_cm cm_operations = {
    sizeof(fi_ops_cm),  Operations::setname, Operations::getname, unsupported, unsupported,
    Operations::listen, unsupported,         Operations::reject,  unsupported, unsupported};

/// Of those that systems give to whoever asks for any.
std::uint16_t any_port() {
    static thread_local std::minstd_rand numbers(std::random_device{}());
    return static_cast<std::uint16_t>(32768 + numbers() % 28232);
}

}  // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info,
                                 void* context)
    : fid_pep{{FI_CLASS_PEP, context, &object_operations}, &endpoint_operations, &cm_operations},
      fabric_(fabric),
      nic_(std::move(nic)),
      info_(fi_dupinfo(&info), fi_freeinfo),
      address_(nic_->address(0)) {
    if (!info_) throw std::bad_alloc();
    if (is_socket_address(info.src_addr, info.src_addrlen))
        address_.sin_port = static_cast<const sockaddr_in*>(info.src_addr)->sin_port;
    fabric_.users.add();
}

PassiveEndpoint::~PassiveEndpoint() {
    stop();
    if (events_ != nullptr) {
        events_->forget(&fid);
        events_->users.remove();
    }
    fabric_.users.remove();
}

int PassiveEndpoint::open(fid_fabric* fabric, fi_info* info, fid_pep** endpoint, void* context) {
    return guarded([&] {
        auto& owner = *static_cast<Fabric*>(fabric);
        std::shared_ptr<Nic> nic;
        if (const int error = owner.nic(info, nic)) return error;
        *endpoint = new PassiveEndpoint(owner, std::move(nic), *info, context);
        return 0;
    });
}

int PassiveEndpoint::bind(::fid* object) {
    if (object->fclass != FI_CLASS_EQ) return -FI_EINVAL;
    if (events_ != nullptr) return -FI_EBUSY;
    events_ = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
    events_->users.add();
    return 0;
}

// Listening -------------------------------------------------------------------------------------

/// True when the port is ours: a peer-to-peer request that nobody will ever answer listens there.
/// (VIPL 4.22: of two peers the one with the earlier address listens; ours is a prefix of theirs.)
bool PassiveEndpoint::claim(std::uint16_t port) {
    address_ = nic_->address(port);
    const Address own = nic_->listener(address_);
    const Address nobody = own.with(std::string(own.discriminator()) + "~nobody");
    return VipConnectPeerRequest(guard_, own.raw(), nobody.raw(), VIP_INFINITE) == VIP_SUCCESS;
}

int PassiveEndpoint::listen() {
    if (events_ == nullptr) return -FI_ENOEQ;
    if (guard_ != nullptr) return -FI_EOPBADSTATE;
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 1024;
    if (VipCreateVi(nic_->handle(), &attributes, nullptr, nullptr, &guard_) != VIP_SUCCESS)
        return -FI_ENOMEM;
    bool claimed = false;
    if (const std::uint16_t wanted = port_of(address_); wanted != 0)
        claimed = claim(wanted);
    else
        for (int tries = 0; !claimed && tries < 1000; ++tries) claimed = claim(any_port());
    if (!claimed) {
        VipDestroyVi(std::exchange(guard_, nullptr));
        return -FI_EADDRINUSE;
    }
    try {
        thread_ = start_thread(run, this);
    } catch (...) {
        VipDisconnect(guard_);
        VipDestroyVi(std::exchange(guard_, nullptr));
        throw;
    }
    return 0;
}

void PassiveEndpoint::run(void* self) { static_cast<PassiveEndpoint*>(self)->serve(); }

void PassiveEndpoint::serve() {
    const Address own = nic_->listener(address_);
    while (!stopping_) {
        Address peer;
        VIP_VI_ATTRIBUTES attributes;
        VIP_CONN_HANDLE connection = nullptr;
        std::uint8_t data[connect_data_max];
        VIP_UINT32 length = sizeof data;
        const VIP_RETURN code = ViaConnectWait(nic_->handle(), own.raw(), VIP_INFINITE, peer.raw(),
                                               &attributes, &connection, data, &length);
        if (code != VIP_SUCCESS) {
            FI_WARN(&provider, FI_LOG_EP_CTRL, "listening: %s\n", ViaReturnText(code));
            if (code != VIP_ERROR_RESOURCE) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            continue;
        }
        const auto hand_over = [&] {
            std::unique_ptr<ConnectRequest> request(new ConnectRequest(nic_, connection));
            request->attributes = attributes;
            request->peer = socket_address(peer.host().data(), 0);
            announce(std::move(request), data, length);
            return 0;
        };
        if (stopping_ || guarded(hand_over) != 0) VipConnectReject(connection);
    }
    stopped_ = true;
}

void PassiveEndpoint::announce(std::unique_ptr<ConnectRequest> request, const std::uint8_t* data,
                               std::size_t length) {
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info(fi_dupinfo(info_.get()), fi_freeinfo);
    void* peer = std::malloc(sizeof(sockaddr_in));
    if (!info || peer == nullptr) {
        std::free(peer);
        throw std::bad_alloc();
    }
    std::free(info->dest_addr);
    info->dest_addr = std::memcpy(peer, &request->peer, sizeof request->peer);
    info->dest_addrlen = sizeof request->peer;
    Event event;
    event.kind = FI_CONNREQ;
    event.subject = &fid;
    event.bytes.assign(data, data + length);
    info->handle = fabric_.requests().add(std::move(request));
    event.info = info.release();
    events_->push(std::move(event));
}

/// A thread in ConnectWait ends by a request alone, so the guard asks for a connection.
void PassiveEndpoint::stop() {
    if (guard_ == nullptr) return;
    stopping_ = true;
    const Address own = nic_->listener(address_);
    while (!stopped_) {
        VIP_VI_ATTRIBUTES attributes;
        VipDisconnect(guard_);
        const VIP_RETURN code = VipConnectRequest(guard_, own.raw(), own.raw(), 1000, &attributes);
        if (code != VIP_REJECT) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread_.join();
    VipDisconnect(guard_);
    VipDestroyVi(guard_);
}

}  // namespace via::fabric
