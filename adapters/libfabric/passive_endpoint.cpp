// SPDX-License-Identifier: Apache-2.0
#include "passive_endpoint.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include "fabric.hpp"
#include "info.hpp"

namespace via::fabric {
namespace {

/// A handle may be of what was closed long ago, so it is looked for before it is looked at.
std::mutex open_lock;
std::set<const PassiveEndpoint*> open_ones;

}  // namespace

// libfabric's operations ------------------------------------------------------------------------

struct PassiveEndpointOperations {
    static PassiveEndpoint& of(fid* endpoint) {
        return *static_cast<PassiveEndpoint*>(reinterpret_cast<fid_pep*>(endpoint));
    }
    static int close(fid* endpoint) {
        if (forked()) return -FI_EOPBADSTATE;
        delete &of(endpoint);
        return 0;
    }
    static int bind(fid* endpoint, fid* object, std::uint64_t) { return of(endpoint).bind(object); }
    /// A listener's backlog is long enough for who is read now and then; beyond it one asks again.
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
        if (object.listener_->is_listening()) return -FI_EOPBADSTATE;
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

}  // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, std::shared_ptr<Nic> nic, const fi_info& info,
                                 void* context)
    : fid_pep{{FI_CLASS_PEP, context, &object_operations}, &endpoint_operations, &cm_operations},
      fabric_(fabric),
      nic_(std::move(nic)),
      info_(fi_dupinfo(&info), fi_freeinfo),
      address_(nic_->address(0)),
      listener_(std::make_unique<Listener>(nic_)) {
    if (!info_) throw std::bad_alloc();
    if (is_socket_address(info.src_addr, info.src_addrlen))
        address_.sin_port = static_cast<const sockaddr_in*>(info.src_addr)->sin_port;
    {
        const std::lock_guard guard(open_lock);
        open_ones.insert(this);
    }
    fabric_.users.add();
}

PassiveEndpoint::~PassiveEndpoint() {
    {
        const std::lock_guard guard(open_lock);
        open_ones.erase(this);
    }
    listener_.reset();
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

bool PassiveEndpoint::find(const ::fid* handle, sockaddr_in& address) {
    const std::lock_guard guard(open_lock);
    const auto found =
        std::ranges::find(open_ones, handle, [](const PassiveEndpoint* one) { return &one->fid; });
    if (found == open_ones.end()) return false;
    address = (*found)->address_;
    return true;
}

int PassiveEndpoint::bind(::fid* object) {
    if (object->fclass != FI_CLASS_EQ) return -FI_EINVAL;
    if (events_ != nullptr) return -FI_EBUSY;
    events_ = static_cast<EventQueue*>(reinterpret_cast<fid_eq*>(object));
    events_->users.add();
    return 0;
}

int PassiveEndpoint::listen() {
    if (events_ == nullptr) return -FI_ENOEQ;
    if (listener_->is_listening()) return -FI_EOPBADSTATE;
    const int error =
        listener_->listen(port_of(address_), [this](auto request, auto data, auto length) {
            announce(std::move(request), data, length);
        });
    if (error == 0) address_ = listener_->address();
    return error;
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

}  // namespace via::fabric
